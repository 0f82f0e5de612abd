import { describe, expect, it } from "vitest";
import { BadTile, decode, spanAt } from "./tiles";
import { frame, type Sample, type TestSpan } from "./testframe";

const spans: TestSpan[] = [
  { track: 3, row: 0, start: -1, end: 40, name: 1, event: 5, flags: 1, category: 2 },
  { track: 3, row: 0, start: 50, end: 51, name: 2, event: 6, count: 9, busy: 0.5 },
  { track: 3, row: 2, start: 10, end: 30, name: 2, event: 7 },
  { track: 8, row: 0, start: 100, end: 1025, name: 1, event: 0, flags: 2 },
];
const samples: Sample[] = [{ track: 9, at: 4, minimum: -1, maximum: 2 }];
const slotOf = (id: number) => [3, 8, 9].indexOf(id);
const hueOf = (name: string) => name.length;

describe("tiles", () => {
  const buffer = frame(12, 7, spans, { 1: "MatMul", 2: "Add" }, [3, 8, 9], samples);
  const chunk = decode(buffer, slotOf, hueOf);

  it("are read as views into the answer", () => {
    expect(chunk).toMatchObject({ level: 12, tile: 7, spans: 4, bytes: buffer.byteLength });
    expect(chunk.start.buffer).toBe(buffer);
    expect(chunk.names.get(1)).toBe("MatMul");
    expect([...chunk.count]).toEqual([1, 9, 1, 1]);
    expect([...chunk.hue]).toEqual([6, 3, 3, 6]);
    expect(chunk.category[0]).toBe(2);
    expect([chunk.minimum[0], chunk.maximum[0], chunk.at[0]]).toEqual([-1, 2, 4]);
  });
  it("know where rows start, also those without spans", () => {
    expect(chunk.parts.map((p) => [p.track, p.slot, p.count, p.sampleCount])).toEqual([
      [3, 0, 3, 0],
      [8, 1, 1, 0],
      [9, 2, 0, 1],
    ]);
    expect([...(chunk.parts[0]?.rowStart ?? [])]).toEqual([0, 2, 2, 3]);
    expect([...(chunk.parts[2]?.rowStart ?? [])]).toEqual([0 + 4]);
  });
  it("list what can carry a label: the wide and what crosses the border", () => {
    expect([...(chunk.parts[0]?.wide ?? [])]).toEqual([0, 2]);
    expect([...(chunk.parts[1]?.wide ?? [])]).toEqual([3]);
  });
  it("find the span under a pointer", () => {
    const part = chunk.parts[0];
    if (!part) throw new Error("no part");
    expect(spanAt(part, 0, 20, 0)).toBe(0);
    expect(spanAt(part, 0, 48.5, 2)).toBe(1);
    expect(spanAt(part, 0, 45, 2)).toBe(-1);
    expect(spanAt(part, 1, 20, 5)).toBe(-1);
    expect(spanAt(part, 2, 20, 0)).toBe(2);
    expect(spanAt(part, 7, 20, 0)).toBe(-1);
  });
  it("refuse what is not a tile or is cut short", () => {
    expect(() => decode(new ArrayBuffer(4), slotOf, hueOf)).toThrow(BadTile);
    expect(() => decode(new Uint8Array(64).buffer, slotOf, hueOf)).toThrow("not a tile");
    expect(() => decode(buffer.slice(0, buffer.byteLength - 8), slotOf, hueOf)).toThrow("truncated in a column");
    expect(() => decode(buffer.slice(0, 20), slotOf, hueOf)).toThrow("header");
  });
});
