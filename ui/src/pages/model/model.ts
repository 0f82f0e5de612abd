/** The model behind runs of classic TensorFlow: the views of tfprof as trees, and the command that prints the same. Framework-free. */
import { bytes, count, ms, short } from "../../words/format";
import { grow, type Node } from "../../charts/tree/tree";
import type { Measure, ModelView } from "./types";

/** A measure, as people read it. */
export interface MeasureWords {
  key: Measure;
  title: string;
  about: string;
  write: (value: number) => string;
}

const time = (micros: number): string => ms(micros / 1000);

export const MEASURES: readonly MeasureWords[] = [
  { key: "micros", title: "Time", about: "Accelerator and CPU time together", write: time },
  { key: "accelerator_micros", title: "Accelerator", about: "Time of kernels on the accelerator", write: time },
  { key: "cpu_micros", title: "CPU", about: "Time on the host, launches of kernels among it", write: time },
  { key: "bytes", title: "Requested", about: "Memory that was requested, all of it added up", write: bytes },
  { key: "peak_bytes", title: "Peak", about: "The most memory that was held at once", write: bytes },
  { key: "residual_bytes", title: "Residual", about: "Memory that was still held afterwards", write: bytes },
  { key: "output_bytes", title: "Output", about: "Memory in the outputs", write: bytes },
  { key: "params", title: "Parameters", about: "Elements of variables", write: count },
  { key: "float_ops", title: "FLOPs", about: "Float operations", write: short },
  { key: "occurrence", title: "Runs", about: "How often the nodes ran", write: count },
];

const WORDS = new Map(MEASURES.map((measure) => [measure.key, measure]));

/** The words of a measure. */
export function wordsOf(key: Measure): MeasureWords {
  const found = WORDS.get(key) ?? MEASURES[0];
  if (!found) throw new Error("there is no measure");
  return found;
}

/** The measure that an address names; nothing for another text. */
export function measureOf(text: string | undefined): Measure | undefined {
  return MEASURES.find((measure) => measure.key === text)?.key;
}

/** The measures that the view has anything of. */
export function measured(view: ModelView): Measure[] {
  return MEASURES.filter(({ key }) => (view.whole[key][0] ?? 0) > 0).map(({ key }) => key);
}

/** The columns at first: without what all of one kind of memory says again, or CPU time where there is no other. */
export function columnsAtFirst(view: ModelView): Measure[] {
  const there = measured(view);
  const both = there.includes("accelerator_micros");
  return there.filter((key) => key !== "bytes" && (key !== "cpu_micros" || both));
}

/** The rows as a tree of one measure, for a flame graph or treemap. */
export function treeOf(view: ModelView, measure: Measure): Node {
  const depths: number[] = [];
  const rows = view.names.map((path, id) => {
    const above = view.above[id] ?? null;
    const depth = above === null ? 0 : (depths[above] ?? 0) + 1;
    depths.push(depth);
    const name = above !== null && view.view === "scope" ? lastPart(path, view.names[above] ?? "") : path;
    return {
      id,
      parent: above,
      name,
      path,
      depth,
      count: 0,
      total: view.total[measure][id] ?? 0,
      self: view.own[measure][id] ?? 0,
    };
  });
  const root = grow(rows);
  // What the rows do not show belongs to the whole all the same.
  root.total = Math.max(root.total, view.whole[measure][0] ?? 0);
  root.name = view.view === "code" ? "All lines" : view.view === "op" ? "All operations" : "The model";
  root.path = root.name;
  return root;
}

/** What a scope adds to the one above it. */
function lastPart(path: string, above: string): string {
  return path.startsWith(`${above}/`) ? path.slice(above.length + 1) : path;
}

/** A line of the tree that is in view. */
export interface Line {
  row: number;
  depth: number;
  holds: boolean;
  open: boolean;
}

/** The lines of the tree: rows beside each other sorted, those below a row only where it is open. */
export function lines(view: ModelView, by: Measure | "name", descending: boolean, open: ReadonlySet<number>): Line[] {
  const below = new Map<number, number[]>();
  view.above.forEach((above, row) => {
    const list = below.get(above ?? -1);
    if (list) list.push(row);
    else below.set(above ?? -1, [row]);
  });
  const sign = descending ? -1 : 1;
  const compare =
    by === "name"
      ? (a: number, b: number) =>
          sign * (view.names[a] ?? "").localeCompare(view.names[b] ?? "", "en", { numeric: true })
      : (a: number, b: number) => sign * ((view.total[by][a] ?? 0) - (view.total[by][b] ?? 0));
  const out: Line[] = [];
  const stack: [number, number][] = [];
  const push = (parent: number, depth: number) => {
    const rows = [...(below.get(parent) ?? [])].sort((a, b) => compare(a, b) || a - b);
    for (const row of rows.reverse()) stack.push([row, depth]);
  };
  push(-1, 0);
  for (let next = stack.pop(); next; next = stack.pop()) {
    const [row, depth] = next;
    const holds = below.has(row);
    out.push({ row, depth, holds, open: holds && open.has(row) });
    if (holds && open.has(row)) push(row, depth + 1);
  }
  return out;
}

/** Rows that are open at first: from the top down the largest, until about `room` lines are in view. */
export function openAtFirst(view: ModelView, measure: Measure, room = 24): Set<number> {
  const children = new Map<number, number[]>();
  view.above.forEach((above, row) => {
    const list = children.get(above ?? -1);
    if (list) list.push(row);
    else children.set(above ?? -1, [row]);
  });
  const open = new Set<number>();
  let shown = children.get(-1)?.length ?? 0;
  const holds = (row: number) => children.has(row);
  let next = (children.get(-1) ?? []).filter(holds);
  while (next.length > 0) {
    const row = next.reduce((best, one) =>
      (view.total[measure][one] ?? 0) > (view.total[measure][best] ?? 0) ? one : best,
    );
    const below = children.get(row) ?? [];
    if (shown + below.length > room && open.size > 0) break;
    open.add(row);
    shown += below.length;
    next = [...next.filter((one) => one !== row), ...below.filter(holds)];
  }
  return open;
}

/** The command that prints the same: the server's, with the columns and the order of the page. */
export function commandOf(view: ModelView, columns: readonly Measure[], by: Measure | "name"): string {
  const select = columns.length > 0 ? ` --select ${columns.join(",")}` : "";
  // tfprof sorts by occurrence where a row is several nodes only.
  const order = by === "name" || (by === "occurrence" && view.view === "scope") ? "" : ` --order_by ${by}`;
  return `${view.command}${select}${order}`;
}

/** A shape: `64 × 128`; a single value has none. */
export function shape(dims: readonly number[] | null | undefined): string {
  if (!dims) return "";
  return dims.map((size) => (size < 0 ? "?" : String(size))).join(" × ");
}
