import { expect, it } from "vitest";
import type { Proof } from "../model/types";
import { prove } from "./prove";

const proof: Proof = {
  title: "Host python",
  figure: "98.0 ms per step",
  host: 0,
  start_ns: 0,
  end_ns: 100e6,
  track: 3,
  pieces: [
    { start_ns: 1e6, end_ns: 99e6, category: "python", title: "Python", empty: true },
    { start_ns: 99e6, end_ns: 99.1e6, category: "python", title: "Python", empty: true },
    { start_ns: 10e6, end_ns: 20e6, category: "output", title: "Output", empty: false },
  ],
};

it("a finding is shown where its stretches can be told apart", async () => {
  const place = { start: 0, end: 1000e6, finding: "eager-dispatch" };
  const windows: unknown[] = [];
  const shown = { place, show: (window: unknown) => windows.push(window), invalidate: () => undefined };
  await prove(shown, () => Promise.resolve(proof), place, true);
  expect(shown.place).toEqual({ ...place, proof });
  expect(windows).toHaveLength(1);
  await prove({ ...shown, place }, () => Promise.resolve({ ...proof, end_ns: 1000e6 }), place, true);
  expect(windows, "a step that shows its cause stays whole").toHaveLength(1);
  const other = { ...shown, place: null };
  await prove(other, () => Promise.reject(new Error("gone")), place, true);
  expect(other.place).toBeNull();
});
