import { expect, it } from "vitest";
import type { Proof } from "../model/types";
import { labelsOf } from "./proof";

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
const scene = { window: { start: 0, end: 100e6 }, width: 1000 };

it("gaps without an event say whose they are and how long they take", () => {
  expect(labelsOf(proof, scene, (text) => text.length * 6)).toEqual([{ left: 10, right: 990, text: "Python 98 ms" }]);
});
