import { expect, test } from "vitest";
import type { View } from "../../server/views";
import { column } from "../../table/view";
import { groupsOf, opsOf, stackTree, treeOf } from "./rows";

const view: View = {
  view: "hlo_ops",
  headline: null,
  notes: [],
  rows: 4,
  columns: [
    column("program_id", "id", "id", ["12190760917235803885", "12190760917235803885", "12190760917235803885", 7]),
    column("op", "op", "name", ["dot.1", "fusion.2", "copy.3", "dot.1"]),
    column("scope", "scope", "name", ["mlp/up", "mlp", null, "head"]),
    column("time_ms", "time", "ms", [4, 2, 1, 9]),
    column("executions", "executions", "count", [2, 2, 1, 1]),
    column("flops", "FLOPs", "count", [100, null, 0, 5]),
  ],
  members: {},
  ways: [],
};

test("a program is told by its whole number", () => {
  expect(opsOf(view, "12190760917235803885", "").map((op) => op.op)).toEqual(["dot.1", "fusion.2", "copy.3"]);
  expect(opsOf(view, "7", "").map((op) => op.ms)).toEqual([9]);
});

test("groups hold all time, and cost that is unknown is not counted", () => {
  const groups = groupsOf(opsOf(view, "12190760917235803885", "scope"));
  expect(groups.map(({ name, ms, flops }) => [name, ms, flops])).toEqual([
    ["mlp/up", 4, 100],
    ["mlp", 2, 0],
    ["(none)", 1, 0],
  ]);
});

test("scopes nest, and a parent has the time of everything below", () => {
  const root = treeOf(opsOf(view, "12190760917235803885", "scope"), true);
  expect(root.total).toBe(7);
  const [mlp] = root.children;
  expect([mlp?.name, mlp?.total]).toEqual(["mlp", 6]);
  expect(mlp?.children.map((child) => child.name)).toEqual(["up", "fusion.2"]);
});

test("stacks join where they begin alike", () => {
  const root = stackTree([
    { path: ["main", "f", "a"], bytes: 3 },
    { path: ["main", "g"], bytes: 2 },
    { path: ["main", "f", "b"], bytes: 1 },
  ]);
  expect(root.total).toBe(6);
  expect(root.children[0]?.children.map((child) => [child.name, child.total])).toEqual([
    ["f", 4],
    ["g", 2],
  ]);
});
