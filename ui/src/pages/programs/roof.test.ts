import { describe, expect, test } from "vitest";
import { roofsOf } from "./roof";

describe("roofs", () => {
  test("each level of memory with a known rate has a slope, the slowest first", () => {
    const peaks = {
      matrix_flops_per_s: { bf16: 9e14, f32: 9e14, f64: null },
      memory_bytes_per_s: 1.6e12,
      on_chip_read_bytes_per_s: 2.3e13,
    };
    expect(roofsOf({ peaks })).toEqual({
      levels: [
        { label: "HBM", rate: 1.6e12 },
        { label: "VMEM", rate: 2.3e13 },
      ],
      matrix: [{ label: "bf16, f32", flops: 9e14 }],
    });
    expect(roofsOf({ peaks: { ...peaks, on_chip_read_bytes_per_s: null } }).levels).toHaveLength(1);
  });

  test("what is unknown has no slope", () => {
    expect(roofsOf({ peaks: null })).toEqual({ levels: [], matrix: [] });
  });
});
