import { expect, test } from "vitest";
import { exactly, instancesOf, originOf } from "./instances";

const hit = (event: number, dur_ns: number, whole: boolean) => ({
  track: 1,
  event,
  name: "a",
  row: 0,
  category: null,
  start_ns: 0,
  dur_ns,
  whole,
});

test("only events that are called like the row count, the longest first", () => {
  const { durations, slowest, median } = instancesOf({
    total: 3,
    hits: [hit(1, 2e6, true), hit(2, 9e6, false), hit(3, 4e6, true), hit(4, 3e6, true)],
  });
  expect([durations, slowest.map((one) => one.event), median]).toEqual([[2, 3, 4], [3, 4, 1], 3]);
});

test("a name is searched as it is written", () => {
  expect(new RegExp(exactly("void f<4>(int*, a/b)").slice(1, -1)).test("void f<4>(int*, a/b)")).toBe(true);
  expect(new RegExp(exactly("a.b").slice(1, -1)).test("axb")).toBe(false);
});

test("launches, shapes and source lines are told; other arguments are not", () => {
  const flow = {
    track: 2,
    event: 5,
    name: "cudaLaunchKernel",
    direction: "in" as const,
    kind: "launch",
    row: 0,
    start_ns: 0,
    dur_ns: 1,
  };
  const origin = originOf({
    parents: [],
    flows: [flow],
    args: [
      { key: "Input Dims", value: "[[2, 3]]" },
      { key: "correlation", value: 7 },
    ],
  });
  expect([origin.flows[0]?.words, origin.args]).toEqual(["Launched by", [["Input Dims", "[[2, 3]]"]]]);
});
