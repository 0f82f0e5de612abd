import { expect, test } from "vitest";
import { axesOf, placeOf, sorted, valueOf, within } from "./trials";
import type { Study, Trial } from "./types";

const trial = (run: string, settings: Trial["settings"], metrics: Trial["metrics"]): Trial => ({
  run,
  run_id: 0,
  status: null,
  settings,
  metrics,
});
const study: Study = {
  settings: ["batch", "kind", "rate"],
  metrics: ["loss"],
  trials: [
    trial("t10", [32, "sgd", 0.1], [2]),
    trial("t2", [32, "adam", 0.001], [1]),
    trial("t1", [32, "sgd", null], [null]),
  ],
  more: 0,
};
const { axes, common } = axesOf(study, study.trials);
const named = (name: string) => axes.find((axis) => axis.name === name)!;

test("settings that are the same in all trials are no axis", () => {
  expect(common).toEqual([["batch", 32]]);
  expect(axes.map((axis) => axis.name)).toEqual(["kind", "rate", "loss"]);
});

test("wide settings are logarithmic, words stand in order", () => {
  expect(named("rate").log).toBe(true);
  expect(named("loss").log).toBe(false);
  expect(placeOf(0.01, named("rate"))).toBeCloseTo(0.5);
  expect(named("kind").words).toEqual(["adam", "sgd"]);
  expect(placeOf("sgd", named("kind"))).toBe(1);
  expect(placeOf(null, named("rate"))).toBeNull();
});

test("ranges exclude what is outside, and what is unknown", () => {
  expect(within(study.trials, axes, new Map())).toHaveLength(3);
  expect(within(study.trials, axes, new Map([["metric:loss", [0.5, 1]]])).map(({ run }) => run)).toEqual(["t10"]);
  const both = new Map<string, [number, number]>([
    ["setting:kind", [1, 1]],
    ["metric:loss", [0, 0.5]],
  ]);
  expect(within(study.trials, axes, both)).toEqual([]);
});

test("unknown values come last in either direction", () => {
  const runs = (descending: boolean) => sorted(study.trials, named("loss"), descending).map(({ run }) => run);
  expect(runs(false)).toEqual(["t2", "t10", "t1"]);
  expect(runs(true)).toEqual(["t10", "t2", "t1"]);
  expect(sorted(study.trials, undefined, false).map(({ run }) => run)).toEqual(["t1", "t2", "t10"]);
  expect(valueOf(study.trials[0]!, named("loss"))).toBe(2);
});
