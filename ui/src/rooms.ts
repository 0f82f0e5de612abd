/**
 * Which folder may import from which. The order is that of the data: what the server answers → words → state → parts →
 * charts → tables → timeline → pages → the frame around them. A folder knows those before it, and pages do not know one
 * another; what two of them share moves to a folder before them. `rooms.test.ts` examines all files.
 */

/** The folders in order. */
export const ROOMS: readonly string[] = [
  "server",
  "words",
  "state",
  "parts",
  "charts",
  "table",
  "timeline",
  "pages",
  "shell",
];

/** The rooms inside a folder, in order. Those of a folder that is not listed do not know one another. */
const INSIDE: Readonly<Record<string, readonly string[]>> = { timeline: ["model", "draw", "input", "panels"] };

/** Folders whose own folders are rooms. */
const DIVIDED: readonly string[] = ["timeline", "pages"];

const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*["'](\.[^"']+)["']/g;

/** The files that a file imports, from the root of the sources. */
export function importsOf(file: string, text: string): string[] {
  return [...text.matchAll(IMPORT)].map((match) => resolved(file, match[1] ?? ""));
}

function resolved(file: string, path: string): string {
  const parts = file.split("/").slice(0, -1);
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** The folder of a file, and the room inside it; a file of the root has neither. */
function roomOf(file: string): [string, string] {
  const parts = file.split("/");
  const folder = parts.length > 1 ? (parts[0] ?? "") : "";
  return [folder, DIVIDED.includes(folder) && parts.length > 2 ? (parts[1] ?? "") : ""];
}

/** What is wrong with an import; nothing if it is fine. */
export function wrongImport(from: string, to: string): string | undefined {
  const [[folder, room], [target, other]] = [roomOf(from), roomOf(to)];
  const arrow = `${from} → ${to}`;
  for (const one of [folder, target])
    if (one !== "" && !ROOMS.includes(one)) return `${arrow}: ${one} is not in the list`;
  // Files of the root start everything; nothing but they may import from there.
  if (folder === "") return undefined;
  if (target === "") return arrow;
  if (folder !== target) return ROOMS.indexOf(target) < ROOMS.indexOf(folder) ? undefined : arrow;
  // The list of the pages imports all of them; the pages do not know it.
  if (room === other || room === "") return undefined;
  const order = INSIDE[folder] ?? [];
  return other !== "" && order.indexOf(other) < order.indexOf(room) ? undefined : arrow;
}
