/** Names that are short enough for the gutter but still distinguishable. Pure. */

/** Thread ids from the operating system: their last digits distinguish them. */
const LONG_NUMBER = /[/ #(]-?\d{4,}(\d{4})\)?$/;
/** `/device:GPU:6`, as TensorFlow and JAX call it. */
const DEVICE = /^\/device:(\w+):(\d+)$/;
/** The shortest common prefix that is worth removing. */
const SHARED = 10;

/** `tf_Compute/-3294604460266012` → `tf_Compute` and `…6012`; the tail is never cut off. */
export function shortName(name: string): { head: string; tail: string } {
  const number = LONG_NUMBER.exec(name);
  if (number) return { head: name.slice(0, number.index), tail: ` …${number[1]}` };
  return { head: name.replace(DEVICE, "$1 $2"), tail: "" };
}

/** Names without their long common prefix, cut at a word boundary. */
export function distinct(names: readonly string[]): string[] {
  const [first = "", ...others] = names;
  let shared = 0;
  while (shared < first.length && others.every((name) => name[shared] === first[shared])) shared += 1;
  const start = first.slice(0, shared).search(/[^-_./\s]*$/);
  if (others.length === 0 || start < SHARED) return [...names];
  return names.map((name) => `…${name.slice(start)}`);
}
