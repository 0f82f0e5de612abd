/**
 * Names of kernels as people tell them apart. C++ names share namespaces, return types and parameters; what differs (tile,
 * layout, functor, type) is somewhere in the middle. A displayed name is the function, followed by the template arguments that
 * no other kernel of that function shares. Two different names never look the same. Other names stay as they are: ops such as
 * `aten::add`, and paths of scopes.
 */

/** More names are left as they are: nobody reads them one by one. */
const MOST = 20_000;
/** Words that every instance has, or that say nothing without the others. */
const IDLE = new Set(["at", "native", "std", "detail", "internal", "anonymous", "namespace", "unnamed", "cutlass", "cub", "thrust", "c10", "void", "const", "unsigned", "char", "array", "tuple", "ul", "lambda", "instance", "operator"]);

interface Parsed {
  base: string;
  words: string[];
}

/** What to show for each name; names that stay as they are are not listed. */
export function displayNames(names: Iterable<string>): Map<string, string> {
  const shown = new Map<string, string>();
  const groups = new Map<string, Map<string, Parsed>>();
  const taken = new Set<string>();
  for (const name of new Set(names)) {
    if (!isFunction(name)) {
      taken.add(name);
      continue;
    }
    const parsed = parse(name);
    const group = groups.get(parsed.base) ?? new Map<string, Parsed>();
    groups.set(parsed.base, group.set(name, parsed));
    if (groups.size > MOST) return shown;
  }
  for (const group of groups.values()) {
    const common = shared([...group.values()]);
    for (const [name, { base, words }] of group) {
      const own = group.size === 1 ? words.filter((word) => /[A-Za-z]/.test(word)).slice(0, 3) : words.filter((word) => !common.has(word));
      const text = [base, ...own.slice(0, 6)].join(" ");
      shown.set(name, unique(text, own.slice(6), taken));
    }
  }
  return shown;
}

/** Whether it has arguments, and no path: `jit(f)/add` is a scope. */
function isFunction(name: string): boolean {
  let [depth, brackets] = [0, false];
  for (const char of name) {
    if (char === "<" || char === "(") [depth, brackets] = [depth + 1, true];
    else if (char === ">" || char === ")") depth -= 1;
    else if (char === "/" && depth <= 0) return false;
  }
  return brackets;
}

/** Adds what was left off, then a number, until the text is not taken. */
function unique(text: string, rest: readonly string[], taken: Set<string>): string {
  let wanted = text;
  for (const word of rest) {
    if (!taken.has(wanted)) break;
    wanted = `${wanted} ${word}`;
  }
  for (let number = 2; taken.has(wanted); number += 1) wanted = `${text} #${number}`;
  taken.add(wanted);
  return wanted;
}

/** Words that all names of one function have. */
function shared(all: readonly Parsed[]): Set<string> {
  const [first, ...others] = all.map((one) => new Set(one.words));
  return new Set([...(first ?? [])].filter((word) => others.every((other) => other.has(word))));
}

/** The function and the words of its template arguments. */
function parse(name: string): Parsed {
  const bare = withoutParameters(name.replaceAll("(anonymous namespace)::", "").replace(/^void /, ""));
  const open = bare.indexOf("<");
  const head = open < 0 ? bare : bare.slice(0, open);
  const base = head.split("::").at(-1)?.trim() || head;
  const words = open < 0 ? [] : bare.slice(open).split(/[^\w.]+/).filter((word) => word !== "" && !IDLE.has(word) && !/^_+$/.test(word));
  return { base, words: [...new Set(words)] };
}

/** Without the parameters of the function itself; those of functors inside stay. */
function withoutParameters(name: string): string {
  let depth = 0;
  for (let at = 0; at < name.length; at += 1) {
    const char = name[at];
    if (char === "<") depth += 1;
    else if (char === ">") depth -= 1;
    else if (char === "(" && depth <= 0 && at > 0) return name.slice(0, at);
  }
  return name;
}
