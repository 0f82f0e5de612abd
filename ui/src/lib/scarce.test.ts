import { expect, it } from "vitest";
import { scarce } from "./scarce";

it("a recording is scarce only where nothing in it was recorded as it ran", () => {
  expect(scarce(["ncu"])).toBe("counters");
  expect(scarce(["nvidia-smi"])).toBe("samples");
  expect(scarce(["nvidia-smi", "ncu"])).toBe("counters");
  expect(scarce(["nvidia-smi", "xplane"])).toBeNull();
  expect(scarce([])).toBeNull();
});
