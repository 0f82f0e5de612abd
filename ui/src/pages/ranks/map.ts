/** The map of ranks and steps: what each cell shows and says. */
import type { RankMap } from "../../server/views";
import { ms } from "../../words/format";

/** Figures below this share of the largest one look like nothing. */
const FAINT = 0.06;

/** Columns and rows that can be pointed at and drawn at once. */
const [MOST_COLUMNS, MOST_ROWS] = [200, 40];

/** The map as it is drawn: steps share columns, which show the worst of them, and of many ranks the latest are shown. */
export function reduced(map: RankMap): RankMap {
  const size = Math.ceil(map.steps.length / MOST_COLUMNS);
  const columns = map.steps.filter((_, step) => step % size === 0);
  const worst = (row: number[]) =>
    columns.map((_, column) => Math.max(...row.slice(column * size, (column + 1) * size)));
  const sum = (rank: number) => (map.late_ms[rank] ?? []).reduce((all, value) => all + value, 0);
  let ranks = map.ranks.map((_, rank) => rank);
  if (ranks.length > MOST_ROWS) {
    const latest = new Set([...ranks].sort((a, b) => sum(b) - sum(a)).slice(0, MOST_ROWS));
    ranks = ranks.filter((rank) => latest.has(rank));
  }
  return {
    steps: columns,
    ranks: ranks.map((rank) => map.ranks[rank] ?? ""),
    waiting_ms: ranks.map((rank) => worst(map.waiting_ms[rank] ?? [])),
    late_ms: ranks.map((rank) => worst(map.late_ms[rank] ?? [])),
  };
}

/** How strong a cell's colour is, from 0 to 1. */
export function strengthOf(value: number, largest: number): number {
  const share = largest > 0 ? value / largest : 0;
  return share < FAINT ? 0 : Math.min(1, share) ** 0.7;
}

/** The largest figure of the map: waiting and lateness share one scale. */
export function largestIn(map: RankMap): number {
  let largest = 0;
  for (const row of [...map.late_ms, ...map.waiting_ms]) for (const value of row) largest = Math.max(largest, value);
  return largest;
}

/** Whether a cell is mostly late, mostly waiting, or neither. */
export function kindOf(late: number, waits: number, largest: number): "late" | "waits" | "even" {
  if (Math.max(late, waits) < FAINT * largest) return "even";
  return late >= waits ? "late" : "waits";
}

/** A cell in words. */
export function describe(map: RankMap, rank: number, step: number): string {
  const [late, waits] = [map.late_ms[rank]?.[step] ?? 0, map.waiting_ms[rank]?.[step] ?? 0];
  const where = `${map.ranks[rank] ?? ""}, step ${map.steps[step] ?? ""}`;
  return `${where}: arrives ${ms(late)} after the last but one, waits ${ms(waits)} for others`;
}

/** The map in one sentence, for those who cannot see it. */
export function summary(map: RankMap): string {
  const sums = map.late_ms.map((row) => row.reduce((sum, value) => sum + value, 0));
  const all = sums.reduce((sum, value) => sum + value, 0);
  const most = sums.indexOf(Math.max(...sums));
  const said =
    all > 0
      ? `${map.ranks[most] ?? ""} has ${Math.round(((sums[most] ?? 0) / all) * 100)} % of all lateness`
      : "nobody is late";
  return `${map.ranks.length} ranks by ${map.steps.length} steps; ${said}`;
}
