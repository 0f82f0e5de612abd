import { expect, test } from "vitest";
import { describe, kindOf, largestIn, reduced, strengthOf, summary } from "./map";

const map = {
  steps: [7, 8],
  ranks: ["worker0", "worker1"],
  waiting_ms: [
    [20, 0.2],
    [0, 0.1],
  ],
  late_ms: [
    [0, 0],
    [20, 0.1],
  ],
};

test("a rank that is late and one that waits look different", () => {
  expect(largestIn(map)).toBe(20);
  expect([kindOf(0, 20, 20), kindOf(20, 0, 20), kindOf(0.1, 0.1, 20)]).toEqual(["waits", "late", "even"]);
  expect([strengthOf(20, 20), strengthOf(0.5, 20), strengthOf(1, 0)]).toEqual([1, 0, 0]);
});

test("large maps keep the latest ranks and their worst steps", () => {
  const row = (rank: number) =>
    Array.from({ length: 450 }, (_, step) => (rank === 77 && step === 301 ? 9 : rank / 1e3));
  const late = Array.from({ length: 100 }, (_, rank) => row(rank));
  const steps = Array.from({ length: 450 }, (_, step) => step);
  const small = reduced({ steps, ranks: late.map((_, rank) => `rank${rank}`), late_ms: late, waiting_ms: late });
  expect([small.ranks.length, small.steps.length]).toEqual([40, 150]);
  expect(small.late_ms[small.ranks.indexOf("rank77")]?.[100]).toBe(9);
  expect(reduced(map)).toEqual(map);
});

test("cells and the map can be read", () => {
  expect(describe(map, 1, 0)).toContain("worker1, step 7: arrives 20");
  expect(summary(map)).toBe("2 ranks by 2 steps; worker1 has 100 % of all lateness");
  expect(summary({ ...map, late_ms: [[0], [0]] })).toContain("nobody is late");
});
