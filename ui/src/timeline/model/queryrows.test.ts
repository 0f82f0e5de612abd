import { expect, it } from "vitest";
import { isTrack, lanesOf, slicesOf } from "./queryrows";

it("rows with a start and a duration are slices", () => {
  expect(isTrack(["name", "ts", "dur"])).toBe(true);
  expect(isTrack(["name", "ts"])).toBe(false);
  const answer = {
    columns: ["op", "ts", "dur"],
    rows: [
      ["b", 20, 5],
      ["a", 10, 3],
      ["none", null, 3],
    ],
  };
  expect(slicesOf(answer)).toEqual([
    { start: 10, end: 13, name: "a" },
    { start: 20, end: 25, name: "b" },
  ]);
  expect(slicesOf({ columns: ["name"], rows: [["x"]] })).toEqual([]);
});

it("slices that overlap get lanes of their own", () => {
  const slice = (start: number, end: number) => ({ start, end, name: "" });
  const lanes = lanesOf([slice(0, 10), slice(5, 8), slice(10, 12), slice(6, 7)], 2);
  expect(lanes.map((lane) => lane.map((one) => one.start))).toEqual([[0, 10], [5]]);
});
