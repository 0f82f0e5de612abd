import { expect, test } from "vitest";
import { runNames } from "../../state/runs";
import type { Session } from "../../server/types";
import { against, itemsOf, runsOf, stateOf, stepOf, type HomeRun, type Summary } from "./rows";

const sessions: Session[] = ["logs/a/one.json", "logs/a/two.json", "logs/b/three.json"].map((path, id) => ({
  id,
  name: path.split("/").at(-1) ?? "",
  path,
  hosts: ["box"],
  bytes: id,
  state: "unopened",
  appeared: false,
  place: null,
  revision: 0,
}));
const summary = (rest: Partial<Summary>): Summary => ({
  headline: "Input-bound",
  severity: "critical",
  finding: "input-bound",
  doubts: [],
  step_ms: 10,
  steps: 20,
  breakdown: [],
  devices: [["H100", 4]],
  framework: "PyTorch",
  began_ms: null,
  events: 1,
  damaged: false,
  problem: null,
  ...rest,
});
const home = (id: number, rest: Partial<HomeRun>): [number, HomeRun] => [
  id,
  { id, modified_ms: 5, writing: false, skipped: false, summary: null, ...rest },
];
const runs = runsOf(
  sessions,
  runNames(sessions),
  new Map([
    home(0, { summary: summary({ step_ms: 20 }) }),
    home(1, { summary: summary({ step_ms: 10, headline: "Compute-bound", devices: [["V100", 1]] }) }),
    home(2, { writing: true }),
  ]),
);
const names = (wish: Partial<Parameters<typeof itemsOf>[1]>) =>
  itemsOf(runs, { text: "", key: null, descending: false, grouped: false, closed: new Set(), ...wish }).map((item) =>
    item.kind === "run" ? item.run.name : `[${item.folder} ${item.count}]`,
  );

test("a search looks at names, devices and verdicts; all words must occur", () => {
  expect(names({ text: "h100" })).toEqual(["a/one"]);
  expect(names({ text: "bound a/" })).toEqual(["a/one", "a/two"]);
  expect(names({ text: "compute v100" })).toEqual(["a/two"]);
});

test("what is unknown comes last in either direction", () => {
  expect(names({ key: "step" })).toEqual(["a/two", "a/one", "b/three"]);
  expect(names({ key: "step", descending: true })).toEqual(["a/one", "a/two", "b/three"]);
});

test("folders are headings that can be closed", () => {
  expect(names({ grouped: true })).toEqual(["[a 2]", "a/one", "a/two", "[b 1]", "b/three"]);
  expect(names({ grouped: true, closed: new Set(["a"]) })).toEqual(["[a 2]", "[b 1]", "b/three"]);
});

test("states and the ratio to the baseline", () => {
  expect(runs.map(stateOf)).toEqual(["", "", "being written"]);
  const [one, two, three] = runs;
  if (!one || !two || !three) throw new Error("no runs");
  expect([against(one, two), against(two, two), against(three, two)]).toEqual([2, null, null]);
});

test("the step is the one that the verdict is about", () => {
  const summary = (step_ms: number | null, mean_ms?: number | null) => ({ step_ms, mean_ms }) as Summary;
  expect(stepOf(summary(171, 334))).toEqual({ ms: 334, is: "mean" });
  expect(stepOf(summary(171, 172))).toEqual({ ms: 172, is: "mean" });
  expect(stepOf(summary(171)), "kept by an older version").toEqual({ ms: 171, is: "median" });
  expect(stepOf(null).ms).toBeNull();
});
