import { expect, it } from "vitest";
import { scarce } from "./scarce";

it("a recording is scarce only where nothing in it was recorded as it ran", () => {
  expect(scarce(["counters"])).toBe("counters");
  expect(scarce(["samples"])).toBe("samples");
  expect(scarce(["run-samples", "counters"])).toBe("counters");
  expect(scarce(["samples", "timeline"])).toBeNull();
  expect(scarce(["runs"])).toBeNull();
  expect(scarce([])).toBeNull();
});
