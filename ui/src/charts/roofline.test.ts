import { expect, it } from "vitest";
import { along, around, axes, bound, decades, limit, type Peaks } from "./roofline";

const peaks: Peaks = {
  memory: 1e12,
  roofs: [
    { label: "FP16", flops: 1e14 },
    { label: "FP32", flops: 2e13 },
  ],
};

it("memory limits work of low intensity, arithmetic the rest", () => {
  expect(limit(peaks, 10)).toBe(1e13);
  expect(limit(peaks, 1000)).toBe(1e14);
  expect(bound(peaks, { name: "copy", flops: 5e12, intensity: 10, share: 1 })).toEqual({ by: "memory", share: 0.5 });
  expect(bound(peaks, { name: "gemm", flops: 8e13, intensity: 1000, share: 1 })).toEqual({
    by: "arithmetic",
    share: 0.8,
  });
});

it("axes hold every dot and the bends of the roof", () => {
  const { x, y } = axes(peaks, [{ name: "a", flops: 3e9, intensity: 0.02, share: 1 }]);
  expect([x.low, x.high]).toEqual([0.01, 100]);
  expect([y.low, y.high]).toEqual([1e9, 1e14]);
  expect(along(x, 1)).toBeCloseTo(0.5);
  expect(decades({ low: 0.1, high: 100 }).map((value) => Math.log10(value))).toEqual([-1, 0, 1, 2]);
  expect(around([])).toEqual({ low: 0.1, high: 10 });
  expect(around([10, 10])).toEqual({ low: 10, high: 100 });
});
