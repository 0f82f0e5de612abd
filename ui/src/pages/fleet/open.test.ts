import { expect, test } from "vitest";
import type { FleetSteps } from "../../lib/schema";
import { spanOf } from "./open";

const map = { first: [3, 5], last: [4, 5], numbered: true } as FleetSteps;
const step = (index: number, host: number, start: number, counted = true) => ({ index, host, start_ns: start, end_ns: start + 10, counted });
const timeline = { hosts: ["a", "b"], steps: [step(3, 0, 0), step(3, 1, 100), step(4, 1, 110), step(5, 1, 120)] };

test("a column is the time of its steps on that host", () => {
  expect(spanOf(timeline, map, "b", 0)).toEqual({ from: 100, to: 120 });
  expect(spanOf(timeline, map, "b", 1)).toEqual({ from: 120, to: 130 });
  expect(spanOf(timeline, map, "a", 1)).toBeNull();
  expect(spanOf(timeline, map, "unknown", 0)).toBeNull();
});

test("steps without numbers are counted, without warm-up", () => {
  const counted = { hosts: ["a"], steps: [step(900, 0, 0, false), step(901, 0, 10), step(902, 0, 20)] };
  expect(spanOf(counted, { ...map, first: [1], last: [1], numbered: false }, "a", 0)).toEqual({ from: 20, to: 30 });
});
