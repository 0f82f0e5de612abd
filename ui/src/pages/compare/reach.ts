/** How far the axis of changes reaches. */
import type { Comparison } from "./calls";

type Row = Pick<Comparison["breakdown"][number], "delta_ms" | "delta_low_ms" | "delta_high_ms">;

/** An interval may be cut from this many times the largest change on: those of noisy recordings are so wide that next to them no
 * change can be seen. */
const WIDEST = 2;

/** The largest change, or the widest interval as long as changes can be seen beside it. */
export function reachOf(rows: readonly Row[]): number {
  const change = Math.max(...rows.map((row) => Math.abs(row.delta_ms)), 1e-12);
  return Math.max(change, Math.min(widest(rows), WIDEST * change));
}

/** Whether an interval does not fit. */
export function isCut(rows: readonly Row[]): boolean {
  return widest(rows) > reachOf(rows);
}

function widest(rows: readonly Row[]): number {
  return Math.max(...rows.flatMap((row) => [Math.abs(row.delta_low_ms ?? 0), Math.abs(row.delta_high_ms ?? 0)]), 0);
}
