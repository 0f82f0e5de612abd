import { expect, test } from "vitest";
import { modelOf } from "./device";

test("a device says once what it is", () => {
  expect(modelOf({ id: "GPU 0", name: "Tesla V100", kind: "gpu" })).toBe("Tesla V100");
  expect(modelOf({ id: "host", name: "", kind: "cpu" })).toBe("CPU");
  expect(modelOf({ id: "GPU 0", name: "GPU 0", kind: "gpu" })).toBe("GPU");
  expect(modelOf({ id: "rank1:GPU 1", name: "GPU 1", kind: "gpu" })).toBe("");
  expect(modelOf({ id: "rank1:GPU 1", name: "H100", kind: "gpu" })).toBe("H100");
});
