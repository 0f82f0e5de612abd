import { expect, it } from "vitest";
import { dropOn, foldAll, pin, shift, toggle } from "./arrangement";
import { emptyArrangement, trackOrder } from "./layout";
import type { Timeline, Track } from "./types";

const track = (id: number, process: number): Track => ({
  id,
  process,
  name: `t${id}`,
  kind: "thread",
  rows: 1,
  events: 1,
  start_ns: 0,
  end_ns: 1,
  busy_ns: 1,
});
const timeline: Timeline = {
  origin_unix_ns: null,
  start_ns: 0,
  end_ns: 1,
  hosts: ["a"],
  origin: "none",
  steps: [],
  processes: [
    { id: 1, host: 0, name: "python", kind: "host" },
    { id: 2, host: 0, name: "GPU", kind: "device" },
  ],
  tracks: [track(10, 1), track(11, 1), track(12, 1), track(20, 2)],
};
const all = new Set([10, 11, 12, 20]);
const item = (id: number, pinned = false) => ({ id, slot: timeline.tracks.findIndex((one) => one.id === id), pinned });

it("a track moves past the next one that is shown", () => {
  const fresh = emptyArrangement();
  expect(trackOrder(timeline, shift(timeline, fresh, item(10), 1, all), 1)).toEqual([11, 10, 12]);
  expect(trackOrder(timeline, shift(timeline, fresh, item(10), 1, new Set([10, 12])), 1)).toEqual([11, 12, 10]);
  expect(trackOrder(timeline, shift(timeline, fresh, item(12), -1, new Set([10, 12])), 1)).toEqual([12, 10, 11]);
  expect(shift(timeline, fresh, item(12), 1, all)).toBe(fresh);
  expect(shift(timeline, fresh, item(20), -1, all)).toBe(fresh);
});

it("pinned tracks move among the pinned, and come back to their place", () => {
  const two = pin(pin(emptyArrangement(), 12), 20);
  expect(two.pinned).toEqual([12, 20]);
  expect(shift(timeline, two, item(20, true), -1, all).pinned).toEqual([20, 12]);
  expect(dropOn(timeline, two, 20, 12).pinned).toEqual([20, 12]);
  expect(pin(two, 12).pinned).toEqual([20]);
  // An unpinned track does not count those that are pinned elsewhere.
  expect(shift(timeline, pin(emptyArrangement(), 11), item(10), 1, all).order.get(1)).toEqual([11, 12, 10]);
});

it("folding is a difference from what is usual", () => {
  const folded = toggle(emptyArrangement(), { kind: "process", id: 1 });
  expect([...folded.toggled]).toEqual(["p1"]);
  expect([...toggle(folded, { kind: "process", id: 1 }).toggled]).toEqual([]);
  expect([...foldAll(timeline, toggle(emptyArrangement(), { kind: "track", id: 10 }), true).toggled]).toEqual([
    "t10",
    "p1",
    "p2",
  ]);
});
