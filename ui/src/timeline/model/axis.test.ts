import { describe, expect, it } from "vitest";
import { axisText, moment, tickLabel, ticks, tickStep } from "./axis";

describe("ticks", () => {
  it("are round from picoseconds to minutes", () => {
    expect(tickStep(0.003)).toBeCloseTo(0.005, 9);
    expect(tickStep(1)).toBe(1);
    expect(tickStep(1.1)).toBe(2);
    expect(tickStep(3e3)).toBe(5e3);
    expect(tickStep(6e6)).toBe(10e6);
    expect(tickStep(12e9)).toBe(15e9);
    expect(tickStep(61e9)).toBe(120e9);
    expect(tickStep(1e14)).toBe(1e14);
  });
  it("lie inside the window and are never more than there is room for", () => {
    const out = new Float64Array(4);
    expect(ticks({ start: 11, end: 36 }, 10, out)).toBe(2);
    expect([...out.subarray(0, 2)]).toEqual([20, 30]);
    expect(ticks({ start: 0, end: 1e9 }, 1, out)).toBe(4);
  });
  it("are labelled in the unit of their distance", () => {
    const wide = axisText({ start: 0, end: 90e6 }, 10e6);
    expect(tickLabel(20e6, wide)).toBe("20 ms");
    const tenths = axisText({ start: 0, end: 2e9 }, 200e6);
    expect(tickLabel(400e6, tenths)).toBe("400 ms");
    const fine = axisText({ start: 44e6, end: 45e6 }, 500e3);
    expect(tickLabel(44.5e6, fine)).toBe("44.5 ms");
    const minutes = axisText({ start: 0, end: 600e9 }, 60e9);
    expect(tickLabel(90e9, minutes)).toBe("1:30 min");
    const tiny = axisText({ start: 0, end: 0.05 }, 0.005);
    expect(tickLabel(0.005, tiny)).toBe("5 ps");
  });
  it("count from a base where a full time would be too long", () => {
    const deep = axisText({ start: 12_345_678_901, end: 12_345_679_901 }, 100);
    expect(deep.base).toBe(12_345_678_000);
    expect(tickLabel(12_345_679_000, deep)).toBe("+1000 ns");
    expect(moment(deep.base)).toBe("12.345 678 000 s");
    expect(moment(-1.5e9)).toBe("−1.500 000 000 s");
  });
});
