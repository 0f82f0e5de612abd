import { describe, expect, it, vi } from "vitest";
import { frame } from "./testframe";
import { TileStore, type StoreOptions } from "./store";
import { decode, type Chunk } from "./tiles";

const TRACKS = [100, 101, 102];

function answer(level: number, tile: number, tracks: number[]): ArrayBuffer {
  return frame(
    level,
    tile,
    tracks.map((track) => ({ track, row: 0, start: 0, end: 9, name: 1, event: 0 })),
    { 1: "x" },
    tracks,
  );
}

function chunk(level: number, tile: number, tracks = TRACKS): Chunk {
  return decode(
    answer(level, tile, tracks),
    (id) => TRACKS.indexOf(id),
    () => 0,
  );
}

function setup(options: Partial<StoreOptions> = {}) {
  const asked: { level: number; tile: number; tracks: number[]; signal: AbortSignal; reply: () => void }[] = [];
  const store = new TileStore({
    maxBytes: 1e9,
    maxRequests: 8,
    trackIds: TRACKS,
    hueOf: () => 0,
    onTile: () => {},
    onError: () => {},
    onForget: () => {},
    fetch: (level, tile, tracks, signal) =>
      new Promise((resolve, reject) => {
        asked.push({ level, tile, tracks, signal, reply: () => resolve(answer(level, tile, tracks)) });
        signal.addEventListener("abort", () => reject(new Error("aborted")));
      }),
    ...options,
  });
  return { store, asked };
}

const settle = () => new Promise((resolve) => setTimeout(resolve, 0));

describe("requests", () => {
  it("bundle all tracks of a tile and leave out what is here or on its way", async () => {
    const { store, asked } = setup();
    store.want({ level: 10, first: 4, last: 6, slots: [0, 1] }, 100);
    expect(asked.map((a) => [a.tile, a.tracks])).toEqual([
      [5, [100, 101]],
      [4, [100, 101]],
      [6, [100, 101]],
    ]);
    store.want({ level: 10, first: 4, last: 6, slots: [0, 1, 2] }, 100);
    expect(asked.slice(3).map((a) => [a.tile, a.tracks])).toEqual([
      [5, [102]],
      [4, [102]],
      [6, [102]],
    ]);
    for (const a of asked) a.reply();
    await settle();
    expect(store.complete()).toBe(true);
    expect(store.part(10, 4, 2)?.track).toBe(102);
  });
  it("are aborted when what they bring scrolled away", async () => {
    const { store, asked } = setup();
    store.want({ level: 10, first: 4, last: 5, slots: [0] }, 100);
    store.want({ level: 10, first: 40, last: 41, slots: [0] }, 100);
    expect(asked.slice(0, 2).every((a) => a.signal.aborted)).toBe(true);
    expect(asked.slice(2).some((a) => a.signal.aborted)).toBe(false);
    await settle();
    expect(store.complete()).toBe(false);
  });
  it("fetch the neighbours when nothing visible is missing", async () => {
    const { store, asked } = setup();
    store.want({ level: 10, first: 4, last: 4, slots: [0] }, 4);
    asked[0]?.reply();
    await settle();
    store.want({ level: 10, first: 4, last: 4, slots: [0] }, 4);
    expect(asked.slice(1).map((a) => [a.level, a.tile])).toEqual([
      [10, 3],
      [11, 2],
    ]);
  });
  it("report a failure once and do not hammer the server", async () => {
    const onError = vi.fn();
    const fetch = vi.fn(() => Promise.reject(new Error("no")));
    const { store } = setup({ onError, fetch });
    store.want({ level: 1, first: 0, last: 0, slots: [0] }, 0);
    await settle();
    store.want({ level: 1, first: 0, last: 0, slots: [0] }, 0);
    await settle();
    expect(onError).toHaveBeenCalledTimes(1);
    expect(fetch.mock.calls.filter((call) => (call as unknown[])[0] === 1)).toHaveLength(1);
  });
});

describe("substitutes", () => {
  it("are the nearest coarser level, else what is there of finer ones", () => {
    const { store } = setup();
    store.add(chunk(14, 0));
    store.add(chunk(12, 1));
    const found: string[] = [];
    const note = (part: { chunk: Chunk }) => found.push(`${part.chunk.level}/${part.chunk.tile}`);
    store.substitute(10, 5, 0, note);
    expect(found).toEqual(["12/1"]);
    found.length = 0;
    store.substitute(10, 3, 0, note);
    expect(found).toEqual(["14/0"]);
    found.length = 0;
    const fine = setup().store;
    fine.add(chunk(9, 11));
    fine.substitute(10, 5, 0, note);
    expect(found).toEqual(["9/11"]);
  });
});

describe("the cache", () => {
  it("forgets what was drawn longest ago, never what is on the screen nor the kept level", () => {
    const size = chunk(10, 0).bytes;
    const forgotten: number[] = [];
    const { store } = setup({ maxBytes: size * 3, onForget: (c) => forgotten.push(c.tile) });
    store.keepLevel(20);
    store.add(chunk(20, 0));
    for (let tile = 1; tile <= 2; tile += 1) {
      store.nextFrame();
      store.add(chunk(10, tile));
    }
    store.nextFrame();
    const first = store.part(10, 1, 0)?.chunk;
    if (first) store.touch(first);
    store.nextFrame();
    store.add(chunk(10, 3));
    expect(forgotten).toEqual([2]);
    expect(store.part(20, 0, 0)).toBeDefined();
    expect(store.part(10, 2, 0)).toBeUndefined();
    expect(store.bytes).toBeLessThanOrEqual(size * 3 + 64);
    store.close();
    expect(store.bytes).toBe(0);
    expect(forgotten).toHaveLength(4);
  });
});
