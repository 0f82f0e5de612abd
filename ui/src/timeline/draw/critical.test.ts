import { expect, it } from "vitest";
import { Critical, drawCritical, summary } from "./critical";
import type { Scene } from "./scene";
import type { Theme } from "./theme";
import type { Source } from "../model/net";
import type { StepPath, Timeline } from "../model/types";

const step = (host: number, index: number, start_ns: number, end_ns: number) => ({
  host,
  index,
  name: "train",
  start_ns,
  end_ns,
  counted: true,
});
const timeline = {
  steps: [step(0, 0, 0, 100), step(0, 1, 100, 200), step(1, 0, 10, 110), step(1, 1, 110, 210)],
} as unknown as Timeline;
const path = (host: number, index: number): StepPath => ({
  host,
  step: index,
  unknown: null,
  categories: [
    { category: "compute", fraction: 0.61 },
    { category: "python", fraction: 0.3 },
    { category: "sync", fraction: 0.09 },
  ],
  pieces: [],
});

it("asks for the step in the middle of the view, once per step and host, and forgets it when it is switched off", async () => {
  const asked: string[] = [];
  const source = {
    critical: (host: number, ns: number) => {
      asked.push(`${host}@${ns}`);
      const start = Math.floor(ns / 100) * 100;
      return Promise.resolve({ ...path(host, start / 100), start_ns: start, end_ns: start + 100 });
    },
  } as unknown as Source;
  let shown: readonly StepPath[] = [];
  const critical = new Critical(timeline, source, (paths) => (shown = paths));
  const rest = () => new Promise((resolve) => setTimeout(resolve, 250));
  critical.look({ start: 0, end: 100 });
  await rest();
  expect(asked).toEqual([]);
  critical.show(true, { start: 0, end: 100 });
  await rest();
  expect(asked).toEqual(["0@50", "1@50"]);
  critical.look({ start: 20, end: 100 });
  await rest();
  expect(asked.length).toBe(2);
  critical.look({ start: 100, end: 200 });
  await rest();
  expect(asked.slice(2)).toEqual(["0@150", "1@150"]);
  expect(shown.map((one) => one.step)).toEqual([1, 1]);
  critical.show(false, { start: 0, end: 100 });
  expect(shown).toEqual([]);
  critical.close();
});

it("says what the path is made of, or why it is unknown", () => {
  const title = (key: string) => key.toUpperCase();
  expect(summary([path(0, 7)], title, ["a"])).toBe("Critical path of step 7: COMPUTE 61 %, PYTHON 30 %");
  const waiting = { ...path(0, 7), categories: [{ category: "communication", fraction: 0.9 }] };
  expect(summary([waiting, path(1, 7)], title, ["a", "b"])).toBe(
    "Critical path of step 7 on b: COMPUTE 61 %, PYTHON 30 %",
  );
  expect(summary([{ host: 0, step: 7, unknown: "no device work was recorded", pieces: [] }], title, ["a"])).toBe(
    "Critical path unknown: no device work was recorded",
  );
  expect(summary([], title, [])).toBe("");
});

it("hides no event: narrow pieces have a line below them, wide ones an outline", () => {
  const filled: { width: number; height: number }[] = [];
  let outlines = 0;
  const context = {
    fillRect: (_x: number, _y: number, width: number, height: number) => filled.push({ width, height }),
    strokeRect: () => (outlines += 1),
  } as unknown as CanvasRenderingContext2D;
  const rows = [0, 1, 2];
  const scene = {
    width: 1000,
    height: 500,
    scroll: 0,
    window: { start: 0, end: 1000 },
    layout: { pinnedHeight: 0, items: [], slots: new Float64Array([0, 20, 3, 0]) },
  } as unknown as Scene;
  const tracks = { tracks: [{ id: 7, process: 0 }], processes: [] } as unknown as Timeline;
  // Rows in turn, two pixels each; then one wide piece.
  const pieces = Array.from({ length: 200 }, (_, at) => ({
    kind: "host",
    category: "python",
    start_ns: at * 2,
    end_ns: at * 2 + 2,
    track: 7,
    event: at,
    row: rows[at % 3] ?? 0,
  }));
  const wide = { kind: "kernel", category: "compute", start_ns: 400, end_ns: 900, track: 7, event: 999, row: 0 };
  const shown = [{ ...path(0, 0), pieces: [...pieces, wide] }];
  drawCritical(context, scene, tracks, new Map([[7, 0]]), shown, {} as Theme);
  expect(outlines).toBe(1);
  expect(filled.filter(({ width, height }) => width > 1 && height > 3)).toEqual([]);
  expect(filled.filter(({ height }) => height > 3).length, "ways between rows").toBeLessThan(20);
});
