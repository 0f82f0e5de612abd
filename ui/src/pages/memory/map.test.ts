import { expect, it } from "vitest";
import type { Addresses } from "./calls";
import { bands, extent, place, under } from "./map";

const map: Addresses = {
  ranges: [
    { address: "0x1000", bytes: 100 },
    { address: "0x9000", bytes: 300 },
  ],
  segments: [
    [0, 0, 100, null, null],
    [1, 0, 300, 20, null],
  ],
  blocks: [
    [0, 50, 50, null, 60, "a.py:1 f", null],
    [1, 0, 300, 40, 100, "a.py:2 g", "kept"],
  ],
  omitted: 0,
};

it("draws ranges one above the other, by size", () => {
  const lines = bands(map, 410);
  expect(lines.map((line) => line.bottom)).toEqual([410, 305]);
  const [lower, upper] = place(map.blocks, lines, extent(map), 800);
  expect(lower).toMatchObject({ x: 0, width: 400, y: 308, height: 51 });
  expect(upper).toMatchObject({ x: 200, width: 600, y: 3, height: 302 });
});

it("spans what is known of time", () => {
  expect(extent(map)).toEqual([20, 100]);
  expect(extent({ ...map, segments: [], blocks: [] })).toEqual([0, 1]);
});

it("finds the smaller of two that overlap", () => {
  const rects = [
    { x: 0, y: 0, width: 10, height: 10, index: 0 },
    { x: 2, y: 2, width: 3, height: 3, index: 1 },
  ];
  expect(under(rects, 3, 3)?.index).toBe(1);
  expect(under(rects, 30, 3)).toBeUndefined();
});

it("leaves out ranges for which there is no room", () => {
  const many = { ...map, ranges: Array.from({ length: 500 }, () => ({ address: "0x0", bytes: 1 })) };
  expect(bands(many, 100).length).toBe(20);
});
