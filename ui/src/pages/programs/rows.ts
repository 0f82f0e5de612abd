/** The instructions of one program as rows, and as a tree of groups. Pure. */
import { grow, type Node } from "../../charts/tree/tree";
import type { View } from "../../server/views";
import { number, text, values } from "../../table/view";

/** What rows can be grouped by: the key in the address, which is the column, and its title. */
export const GROUPS = [
  { key: "", title: "Op" },
  { key: "category", title: "Category" },
  { key: "scope", title: "Scope" },
  { key: "source", title: "Source line" },
  { key: "phase", title: "Phase" },
] as const;

export interface Op {
  /** Its place in the view. */
  row: number;
  op: string;
  ms: number;
  executions: number;
  flops: number | null;
  bytes: number | null;
  bound: string;
  efficiency: number | null;
  type: string;
  /** Its group by the column that is grouped by. */
  group: string;
}

/** The number of a program as text, whichever way the server wrote it. */
export function programOf(view: View<unknown>, row: number): string {
  const value = values(view, "program_id")[row];
  return typeof value === "number" || typeof value === "string" ? String(value) : "";
}

/** The instructions of a program, longest first. */
export function opsOf(view: View<unknown>, program: string, by: string): Op[] {
  const rows = Array.from({ length: view.rows }, (_, row) => row).filter((row) => programOf(view, row) === program);
  return rows.map((row) => ({
    row,
    op: text(view, "op", row),
    ms: number(view, "time_ms", row) ?? 0,
    executions: number(view, "executions", row) ?? 0,
    flops: number(view, "flops", row),
    bytes: number(view, "bytes", row),
    bound: text(view, "bound", row),
    efficiency: number(view, "efficiency", row),
    type: text(view, "matrix_type", row),
    group: by === "" ? "" : text(view, by, row) || "(none)",
  }));
}

export interface Group {
  name: string;
  ops: number;
  executions: number;
  ms: number;
  /** Of the instructions whose cost is known. */
  flops: number;
  bytes: number;
}

/** Groups of instructions, longest first. */
export function groupsOf(ops: readonly Op[]): Group[] {
  const groups = new Map<string, Group>();
  for (const op of ops) {
    const group = groups.get(op.group) ?? { name: op.group, ops: 0, executions: 0, ms: 0, flops: 0, bytes: 0 };
    group.ops += 1;
    group.executions += op.executions;
    group.ms += op.ms;
    group.flops += op.flops ?? 0;
    group.bytes += op.bytes ?? 0;
    groups.set(op.group, group);
  }
  return [...groups.values()].sort((a, b) => b.ms - a.ms);
}

/** Groups with their instructions below them; scopes nest. */
export function treeOf(ops: readonly Op[], nested: boolean): Node {
  const rows: Omit<Node, "children">[] = [];
  const byPath = new Map<string, number>();
  const place = (path: string, name: string, parent: number | null, depth: number): number => {
    const known = byPath.get(path);
    if (known !== undefined) return known;
    byPath.set(path, rows.length);
    rows.push({ id: rows.length, parent, name, path, depth, count: 0, total: 0, self: 0 });
    return rows.length - 1;
  };
  for (const op of ops) {
    const parts = op.group === "" ? [] : nested ? op.group.split("/") : [op.group];
    let parent: number | null = null;
    const above: number[] = [];
    for (const [depth, part] of [...parts, op.op].entries()) {
      const path: string = parent === null ? part : `${rows[parent]?.path}/${part}`;
      parent = place(path, part, parent, depth);
      above.push(parent);
    }
    for (const id of above) {
      const row = rows[id];
      if (row) row.total += op.ms;
    }
    const own = rows[above.at(-1) ?? -1];
    if (own) {
      own.self += op.ms;
      own.count += op.executions;
    }
  }
  return grow(rows);
}

/** Stacks as a tree: the outermost call first. */
export function stackTree(stacks: readonly { path: string[]; bytes: number }[]): Node {
  const rows: Omit<Node, "children">[] = [];
  const byPath = new Map<string, number>();
  for (const { path, bytes } of stacks) {
    let parent: number | null = null;
    for (const [depth, name] of path.entries()) {
      const key: string = parent === null ? name : `${parent}\n${name}`;
      let id = byPath.get(key);
      if (id === undefined) {
        id = rows.length;
        byPath.set(key, id);
        rows.push({ id, parent, name, path: path.slice(0, depth + 1).join(" › "), depth, count: 0, total: 0, self: 0 });
      }
      const row = rows[id];
      if (row) {
        row.total += bytes;
        row.count += 1;
        if (depth === path.length - 1) row.self += bytes;
      }
      parent = id;
    }
  }
  return grow(rows);
}
