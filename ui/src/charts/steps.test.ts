import { expect, it } from "vitest";
import { histogram } from "./histogram";
import { ceiling, merge, quantile, ticks } from "./steps";
import type { Step } from "../server/types";

const steps = (durations: number[]): Step[] =>
  durations.map((duration_ms, index) => ({
    index,
    name: "train",
    start_ms: index,
    duration_ms,
    breakdown: { compute: duration_ms / 2, ...(index % 2 ? { input: 1 } : {}) },
  }));

it("keeps every step as a bar while there is room", () => {
  const bars = merge(steps([1, 2, 3]), 10);
  expect(bars.map((bar) => bar.duration)).toEqual([1, 2, 3]);
  expect(bars[1]?.parts).toEqual({ compute: 1, input: 1 });
});

it("merges neighbours into true means, never loses a step, and never draws too many bars", () => {
  const all = steps(Array.from({ length: 5001 }, (_, index) => index));
  const bars = merge(all, 2000);
  expect(bars.length).toBeLessThanOrEqual(2000);
  expect(bars[0]?.duration).toBe(1);
  expect(bars[0]?.parts).toEqual({ compute: 0.5, input: 1 / 3 });
  expect(bars.reduce((sum, bar) => sum + bar.to - bar.from, 0)).toBe(5001);
  const weighed = bars.reduce((sum, bar) => sum + bar.duration * (bar.to - bar.from), 0);
  expect(weighed).toBeCloseTo((5000 * 5001) / 2, 3);
  expect(bars.at(-1)?.last.index).toBe(5000);
});

it("cuts what towers over all others, and nothing else", () => {
  expect(ceiling([10, 11, 10, 12, 10, 11, 10, 10, 11, 10, 500])).toEqual({ top: 18, cut: true });
  expect(ceiling([10, 20, 25, 12, 18])).toEqual({ top: 25, cut: false });
  expect(ceiling([])).toEqual({ top: 0, cut: false });
});

it("finds quantiles between neighbours", () => {
  expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5);
  expect(quantile([7], 0.9)).toBe(7);
  expect(quantile([], 0.5)).toBe(0);
});

it("marks axes with round numbers", () => {
  expect(ticks(44.4, 4)).toEqual([0, 10, 20, 30, 40]);
  expect(ticks(9.5, 4)).toEqual([0, 2, 4, 6, 8]);
  expect(ticks(0.3, 3)).toEqual([0, 0.1, 0.2, 0.3]);
  expect(ticks(0, 4)).toEqual([0]);
});

it("bins hold every value, also far ones and equal ones", () => {
  const sum = (shares: number[] | undefined) => (shares ?? []).reduce((a, b) => a + b, 0);
  const far = histogram([
    [10, 11, 12, 11, 10, 11, 12, 10, 11, 12, 10, 11, 12, 11, 10, 11, 12, 10, 11, 12, 10, 11, 12, 5000],
  ]);
  expect(sum(far.shares[0])).toBeCloseTo(1);
  expect(far.beyond).toBe(1);
  expect(far.high).toBeLessThan(100);
  const same = histogram([[5, 5, 5], [5]]);
  expect(same.shares.map(sum)).toEqual([expect.closeTo(1), expect.closeTo(1)]);
  expect(histogram([[]]).shares[0]?.length).toBeGreaterThan(0);
});
