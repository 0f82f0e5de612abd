import { describe, expect, it } from "vitest";
import {
  approach,
  bucketNs,
  clamp,
  fit,
  levelFor,
  opening,
  pan,
  reveal,
  tileNs,
  tilesOf,
  timeAt,
  xAt,
  zoom,
} from "./view";

const bounds = { start: 0, end: 1_000_000 };

describe("levels", () => {
  it("takes the coarsest bucket that is not wider than a pixel", () => {
    for (const nsPerPx of [0.001, 0.0015, 1, 3.7, 1024, 1e6, 5e9]) {
      const level = levelFor(nsPerPx);
      expect(bucketNs(level)).toBeLessThanOrEqual(nsPerPx * (1 + 1e-9));
      expect(bucketNs(level + 1)).toBeGreaterThan(nsPerPx);
    }
  });
  it("is not thrown off by powers of two and by nonsense", () => {
    expect(levelFor(2 ** 13 / 1000)).toBe(13);
    expect(levelFor(0)).toBe(0);
    expect(levelFor(Number.NaN)).toBe(0);
    expect(levelFor(1e-9)).toBe(0);
    expect(levelFor(1e300)).toBe(62);
  });
  it("names the tiles a window touches, within what was recorded", () => {
    const width = tileNs(10);
    expect(tilesOf({ start: width * 1.5, end: width * 3.5 }, 10, bounds)).toEqual({ first: 1, last: 3 });
    expect(tilesOf({ start: -5 * width, end: width }, 10, bounds)).toEqual({ first: 0, last: 0 });
    const { last } = tilesOf({ start: 0, end: 1e12 }, 10, bounds);
    expect(last).toBe(Math.ceil(1e6 / width) - 1);
    expect(tilesOf({ start: 2e6, end: 3e6 }, 10, bounds).last).toBe(-1);
  });
});

describe("windows", () => {
  it("zooms about a point that stays where it is", () => {
    const before = { start: 1000, end: 3000 };
    const after = zoom(before, 1500, 0.5);
    expect(after.end - after.start).toBe(1000);
    expect(xAt(after, 1500, 800)).toBeCloseTo(xAt(before, 1500, 800), 9);
  });
  it("zooms in no further than the narrowest window", () => {
    const after = zoom({ start: 10, end: 12 }, 11, 1e-9);
    expect(after.end - after.start).toBe(1);
  });
  it("clamps to what was recorded and keeps the width", () => {
    const window = clamp({ start: -500_000, end: -400_000 }, bounds);
    expect(window.end - window.start).toBeCloseTo(100_000, 6);
    expect(window.start).toBeCloseTo(-5000, 6);
    const all = clamp({ start: -1e9, end: 1e9 }, bounds);
    expect(all.end - all.start).toBeLessThan(1.2e6);
    expect((all.start + all.end) / 2).toBeCloseTo(500_000, 3);
  });
  it("survives a session without a duration", () => {
    const window = clamp({ start: 0, end: 0 }, { start: 5, end: 5 });
    expect(window.end).toBeGreaterThan(window.start);
  });
  it("fits a span into its share of the width", () => {
    const window = fit({ start: 100, end: 160 }, 0.6);
    expect(window).toEqual({ start: 80, end: 180 });
  });
  it("opens on the steps where they are a sliver of the recording", () => {
    const step = (start_ns: number, end_ns: number, counted = true) => ({ start_ns, end_ns, counted });
    const whole = { start: 0, end: 1000 };
    expect(opening(whole, [])).toBe(whole);
    expect(opening(whole, [step(100, 500), step(500, 900)])).toBe(whole);
    expect(opening(whole, [step(0, 10, false), step(800, 840), step(840, 890)])).toEqual({ start: 795, end: 895 });
  });
  it("moves only when something is out of sight", () => {
    const window = { start: 0, end: 100 };
    expect(reveal(window, { start: 10, end: 20 })).toBe(window);
    expect(reveal(window, { start: -10, end: 200 })).toBe(window);
    const moved = reveal(window, { start: 200, end: 210 });
    expect(moved).toEqual({ start: 155, end: 255 });
    const long = reveal(window, { start: 300, end: 900 });
    expect(long.start).toBeLessThan(300);
    expect(long.end - long.start).toBeCloseTo(100);
  });
  it("turns pixels into times and back", () => {
    const window = { start: 50, end: 250 };
    expect(timeAt(window, xAt(window, 77, 640), 640)).toBeCloseTo(77, 9);
    expect(pan(window, -50)).toEqual({ start: 0, end: 200 });
  });
  it("lands where it was sent", () => {
    let window = { start: 0, end: 100 };
    const goal = { start: 5000, end: 5001 };
    for (let i = 0; i < 200; i += 1) window = approach(window, goal, 16);
    expect(window).toEqual(goal);
  });
});
