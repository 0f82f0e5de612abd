import { describe, expect, it } from "vitest";
import type { Source } from "../model/net";
import type { Scene } from "./scene";
import { firstFrom, markHits, matcher, Search } from "./search";

const hit = (i: number, whole: boolean) => ({
  track: 1,
  event: i,
  name: `op ${i}`,
  row: 0,
  category: 0,
  start_ns: i,
  dur_ns: 1,
  whole,
});

function source(total: number, asked: number[] = [], whole = -1): Source {
  return {
    search: (_text: string, offset: number, limit: number) => {
      asked.push(offset);
      const n = Math.max(0, Math.min(limit, total - offset));
      return Promise.resolve({
        total,
        names: 2,
        name_ids: [4, 9],
        hits: Array.from({ length: n }, (_, i) => hit(offset + i, offset + i === whole)),
        density: [600, 0, 600],
      });
    },
  } as unknown as Source;
}

describe("search", () => {
  it("matches names as the server does", () => {
    expect(matcher("matmul")?.("BatchMatMulV2")).toBe(true);
    expect(matcher("/^mat/")?.("MatMul")).toBe(true);
    expect(matcher("/^mat/")?.("BatchMatMul")).toBe(false);
    expect(matcher("/(/")).toBeNull();
    expect(matcher("")).toBeNull();
  });
  it("starts from what is in sight and goes round", async () => {
    const asked: number[] = [];
    const search = new Search(source(1200, asked));
    await search.start("op");
    expect((await search.step(1, 0.5))?.event).toBe(600);
    expect((await search.step(-1, 0))?.event).toBe(599);
    for (let i = 0; i < 601; i += 1) await search.step(1, 0);
    expect(search.at).toBe(0);
    expect(asked).toEqual([0, 500, 1000]);
    expect((await search.step(-1, 0))?.event).toBe(1199);
  });
  it("has nothing to step to without hits", async () => {
    const search = new Search(source(0));
    await search.start("nothing");
    expect(await search.step(1, 0)).toBeNull();
    await search.start("");
    expect(search.active).toBe(false);
  });
  it("goes to the first hit that is called like the text, else to the first", async () => {
    const search = new Search(source(1200, [], 7));
    await search.start("op");
    expect((await search.first())?.event).toBe(7);
    expect(search.at).toBe(7);
    const parts = new Search(source(3));
    await parts.start("op");
    expect((await parts.first())?.event).toBe(0);
    const none = new Search(source(0));
    await none.start("op");
    expect(await none.first()).toBeNull();
  });
  it("marks what the server found, whatever its shown name", async () => {
    const search = new Search(source(1));
    await search.start("dense/MatMul");
    const chunk = {
      spans: 3,
      names: new Map([
        [4, "FusedMatMul"],
        [5, "dense/MatMul"],
      ]),
      name: Uint32Array.of(4, 5, 4),
      hit: new Uint8Array(3),
      hitVersion: 0,
    };
    const scene = { first: 0, last: 0, level: 0, store: { place: () => ({ chunks: [chunk] }) } };
    markHits(scene as unknown as Scene, search);
    expect([...chunk.hit]).toEqual([1, 0, 1]);
    expect(chunk.hitVersion).toBe(search.version);
  });
  it("counts what lies before a moment", () => {
    expect(firstFrom([1, 2, 3, 4], 0.5)).toBe(3);
    expect(firstFrom([1, 2, 3, 4], -1)).toBe(0);
    expect(firstFrom([1, 2, 3, 4], 9)).toBe(10);
  });
});

describe("the list of hits", () => {
  it("loads the pages that are looked at, each once", async () => {
    const asked: number[] = [];
    const search = new Search(source(1200, asked));
    await search.start("op");
    expect(search.missing(0, 500)).toEqual([]);
    expect(search.missing(490, 1010)).toEqual([1, 2]);
    const loading = [search.load(1), search.load(1), search.load(2)];
    expect(search.missing(490, 1010)).toEqual([]);
    await Promise.all(loading);
    expect(asked).toEqual([0, 500, 1000]);
    expect([
      search.loaded(499)?.event,
      search.loaded(500)?.event,
      search.loaded(1199)?.event,
      search.loaded(1200),
    ]).toEqual([499, 500, 1199, undefined]);
    expect((await search.hit(700))?.event).toBe(700);
    expect(search.at).toBe(700);
  });
  it("forgets an answer that belongs to an older text", async () => {
    const search = new Search(source(1200));
    await search.start("op");
    const late = search.load(1);
    await search.start("other");
    await late;
    expect(search.loaded(500)).toBeUndefined();
  });
});
