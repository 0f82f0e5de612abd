import { expect, test } from "vitest";
import type { FleetSteps } from "../../server/schema";
import {
  cellAt,
  describe,
  layoutOf,
  orderOf,
  shadeOf,
  slowness,
  spanOf,
  stepsIn,
  summary,
  usualOf,
  worstIn,
  worstOf,
} from "./heat";

const map: FleetSteps = {
  schema: "stepscope.fleet-steps.v1",
  recording: "r",
  job: "job",
  session: "s",
  hosts: ["a", "b", "c"],
  left_out: 0,
  numbered: true,
  first: [10, 12],
  last: [11, 12],
  usual_ms: [8, 9],
  slow: [
    [0, null],
    [0.2, 0.4],
    [-0.1, 0],
  ],
};

test("cells lie where they are drawn", () => {
  const layout = layoutOf(map, 1000);
  expect(layout.cellWidth).toBe(40);
  expect(cellAt(layout, layout.left + 41, layout.cellHeight + 1)).toEqual({ row: 1, column: 1 });
  expect(cellAt(layout, layout.left - 1, 1)).toBeNull();
  expect(cellAt(layout, layout.left + 81, 1)).toBeNull();
  // Many columns stay wide enough to point at.
  const wide = { ...map, first: Array<number>(256).fill(0) };
  expect(layoutOf(wide, 390).width).toBeGreaterThan(1000);
});

test("the slowest come first, and rows without steps stay harmless", () => {
  expect(orderOf(map, true)).toEqual([1, 0, 2]);
  expect(orderOf(map, false)).toEqual([0, 1, 2]);
  expect(usualOf(map, 1)).toBeCloseTo(0.3);
  expect([worstIn(map, 0), worstIn(map, 1)]).toEqual([null, "step 12 (+40 %)"]);
  expect(worstOf(map, 1)).toBe(1);
  expect(worstOf({ ...map, slow: [[null, null]] }, 0)).toBe(-1);
  expect(usualOf(map, 7)).toBe(0);
});

test("a cell and the whole map are said in words", () => {
  expect(stepsIn(map, 0)).toBe("steps 10 to 11");
  expect(describe(map, 1, 1)).toBe("b, step 12: 40 % longer than the median host (9.00 ms there)");
  expect(slowness(null)).toBe("no such step");
  expect(slowness(0.01)).toBe("as long as the median host");
  expect(slowness(3)).toContain("at least");
  expect(summary(map)).toBe("3 hosts by 2 columns of steps; slower than the middle: b 30 %");
  expect(summary({ ...map, slow: [[0], [0], [0]] })).toContain("within 5 %");
});

test("small differences look even and large ones are full", () => {
  expect(shadeOf(0.04).strength).toBe(0);
  expect(shadeOf(0.9)).toEqual({ slower: true, strength: 1 });
  expect(shadeOf(-0.2).slower).toBe(false);
});

const columns = { first: [3, 5], last: [4, 5], numbered: true } as FleetSteps;
const step = (index: number, host: number, start: number, counted = true) => ({
  index,
  host,
  start_ns: start,
  end_ns: start + 10,
  counted,
});
const timeline = { hosts: ["a", "b"], steps: [step(3, 0, 0), step(3, 1, 100), step(4, 1, 110), step(5, 1, 120)] };

test("a column is the time of its steps on that host", () => {
  expect(spanOf(timeline, columns, "b", 0)).toEqual({ from: 100, to: 120 });
  expect(spanOf(timeline, columns, "b", 1)).toEqual({ from: 120, to: 130 });
  expect(spanOf(timeline, columns, "a", 1)).toBeNull();
  expect(spanOf(timeline, columns, "unknown", 0)).toBeNull();
});

test("steps without numbers are counted, without warm-up", () => {
  const counted = { hosts: ["a"], steps: [step(900, 0, 0, false), step(901, 0, 10), step(902, 0, 20)] };
  expect(spanOf(counted, { ...columns, first: [1], last: [1], numbered: false }, "a", 0)).toEqual({ from: 20, to: 30 });
});
