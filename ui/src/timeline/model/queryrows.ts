/** Rows of a query as slices: a start, a duration and a name each, in nanoseconds of the session. Pure. */

export interface QueryAnswer {
  columns: string[];
  rows: (string | number | null)[][];
}

export interface Slice {
  start: number;
  end: number;
  name: string;
}

const STARTS = ["ts", "start", "start_ns"];
const LENGTHS = ["dur", "duration", "dur_ns"];

/** Whether the rows have a start and a duration. */
export function isTrack(columns: readonly string[]): boolean {
  return STARTS.some((name) => columns.includes(name)) && LENGTHS.some((name) => columns.includes(name));
}

/** The slices in order of their starts; rows without a time are left out. The name is that column, or the first text. */
export function slicesOf({ columns, rows }: QueryAnswer): Slice[] {
  const find = (names: readonly string[]) => columns.findIndex((column) => names.includes(column));
  const [start, length] = [find(STARTS), find(LENGTHS)];
  if (start < 0 || length < 0) return [];
  const named = columns.indexOf("name");
  const slices = rows.flatMap((row) => {
    const [from, dur] = [row[start], row[length]];
    if (typeof from !== "number" || typeof dur !== "number") return [];
    const name = named >= 0 ? row[named] : row.find((value) => typeof value === "string");
    return [
      { start: from, end: from + Math.max(0, dur), name: name === null || name === undefined ? "" : String(name) },
    ];
  });
  return slices.sort((a, b) => a.start - b.start);
}

/** The slices that overlap a window, by lanes: each lane holds what does not overlap. At most `most` lanes. */
export function lanesOf(slices: readonly Slice[], most: number): Slice[][] {
  const lanes: Slice[][] = [];
  for (const slice of slices) {
    const free = lanes.find((lane) => (lane.at(-1)?.end ?? -Infinity) <= slice.start);
    if (free) free.push(slice);
    else if (lanes.length < most) lanes.push([slice]);
  }
  return lanes;
}
