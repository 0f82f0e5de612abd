import { expect, test } from "vitest";
import type { Session } from "../../server/types";
import { isNamedAlike, nextOf, overlap, type Known } from "./next";

const session = (id: number, name: string, place: number | null = null): Session => ({
  id,
  name,
  path: name,
  hosts: [],
  bytes: 0,
  state: "unopened",
  appeared: false,
  place,
  revision: 0,
});
const run = (id: number, began_ms: number, ops: string[], framework = "TensorFlow"): Known => ({
  id,
  summary: { framework, ops, began_ms },
});
const next = (shown: Session, sessions: Session[], ...known: Known[]) =>
  nextOf(shown, sessions, (one) => one.name, new Map(known.map((one) => [one.id, one])))?.name;

test("another model is not proposed", () => {
  const [bert, resnet] = [session(0, "bert"), session(1, "resnet")];
  expect(next(bert, [bert, resnet], run(0, 1, ["MatMul", "Softmax"]), run(1, 2, ["Conv2D", "Relu"]))).toBeUndefined();
  expect(next(bert, [bert, resnet]), "nothing is known of them").toBeUndefined();
});

test("the next run of the same program is proposed", () => {
  const all = [session(0, "a"), session(1, "b"), session(2, "c"), session(3, "other")];
  const same = ["MatMul", "Add", "Relu"];
  const known = [run(0, 1000, same), run(1, 2000, same), run(2, 9000, same), run(3, 1500, ["FFT"])];
  expect(next(all[0] as Session, all, ...known)).toBe("b");
  expect(next(all[2] as Session, all, ...known), "the last one is compared with the one before it").toBe("b");
});

test("names show that a fix belongs to what it fixes, although its ops are others", () => {
  expect(isNamedAlike("labelled/input_slow_map", "labelled/input_slow_map_fixed")).toBe(true);
  expect(isNamedAlike("run/before", "run/after")).toBe(true);
  expect(isNamedAlike("resnet", "bert")).toBe(false);
  expect(isNamedAlike("logs/resnet", "logs/bert"), "a common folder is not enough").toBe(false);
  const [slow, fixed, twin] = [session(0, "map"), session(1, "map_fixed"), session(2, "else")];
  const known = [run(0, 1, ["A", "B"]), run(1, 2, ["C"]), run(2, 3, ["A", "B"])];
  expect(next(slow, [slow, fixed, twin], ...known)).toBe("map_fixed");
});

test("recordings of one log directory belong together", () => {
  const at = (id: number, time: string) => ({ ...session(id, time), path: `logs/plugins/profile/${time}/a.xplane.pb` });
  const [one, two] = [at(0, "2026_01_01"), at(1, "2026_01_02")];
  expect(next(one, [one, two])).toBe("2026_01_02");
});

test("two paths on the command line are a pair", () => {
  const [before, after] = [session(0, "x", 0), session(1, "y", 1)];
  expect(next(after, [before, after])).toBe("x");
  expect(overlap(run(0, 1, ["A"]), run(1, 1, ["A"], "JAX"))).toBe(0);
});
