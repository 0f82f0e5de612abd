import { expect, it } from "vitest";
import type { Session } from "../../server/types";
import { inOrder } from "./order";

const session = (id: number, place: number | null): Session => ({
  id,
  name: String(id),
  path: "",
  hosts: [],
  bytes: 0,
  state: "ready",
  appeared: false,
  place,
  revision: 0,
});
const ids = (sides: [Session | undefined, Session | undefined]) => sides.map((side) => side?.id);

it("the command line decides, whichever is shown and whenever they were recorded", () => {
  const [before, after] = [session(0, 0), session(1, 1)];
  const times = new Map([
    [0, 200],
    [1, 100],
  ]);
  expect(ids(inOrder(before, after, times))).toEqual([0, 1]);
  expect(ids(inOrder(after, before, times))).toEqual([0, 1]);
});

it("else the earlier recording is the one before", () => {
  const [one, other] = [session(0, null), session(1, null)];
  const times = new Map([
    [0, 200],
    [1, 100],
  ]);
  expect(ids(inOrder(one, other, times))).toEqual([1, 0]);
  expect(ids(inOrder(other, one, times))).toEqual([1, 0]);
});

it("where no time is known, the one that is shown is the new one", () => {
  expect(ids(inOrder(session(0, null), session(1, null), new Map([[0, 5]])))).toEqual([1, 0]);
  expect(ids(inOrder(session(0, null), undefined, new Map()))).toEqual([undefined, 0]);
});
