import { expect, it } from "vitest";
import { pointAt, roleOf, stacked } from "./roles";

it("stacks roles so that the last edge is everything", () => {
  const areas = stacked({
    t_ns: [1, 2],
    roles: [
      { role: "parameter", bytes: [4, 4] },
      { role: null, bytes: [1, 3] },
    ],
    reserved: [],
  });
  expect(areas.map((area) => [area.title, area.own, area.top])).toEqual([
    ["Weights", [4, 4], [4, 4]],
    ["Unknown role", [1, 3], [5, 7]],
  ]);
});

it("knows the point before a time", () => {
  expect([0, 10, 15, 99].map((time) => pointAt([10, 20, 30], time))).toEqual([0, 0, 0, 2]);
});

it("calls a role that it does not know unknown", () => {
  expect(roleOf("riddle").title).toBe("Unknown role");
});
