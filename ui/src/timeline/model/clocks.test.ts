import { expect, it } from "vitest";
import { canAlign, difference, shiftLabel, shiftSentence, whyNot } from "./clocks";
import { moveLink, read } from "../input/deeplink";
import type { Timeline } from "./types";

const reference = { reference: true, shift_ns: 0, uncertainty_ns: 0, collectives: 0, unknown: null };
const moved = { reference: false, shift_ns: -1_250_000, uncertainty_ns: 3_000, collectives: 240, unknown: null };
const lost = {
  reference: false,
  shift_ns: null,
  uncertainty_ns: null,
  collectives: null,
  unknown: "only 2 collectives shared with the other hosts",
};
const timeline = (clock: "aligned" | "recorded", clocks: Timeline["clocks"], shifts: number[]) =>
  ({ clock, clocks, shifts_ns: shifts }) as unknown as Timeline;

it("says how far a host was moved and how sure that is", () => {
  const drawn = timeline("aligned", [reference, moved, lost], [0, 0, 0]);
  expect([0, 1, 2].map((host) => shiftLabel(drawn, host))).toEqual([
    "reference clock",
    "−1.25 ms ±3 µs",
    "clock unknown",
  ]);
  expect(shiftSentence(drawn, 1)).toBe(
    "Its times are moved by −1.25 ms (±3 µs, from the ends of 240 common collectives).",
  );
  expect(shiftSentence(drawn, 2)).toContain("unknown: only 2 collectives");
  const recorded = timeline("recorded", [reference, moved, lost], [0, 0, 0]);
  expect([0, 1, 2].map((host) => shiftLabel(recorded, host))).toEqual(["", "", ""]);
  expect(shiftSentence(recorded, 1)).toContain("would move by −1.25 ms");
});

it("offers alignment only where something is known, and says why not", () => {
  expect(canAlign(timeline("aligned", [reference, moved], [0, 0]))).toBe(true);
  expect(canAlign(timeline("recorded", [reference, lost], [0, 0]))).toBe(false);
  expect(whyNot(timeline("recorded", [reference, lost], [0, 0]))).toContain("only 2 collectives");
  expect(whyNot(timeline("recorded", null, [0]))).toBeNull();
});

it("moves a link with the reference, so that it shows the same", () => {
  const by = difference(
    timeline("aligned", [moved, reference], [0, 250]),
    timeline("recorded", [moved, reference], [0, 1000]),
  );
  expect(by).toBe(750);
  const query = moveLink(
    { view: "100~200", marks: "1~2!3~4", area: "5~6~7", sel: "1.2", from: "10", to: "20", other: "kept" },
    by,
  );
  const state = read(query);
  expect(state.window).toEqual({ start: 850, end: 950 });
  expect(state.marks).toEqual([
    { start: 751, end: 752 },
    { start: 753, end: 754 },
  ]);
  expect(state.area).toEqual({ start: 755, end: 756, tracks: [7] });
  expect(state.place).toEqual({ start: 760, end: 770 });
  expect(query.other).toBe("kept");
});
