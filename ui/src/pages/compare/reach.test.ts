import { expect, test } from "vitest";
import { isCut, reachOf } from "./reach";

const row = (delta_ms: number, delta_low_ms: number | null, delta_high_ms: number | null) => ({
  delta_ms,
  delta_low_ms,
  delta_high_ms,
});

test("intervals fit the axis as long as changes can be seen beside them", () => {
  const rows = [row(-4, -6, -1), row(1, 0.5, 1.5)];
  expect(reachOf(rows)).toBe(6);
  expect(isCut(rows)).toBe(false);
});

test("an interval of noise does not hide the changes", () => {
  const rows = [row(-36, -36.5, 164), row(-1.7, -4, 1290)];
  expect(reachOf(rows)).toBe(72);
  expect(isCut(rows)).toBe(true);
});

test("without changes or intervals there is still an axis", () => {
  expect(reachOf([])).toBeGreaterThan(0);
  expect(reachOf([row(0, null, null)])).toBeGreaterThan(0);
  expect(isCut([row(3, null, null)])).toBe(false);
});
