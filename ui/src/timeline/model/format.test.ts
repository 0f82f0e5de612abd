import { expect, it } from "vitest";
import { duration } from "./format";

it("minutes are not fractions", () => {
  expect(duration(89.52e9)).toBe("89.52 s");
  expect(duration(200e9)).toBe("3 min 20 s");
  expect(duration(125_000e9)).toBe("34 h 43 min");
  expect(duration(17_500)).toBe("17.5 µs");
});
