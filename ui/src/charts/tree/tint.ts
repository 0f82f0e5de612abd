/** A calm colour for a name: the same name has the same colour everywhere, in light and in dark. */
const HUES = ["#2f7fc1", "#e69f00", "#2fae8f", "#cc79a7", "#56b4e9", "#8f8b2b", "#9a6bc4", "#d55e00"];

export function tint(name: string): string {
  let hash = 0;
  // Numbers at the end tell copies of one layer apart; those are of one colour.
  for (const letter of name.replace(/[_\d]+$/, "")) hash = (hash * 31 + letter.charCodeAt(0)) >>> 0;
  return HUES[hash % HUES.length] ?? "#2f7fc1";
}
