import { expect, it } from "vitest";
import { anchorShift, emptySlots, sameSlots } from "./empty";
import { arrange, emptyArrangement } from "./layout";
import { frame } from "./testframe";
import { decode } from "./tiles";
import type { Timeline, Track } from "./types";
import { bucketNs } from "./view";

const bucket = bucketNs(10);
const track = (id: number, kind: Track["kind"] = "thread", end = 1024): Track => ({
  id,
  process: 1,
  name: `t${id}`,
  kind,
  rows: 1,
  events: 1,
  start_ns: 0,
  end_ns: end * bucket,
  busy_ns: 1,
});
const timeline: Timeline = {
  origin_unix_ns: null,
  start_ns: 0,
  end_ns: 1024 * bucket,
  hosts: ["a"],
  origin: "none",
  steps: [],
  processes: [{ id: 1, host: 0, name: "python", kind: "host" }],
  tracks: [track(10), track(11), track(12, "counter"), track(13, "thread", 100), track(14)],
};
const spans = (id: number, ...at: [number, number][]) =>
  at.map(([start, end]) => ({ track: id, row: 0, start, end, name: 1, event: 0 }));

it("a track is empty if its tiles show nothing in the window, and only then", () => {
  const chunk = decode(
    frame(10, 0, [...spans(10, [0, 50], [900, 950]), ...spans(11, [300, 310])], { 1: "op" }, [10, 11]),
    (id) => id - 10,
    () => 0,
  );
  const partsOf = (slot: number) => chunk.parts.filter((part) => part.slot === slot);
  const loaded = (slot: number) => (slot <= 1 ? partsOf(slot) : null);
  const window = { start: 200 * bucket, end: 400 * bucket };
  // Slot 3 ends before the window, whatever is loaded; of slot 4 nothing is known; a counter stays.
  expect([...emptySlots(timeline, window, loaded)]).toEqual([0, 3]);
  expect([...emptySlots(timeline, { start: 920 * bucket, end: 921 * bucket }, loaded)]).toEqual([1, 3]);
});

it("a hidden track takes no room, a pinned one stays", () => {
  const all = arrange(timeline, emptyArrangement());
  const some = arrange(timeline, emptyArrangement(), new Set([0, 1]));
  expect(some.items.map((item) => item.id)).toEqual([1, 12, 13, 14]);
  expect(some.height).toBeLessThan(all.height);
  expect(arrange(timeline, { ...emptyArrangement(), pinned: [10] }, new Set([0])).items[0]).toMatchObject({
    id: 10,
    pinned: true,
  });
  expect(arrange(timeline, emptyArrangement(), new Set([0, 1, 2, 3, 4])).items).toEqual([]);
});

it("what is in sight stays in its place when rows above it go", () => {
  const all = arrange(timeline, emptyArrangement());
  const some = arrange(timeline, emptyArrangement(), new Set([0]));
  const y = (layout: typeof all, id: number) =>
    layout.items.find((item) => item.kind === "track" && item.id === id)?.y ?? 0;
  expect(anchorShift(all, some, y(all, 11))).toBe(y(some, 11) - y(all, 11));
  expect(anchorShift(all, some, y(all, 11))).toBeLessThan(0);
  expect(anchorShift(all, all, 30)).toBe(0);
  expect(sameSlots(new Set([1, 2]), new Set([2, 1]))).toBe(true);
  expect(sameSlots(new Set([1]), new Set([2]))).toBe(false);
});
