import { describe, expect, it } from "vitest";
import type { Source } from "./net";
import { firstFrom, firstNamed, matcher, Search } from "./search";

const hit = (i: number) => ({ track: 1, event: i, name: `op ${i}`, row: 0, category: 0, start_ns: i, dur_ns: 1 });

function source(total: number, asked: number[] = []): Source {
  return {
    search: (_text: string, offset: number, limit: number) => {
      asked.push(offset);
      const n = Math.max(0, Math.min(limit, total - offset));
      return Promise.resolve({ total, names: 2, hits: Array.from({ length: n }, (_, i) => hit(offset + i)), density: [600, 0, 600] });
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
  it("counts what lies before a moment", () => {
    expect(firstFrom([1, 2, 3, 4], 0.5)).toBe(3);
    expect(firstFrom([1, 2, 3, 4], -1)).toBe(0);
    expect(firstFrom([1, 2, 3, 4], 9)).toBe(10);
  });
});

it("the first hit to show is called like the text, and does not only contain it", () => {
  const hits = ["dense/MatMul/ReadVariableOp:ReadVariableOp", "dense/MatMul_1:MatMul", "my_dense/MatMul:MatMul", "f/dense/MatMul:MatMul"].map((name) => ({ name }));
  expect(firstNamed("dense/matmul", hits)).toBe(3);
  expect(firstNamed("train_step", [{ name: "train_step_2" }, { name: "PjitFunction(train_step)" }])).toBe(1);
  expect(firstNamed("dense", hits)).toBe(0);
});
