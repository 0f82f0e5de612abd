import { expect, it } from "vitest";
import type { View } from "../../server/views";
import { column } from "../../table/view";
import { roofline } from "../kernels/roof";
import { peaksOf, works } from "./roof";

const view = (rows: number, ...columns: ReturnType<typeof column>[]): View => ({
  view: "ops",
  headline: null,
  notes: [],
  rows,
  columns,
  members: {},
  ways: [],
});

it("only ops with known operations and bytes are dots", () => {
  const ops = view(
    3,
    column("name", "", "name", ["fusion", "copy", "call"]),
    column("flops_per_s", "", "short", [4e12, 0, null]),
    column("bytes_per_s", "", "bytes", [2e11, 1e11, 1e9]),
    column("fraction", "", "percent", [0.5, 0.2, null]),
  );
  expect(works(ops)).toEqual([{ name: "fusion", flops: 4e12, intensity: 20, share: 0.5 }]);
});

it("peaks are the first device's, highest first, and unknown ones are no roof", () => {
  const device = { device: "0", name: "A100", fp32: 19.5, tf32: null, fp16: 312, memory_bytes_per_s: 1.5e12 };
  expect(peaksOf([{ ...device, fp32: null, fp16: null }, device])).toEqual({
    memory: 1.5e12,
    roofs: [
      { label: "FP16", flops: 312e12 },
      { label: "FP32", flops: 19.5e12 },
    ],
  });
  expect(peaksOf([])).toBeNull();
});

it("kernels need counters and both peaks", () => {
  const columns = (peak: number | null) => [
    column("name", "", "name", ["gemm"]),
    column("fraction", "", "percent", [1]),
    column("flops_per_s", "", "short", [1e12]),
    column("flops_per_byte", "", "short", [8]),
    column("peak_flops_per_s", "", "short", [peak]),
    column("peak_bytes_per_s", "", "bytes", [1e12]),
  ];
  expect(roofline(view(1, ...columns(2e13)))).toEqual({
    works: [{ name: "gemm", flops: 1e12, intensity: 8, share: 1 }],
    peaks: { memory: 1e12, roofs: [{ label: "FP32", flops: 2e13 }] },
  });
  expect(roofline(view(1, ...columns(null)))).toBeNull();
});
