/** Names short enough for the gutter that still tell one thing from another. Pure. */

/** Numbers of threads that the operating system made up: their last digits tell them apart. */
const LONG_NUMBER = /[/ #(]-?\d{4,}(\d{4})\)?$/;
/** `/device:GPU:6`, as TensorFlow and JAX call it. */
const DEVICE = /^\/device:(\w+):(\d+)$/;
/** The shortest beginning that is worth leaving out. */
const SHARED = 10;

/** `tf_Compute/-3294604460266012` → `tf_Compute` and `…6012`; what stands in the tail is never cut off. */
export function shortName(name: string): { head: string; tail: string } {
  const number = LONG_NUMBER.exec(name);
  if (number) return { head: name.slice(0, number.index), tail: ` …${number[1]}` };
  return { head: name.replace(DEVICE, "$1 $2"), tail: "" };
}

/** Names without the long beginning that all of them share, cut where a word ends. */
export function distinct(names: readonly string[]): string[] {
  const [first = "", ...others] = names;
  let shared = 0;
  while (shared < first.length && others.every((name) => name[shared] === first[shared])) shared += 1;
  const start = first.slice(0, shared).search(/[^-_./\s]*$/);
  if (others.length === 0 || start < SHARED) return [...names];
  return names.map((name) => `…${name.slice(start)}`);
}
