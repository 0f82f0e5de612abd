import { expect, it } from "vitest";
import { columnsAtFirst, commandOf, lines, measured, openAtFirst, shape, treeOf } from "./model";
import type { Measures, ModelView } from "./types";

const zeros = (length: number): Measures => {
  const none = () => Array.from({ length }, () => 0);
  return {
    micros: none(),
    accelerator_micros: none(),
    cpu_micros: none(),
    bytes: none(),
    peak_bytes: none(),
    residual_bytes: none(),
    output_bytes: none(),
    params: none(),
    float_ops: none(),
    occurrence: none(),
  };
};

/** dense holds kernel (20) and Relu (50); loss (30) stands beside it. */
function view(): ModelView {
  return {
    view: "scope",
    command: "stepscope tfprof scope --graph_path graph.pb",
    cut_to_depth: null,
    names: ["dense", "dense/kernel", "dense/Relu", "loss"],
    above: [null, 0, 0, null],
    ops: ["", "VariableV2", "Relu", "Mean"],
    devices: ["", "", "", ""],
    nodes: [0, 1, 1, 1],
    own: { ...zeros(4), micros: [0, 20, 50, 30] },
    total: { ...zeros(4), micros: [70, 20, 50, 30] },
    whole: { ...zeros(1), micros: [100] },
  };
}

it("makes a tree of one measure, with short names", () => {
  const root = treeOf(view(), "micros");
  expect(root.total).toBe(100);
  expect(root.children.map((node) => [node.name, node.total])).toEqual([
    ["dense", 70],
    ["loss", 30],
  ]);
  expect(root.children[0]?.children.map((node) => node.name)).toEqual(["Relu", "kernel"]);
});

it("keeps what the rows do not show in the whole", () => {
  expect(treeOf({ ...view(), whole: { ...zeros(1), micros: [130] } }, "micros").total).toBe(130);
});

it("sorts rows beside each other and shows those below open ones only", () => {
  const names = (open: number[], by: "name" | "micros", descending: boolean) =>
    lines(view(), by, descending, new Set(open)).map((line) => `${"  ".repeat(line.depth)}${view().names[line.row]}`);
  expect(names([], "micros", true)).toEqual(["dense", "loss"]);
  expect(names([0], "micros", true)).toEqual(["dense", "  dense/Relu", "  dense/kernel", "loss"]);
  expect(names([0], "micros", false)).toEqual(["loss", "dense", "  dense/kernel", "  dense/Relu"]);
  expect(names([0], "name", false)).toEqual(["dense", "  dense/kernel", "  dense/Relu", "loss"]);
});

it("opens the largest first, as far as there is room", () => {
  expect(openAtFirst(view(), "micros")).toEqual(new Set([0]));
});

it("offers what there is, and prints the same by a command", () => {
  expect(measured(view())).toEqual(["micros"]);
  expect(commandOf(view(), ["micros", "params"], "micros")).toBe(
    "stepscope tfprof scope --graph_path graph.pb --select micros,params --order_by micros",
  );
  expect(commandOf(view(), ["micros"], "name")).toBe("stepscope tfprof scope --graph_path graph.pb --select micros");
});

it("leaves columns out at first that say nothing new", () => {
  const whole = { ...zeros(1), micros: [100], cpu_micros: [100], bytes: [5], peak_bytes: [5] };
  expect(columnsAtFirst({ ...view(), whole })).toEqual(["micros", "peak_bytes"]);
  expect(columnsAtFirst({ ...view(), whole: { ...whole, accelerator_micros: [40] } })).toEqual([
    "micros",
    "accelerator_micros",
    "cpu_micros",
    "peak_bytes",
  ]);
});

it("writes shapes", () => {
  expect([shape([3, 2]), shape([-1, 2]), shape([]), shape(null)]).toEqual(["3 × 2", "? × 2", "", ""]);
});
