import { describe, expect, it } from "vitest";
import { frame, type TestSpan } from "../model/testframe";
import { Cutter, Labels } from "./text";
import { decode } from "../model/tiles";

function part(tile: number, spans: TestSpan[]) {
  const chunk = decode(
    frame(10, tile, spans, { 1: "step", 2: "MatMul" }, [0]),
    () => 0,
    () => 0,
  );
  const first = chunk.parts[0];
  if (!first) throw new Error("no part");
  return first;
}

const shown = (labels: Labels) =>
  Array.from({ length: labels.n }, (_, i) => `${labels.name[i]}@${labels.row[i]}:${labels.left[i]}-${labels.right[i]}`);

describe("labels", () => {
  it("are placed once over all visible pieces of an event", () => {
    const labels = new Labels();
    labels.add(
      part(0, [{ track: 0, row: 0, start: 1000, end: 1025, name: 1, event: 7, flags: 2 }]),
      -500,
      1,
      0,
      524,
      4,
    );
    labels.add(
      part(1, [{ track: 0, row: 0, start: -1, end: 1025, name: 1, event: 7, flags: 3 }]),
      524,
      1,
      524,
      1000,
      4,
    );
    expect(shown(labels)).toEqual(["step@0:500-1000"]);
  });
  it("do not join different events", () => {
    const labels = new Labels();
    labels.add(part(0, [{ track: 0, row: 0, start: 900, end: 1025, name: 1, event: 7, flags: 2 }]), 0, 1, 0, 1024, 4);
    labels.add(part(1, [{ track: 0, row: 0, start: 10, end: 60, name: 2, event: 8 }]), 1024, 1, 1024, 2048, 4);
    expect(shown(labels)).toEqual(["step@0:900-1024", "MatMul@0:1034-1084"]);
  });
  it("leave out the narrow, the merged and rows that are not shown", () => {
    const labels = new Labels();
    labels.add(
      part(0, [
        { track: 0, row: 0, start: 0, end: 10, name: 2, event: 1 },
        { track: 0, row: 0, start: 50, end: 150, name: 2, event: 2, count: 40, busy: 60 },
        { track: 0, row: 1, start: 50, end: 150, name: 2, event: 50 },
        { track: 0, row: 2, start: 50, end: 150, name: 2, event: 51 },
      ]),
      0,
      1,
      0,
      1024,
      2,
    );
    expect(shown(labels)).toEqual(["MatMul@1:50-150"]);
    labels.clear();
    expect(labels.n).toBe(0);
  });
  it("are cut to their width", () => {
    const cutter = new Cutter((text) => text.length * 6);
    expect(cutter.cut("MatMul", 36)).toBe("MatMul");
    expect(cutter.cut("MatMul", 30)).toBe("MatM…");
    expect(cutter.cut("MatMul", 24)).toBe("Mat…");
    expect(cutter.cut("MatMul", 7)).toBe("");
  });
});
