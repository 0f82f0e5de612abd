/**
 * Names of kernels as people tell them apart. C++ names share namespaces, return types and parameters; what differs (tile,
 * layout, functor, type) is somewhere among the template arguments. A displayed name is the function with its template
 * arguments as profilers write them, with `…` for those that all kernels of that function share. Two different names never
 * look the same. Other names stay as they are: ops such as `aten::add`, calls of Python, and paths of scopes.
 */

/** More names are left as they are: nobody reads them one by one. */
const MOST = 20_000;
/** Deeper templates are printed as they are: a name that is nested further was made to break a parser. */
const DEEPEST = 16;

/** `head<args…>rest`; without template arguments, `args` is null and all is head. */
interface Template {
  text: string;
  head: string;
  args: Template[] | null;
  rest: string;
}

/** What to show for each name; names that stay as they are are not listed. */
export function displayNames(names: Iterable<string>): Map<string, string> {
  const shown = new Map<string, string>();
  const groups = new Map<string, Map<string, Template>>();
  const taken = new Set<string>();
  for (const name of new Set(names)) {
    if (!isFunction(name)) {
      taken.add(name);
      continue;
    }
    const parsed = parse(compact(name), 0);
    const group = groups.get(parsed.head) ?? new Map<string, Template>();
    groups.set(parsed.head, group.set(name, parsed));
    if (groups.size > MOST) return shown;
  }
  for (const group of groups.values()) {
    const texts = differing([...group.values()], group.size === 1);
    [...group.keys()].forEach((name, place) => shown.set(name, unique(texts[place] ?? name, taken)));
  }
  return shown;
}

/** Whether it is a function of C++: it has template arguments, or ends with parameters. `jit(f)/add` is a scope, and
 * `enumerate(DataLoader)#next` a call of Python. */
function isFunction(name: string): boolean {
  let [depth, end] = [0, -1];
  for (let at = 0; at < name.length; at += 1) {
    const char = name[at];
    if (char === "<" || char === "(") depth += 1;
    else if (char === ">" || char === ")") [depth, end] = [depth - 1, at];
    else if (char === "/" && depth <= 0) return false;
  }
  return end >= 0 && /^(\s*(const|\[clone[^\]]*\]))*$/.test(name.slice(end + 1));
}

/** Without return type, parameters and namespaces, and with short words for lambdas. */
function compact(name: string): string {
  const bare = withoutParameters(name.replaceAll(/\((anonymous namespace|unnamed)\)::/g, "").replace(/^void /, ""));
  return bare
    .replaceAll(/::operator(\(\))*( const)?/g, "")
    .replaceAll(/\b(?:[A-Za-z_]\w*::)+(?=[A-Za-z_~])/g, "")
    .replaceAll(/(::)?\{('?lambda\d*'?)\([^(){}]*\)(#\d+)?\}/g, "{$2$3}")
    .replaceAll(/\s*,\s*/g, ", ")
    .replaceAll(/\s+>/g, ">")
    .trim();
}

/** Adds a number until the text is not taken. */
function unique(text: string, taken: Set<string>): string {
  let wanted = text;
  for (let number = 2; taken.has(wanted); number += 1) wanted = `${text} #${number}`;
  taken.add(wanted);
  return wanted;
}

/** The texts of templates at one place, with `…` for what all of them share. */
function differing(all: readonly Template[], alone: boolean): string[] {
  const [first] = all;
  const parts = first?.args?.length ?? 0;
  const alike = all.every((one) => one.head === first?.head && one.rest === first.rest && one.args?.length === parts);
  if (alone || !first?.args || !alike) return all.map((one) => one.text);
  const columns = Array.from({ length: parts }, (_, place) => {
    const column = all.flatMap((one) => one.args?.[place] ?? []);
    return column.every((one) => one.text === column[0]?.text) ? column.map(() => "…") : differing(column, false);
  });
  return all.map((one, row) => {
    const args = columns
      .map((column) => column[row] ?? "")
      .filter((text, at, list) => text !== "…" || list[at - 1] !== "…");
    return `${one.head}<${args.join(", ")}>${one.rest}`;
  });
}

function parse(text: string, depth: number): Template {
  const open = text.indexOf("<");
  const close = open < 0 || depth >= DEEPEST ? -1 : closing(text, open);
  if (close < 0) return { text, head: text, args: null, rest: "" };
  const args = commas(text.slice(open + 1, close)).map((part) => parse(part.trim(), depth + 1));
  return { text, head: text.slice(0, open), args, rest: text.slice(close + 1) };
}

/** The place of the bracket that closes the one at `open`; -1 if none does. */
function closing(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    if (text[at] === "<") depth += 1;
    else if (text[at] === ">" && text[at - 1] !== "-" && --depth === 0) return at;
  }
  return -1;
}

/** The parts between commas that are in no bracket. */
function commas(text: string): string[] {
  const parts: string[] = [];
  let [depth, from] = [0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (char === "<" || char === "(") depth += 1;
    else if (char === ">" || char === ")") depth -= 1;
    else if (char === "," && depth === 0) {
      parts.push(text.slice(from, at));
      from = at + 1;
    }
  }
  return [...parts, text.slice(from)];
}

/** Without the parameters of functions: of the function itself and of those around lambdas; `operator()` has its own. */
function withoutParameters(name: string): string {
  let [text, depth] = ["", 0];
  for (let at = 0; at < name.length; at += 1) {
    const char = name[at];
    // Casts of template arguments, `(Layout)1`, and parameters of lambdas stay.
    const opens =
      char === "(" && depth === 0 && /[\w>]/.test(text.at(-1) ?? "") && !/lambda\d*'?$/.test(text.slice(-10));
    if (opens || (depth > 0 && char === "(")) depth += 1;
    else if (depth > 0 && char === ")") depth -= 1;
    else if (depth === 0) text += char;
  }
  return text;
}
