import { expect, test } from "vitest";
import { edges, shades, underPointer } from "./heat";
import { EDGE } from "./draw";

const size = { width: EDGE.left + EDGE.right + 100, height: EDGE.top + EDGE.bottom + 40 };

test("columns reach from edge to edge and meet halfway between steps", () => {
  const all = edges([0, 10, 20], size.width);
  expect(all).toHaveLength(4);
  expect(all[0]).toBeCloseTo(EDGE.left);
  expect(all[3]).toBeCloseTo(EDGE.left + 100);
  expect((all[1] ?? 0) + (all[2] ?? 0)).toBeCloseTo(2 * EDGE.left + 100);
  expect(edges([7], size.width)).toEqual([EDGE.left, EDGE.left + 100]);
});

test("the fullest cell of a step is the darkest, an empty one is not drawn", () => {
  expect(shades([0, 4, 1])).toEqual([0, 1, 0.5]);
  expect(shades([0, 0])).toEqual([0, 0]);
});

test("the bin under the pointer has its bounds and its count", () => {
  const map = {
    run: 0,
    tag: "w",
    low: 0,
    high: 4,
    steps: [1, 2],
    wall_s: [0, 1],
    rows: [
      [1, 2, 3, 4],
      [5, 6, 7, 8],
    ],
  };
  expect(underPointer(map, size, EDGE.left + 75, size.height - EDGE.bottom - 1)).toEqual({
    step: 2,
    from: 0,
    to: 1,
    count: 5,
  });
  expect(underPointer(map, size, EDGE.left + 10, EDGE.top)).toEqual({ step: 1, from: 3, to: 4, count: 4 });
  expect(underPointer(map, size, 0, 0)).toBeNull();
});
