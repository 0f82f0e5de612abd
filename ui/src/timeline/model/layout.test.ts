import { describe, expect, it } from "vitest";
import { arrange, emptyArrangement, HEADER, itemAt, matches, move, ROW, rowAt, trackOrder } from "./layout";
import type { Timeline, Track } from "./types";

function track(id: number, process: number, name: string, rows = 1, kind: Track["kind"] = "thread"): Track {
  return { id, process, name, kind, rows, events: 1, start_ns: 0, end_ns: 1, busy_ns: id };
}

function timeline(): Timeline {
  return {
    origin_unix_ns: null,
    start_ns: 0,
    end_ns: 100,
    hosts: ["a", "b"],
    origin: "none",
    steps: [],
    processes: [
      { id: 1, host: 0, name: "GPU 0", kind: "device" },
      { id: 2, host: 0, name: "python", kind: "host" },
      { id: 3, host: 1, name: "python", kind: "host" },
    ],
    tracks: [
      track(10, 1, "stream 7"),
      track(30, 3, "main", 2),
      track(11, 1, "memory", 1, "counter"),
      track(20, 2, "main", 3),
      track(21, 2, "deep", 90),
    ],
  };
}

const slot = (layout: ReturnType<typeof arrange>, s: number) => [...layout.slots.subarray(s * 4, s * 4 + 4)];

describe("layout", () => {
  it("stands hosts, processes and tracks under one another without gaps", () => {
    const layout = arrange(timeline(), emptyArrangement());
    expect(layout.items.map((i) => `${i.kind}:${i.label}`)).toEqual([
      "host:a",
      "process:GPU 0",
      "track:stream 7",
      "track:memory",
      "process:python",
      "track:main",
      "track:deep",
      "host:b",
      "process:python",
      "track:main",
    ]);
    let y = 0;
    for (const item of layout.items) {
      expect(item.y).toBe(y);
      y += item.height;
    }
    expect(layout.height).toBe(y);
    expect(layout.hosts).toEqual([
      { host: 0, y: 0, end: layout.items[7]?.y },
      { host: 1, y: layout.items[7]?.y, end: layout.height },
    ]);
  });
  it("squeezes deep tracks, opens them on request", () => {
    const closed = arrange(timeline(), emptyArrangement());
    expect(slot(closed, 4)[1]).toBe(2);
    expect(closed.items[6]?.folded).toBe(true);
    const open = arrange(timeline(), { ...emptyArrangement(), toggled: new Set(["t21"]) });
    expect(slot(open, 4)[1]).toBe(ROW);
    expect(slot(open, 4)[2]).toBe(90);
  });
  it("keeps thin lines of a folded process", () => {
    const layout = arrange(timeline(), { ...emptyArrangement(), toggled: new Set(["p1"]) });
    expect(layout.items.some((i) => i.id === 10 && i.kind === "track")).toBe(false);
    expect(slot(layout, 0)[2]).toBe(1);
    expect(slot(layout, 0)[3]).toBe(0);
    expect(slot(layout, 2)[3]).toBe(-1);
    expect(layout.items[1]?.height).toBeGreaterThanOrEqual(HEADER);
  });
  it("pins tracks to the top and takes them from their place", () => {
    const layout = arrange(timeline(), { ...emptyArrangement(), pinned: [20, 999] });
    expect(layout.items[0]).toMatchObject({ id: 20, pinned: true, y: 0 });
    expect(layout.pinnedHeight).toBe(layout.items[0]?.height);
    expect(layout.items.filter((i) => i.kind === "track" && i.id === 20)).toHaveLength(1);
    expect(slot(layout, 3)[3]).toBe(1);
  });
  it("filters by the names of track and process", () => {
    const layout = arrange(timeline(), { ...emptyArrangement(), filter: "python -deep" });
    expect(layout.items.filter((i) => i.kind === "track").map((i) => i.id)).toEqual([20, 30]);
    expect(matches("", "anything")).toBe(true);
    expect(matches("STREAM 7", "stream 7")).toBe(true);
    expect(matches("stream 8", "stream 7")).toBe(false);
  });
  it("reorders tracks within their process", () => {
    const t = timeline();
    const moved = move(t, emptyArrangement(), 21, 20);
    expect(trackOrder(t, moved, 2)).toEqual([21, 20]);
    const back = move(t, moved, 21, null);
    expect(trackOrder(t, back, 2)).toEqual([20, 21]);
    expect(move(t, moved, 21, 10)).toBe(moved);
    expect(move(t, moved, 404, null)).toBe(moved);
  });
  it("finds what is under the pointer", () => {
    const layout = arrange(timeline(), emptyArrangement());
    const main = layout.items[5];
    expect(itemAt(layout, (main?.y ?? 0) + 30, false)?.id).toBe(20);
    expect(rowAt(layout, 3, (main?.y ?? 0) + 2 + ROW * 1.5)).toBe(1);
    expect(rowAt(layout, 3, 1e6)).toBe(2);
    expect(itemAt(layout, 1e9, false)).toBeUndefined();
  });
});
