import { expect, it } from "vitest";
import { Critical, stepsInView, summary } from "./critical";
import type { Source } from "./net";
import type { StepPath, Timeline } from "./types";

const step = (host: number, index: number, start_ns: number, end_ns: number) => ({ host, index, name: "train", start_ns, end_ns, counted: true });
const timeline = { steps: [step(0, 0, 0, 100), step(0, 1, 100, 200), step(1, 0, 10, 110), step(1, 1, 110, 210)] } as unknown as Timeline;
const path = (host: number, index: number): StepPath => ({
  host, step: index, unknown: null, categories: [{ category: "compute", fraction: 0.61 }, { category: "python", fraction: 0.3 }, { category: "sync", fraction: 0.09 }], pieces: [],
});

it("takes the step in the middle of the view, for each host", () => {
  expect(stepsInView(timeline, { start: 90, end: 190 }).map((s) => [s.host, s.index])).toEqual([[0, 1], [1, 1]]);
  expect(stepsInView(timeline, { start: 500, end: 600 })).toEqual([]);
});

it("asks once per step, and forgets the path when it is switched off", async () => {
  const asked: string[] = [];
  const source = { critical: (host: number, index: number) => { asked.push(`${host}.${index}`); return Promise.resolve(path(host, index)); } } as unknown as Source;
  let shown: readonly StepPath[] = [];
  const critical = new Critical(timeline, source, (paths) => (shown = paths));
  critical.look({ start: 0, end: 100 });
  expect(asked).toEqual([]);
  critical.show(true, { start: 0, end: 100 });
  await Promise.resolve();
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(asked).toEqual(["0.0", "1.0"]);
  expect(shown.map((one) => one.step)).toEqual([0, 0]);
  critical.show(false, { start: 0, end: 100 });
  expect(shown).toEqual([]);
  critical.close();
});

it("says what the path is made of, or why it is unknown", () => {
  const title = (key: string) => key.toUpperCase();
  expect(summary([path(0, 7)], title)).toBe("Critical path of step 7: COMPUTE 61 %, PYTHON 30 %");
  expect(summary([{ host: 0, step: 7, unknown: "no device work was recorded", pieces: [] }], title)).toBe("Critical path unknown: no device work was recorded");
  expect(summary([], title)).toBe("");
});
