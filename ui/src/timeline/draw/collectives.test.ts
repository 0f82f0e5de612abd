import { expect, it } from "vitest";
import { runAt, runsBySlot } from "./collectives";

const run = (track: number, start: number, row = 0) => ({
  track,
  row,
  start_ns: start,
  end_ns: start + 10,
  waited_ns: 4,
  last: false,
});

it("finds the collective of a row at a moment", () => {
  const runs = runsBySlot(
    [run(7, 100), run(7, 0), run(9, 0), run(404, 0), run(7, 100, 1)],
    new Map([
      [7, 0],
      [9, 1],
    ]),
  );
  expect([...runs.keys()]).toEqual([0, 1]);
  expect(runs.get(0)?.map((one) => one.start_ns)).toEqual([0, 100, 100]);
  expect(runAt(runs, 0, 1, 105)?.row).toBe(1);
  expect(runAt(runs, 0, 0, 50)).toBeUndefined();
  expect(runAt(runs, 1, 0, 10)).toBeUndefined();
});
