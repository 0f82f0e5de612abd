import { expect, it } from "vitest";
import { average, busyShares, counterShares, deviceSlots } from "./lanes";
import { frame } from "./testframe";
import { decode } from "./tiles";
import type { Timeline } from "./types";
import { tileNs } from "./view";

const part = (spans: Parameters<typeof frame>[2], samples: Parameters<typeof frame>[5] = []) => {
  const chunk = decode(
    frame(10, 0, spans, { 1: "gemm" }, [3], samples),
    () => 0,
    () => 0,
  );
  return chunk.parts;
};
const bounds = { start: 0, end: tileNs(10) };
const span = (start: number, end: number, more = {}) => ({ track: 3, row: 0, start, end, name: 1, event: 0, ...more });

it("a device's lane is full where it ran, empty where it idled, and between where it did both", () => {
  const parts = part([span(0, 512), span(512, 640, { category: 9 }), span(768, 1024, { count: 10, busy: 64 })]);
  expect([...busyShares(parts, bounds, 4, new Set([9]))]).toEqual([1, 1, 0, 0.25]);
});

it("streams that run at once fill no more than everything", () => {
  const parts = [...part([span(0, 1024)]), ...part([span(0, 512)])];
  expect([...busyShares(parts, bounds, 2)]).toEqual([1, 1]);
});

it("a counter holds its value until the next", () => {
  const sample = (at: number, value: number) => ({ track: 3, at, minimum: value, maximum: value });
  expect([...counterShares(part([], [sample(300, 50), sample(900, 0)]), bounds, 4, 100)]).toEqual([0, 0.5, 0.5, 0]);
});

it("many devices are one lane, their average", () => {
  expect([...average([new Float32Array([1, 0]), new Float32Array([0, 0.5])])]).toEqual([0.5, 0.25]);
});

it("what is derived or counted is no work of a device", () => {
  const track = (process: number, kind: string, events = 1) => ({ process, kind, events });
  const timeline = {
    processes: [
      { id: 0, kind: "device" },
      { id: 1, kind: "host" },
      { id: 2, kind: "device" },
    ],
    tracks: [
      track(0, "stream"),
      track(0, "derived"),
      track(1, "stream"),
      track(2, "counter"),
      track(0, "stream"),
      track(2, "stream", 0),
    ],
  } as unknown as Timeline;
  expect(deviceSlots(timeline)).toEqual([[0, 4]]);
});
