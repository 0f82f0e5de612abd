import { expect, test } from "vitest";
import { layersOf } from "./layers";

const rows = (count: number, edges: [number, number][]) => layersOf(count, edges).map(({ layer }) => layer);

test("a box is below everything that it takes input from", () => {
  expect(
    rows(4, [
      [0, 1],
      [1, 3],
      [0, 3],
      [2, 3],
    ]),
  ).toEqual([0, 1, 0, 2]);
  expect(rows(3, [])).toEqual([0, 0, 0]);
});

test("circles and connections with itself end", () => {
  expect(
    rows(2, [
      [0, 1],
      [1, 0],
    ]),
  ).toEqual([0, 1]);
  expect(rows(1, [[0, 0]])).toEqual([0]);
  expect(
    rows(4, [
      [0, 1],
      [1, 2],
      [2, 1],
      [2, 3],
    ]),
  ).toEqual([0, 1, 2, 3]);
});

test("boxes of a row have places of their own, near their inputs", () => {
  const placed = layersOf(5, [
    [0, 4],
    [1, 3],
    [0, 2],
  ]);
  expect(new Set(placed.map(({ layer, slot }) => `${layer}/${slot}`)).size).toBe(5);
  expect(placed[4]!.slot).toBeLessThan(placed[3]!.slot);
});

test("a long chain does not overflow the stack", () => {
  const chain = Array.from({ length: 20_000 }, (_, at): [number, number] => [at, at + 1]);
  expect(rows(20_001, chain).at(-1)).toBe(20_000);
});
