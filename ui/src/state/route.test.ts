import { expect, it } from "vitest";
import { find, format, keyOf, labelOf, parse } from "./route";
import type { Session } from "../server/types";

const session = (id: number, name: string, path = ""): Session => ({
  id,
  name,
  path,
  hosts: [],
  bytes: 0,
  state: "ready",
  appeared: false,
  place: null,
  revision: 0,
});

it("an address survives the way there and back", () => {
  for (const name of ["2026_01_01_00_00_00", "a b/c?d#e&f=g", "run+1", "s", "ünïcode", "100%"]) {
    const route = { session: name, page: "ops", query: { by: "type", q: "a&b=c /x" } } as const;
    expect(parse(format(route))).toEqual(route);
  }
});

it("a session without a name of its own goes by its number", () => {
  const all = [session(0, "run"), session(1, "run"), session(2, "other")];
  expect(all.map((one) => keyOf(one, all))).toEqual(["s/0", "s/1", "other"]);
  expect(format({ session: "s/1", page: "steps" })).toBe("#/s/1/steps");
  expect(parse("#/s/1/steps").session).toBe("s/1");
  expect(find("s/1", all)?.id).toBe(1);
  expect(find("other", all)?.id).toBe(2);
  expect(find("gone", all)).toBeUndefined();
});

it("sessions of one name go by what tells their paths apart", () => {
  const all = [
    session(0, "run", "/l/a/plugins/run"),
    session(1, "run", "/l/b/c/plugins/run"),
    session(2, "other", "/l/other"),
  ];
  expect(all.map((one) => keyOf(one, all))).toEqual(["a/run", "b/c/run", "other"]);
  expect(all.map((one) => find(keyOf(one, all), all)?.id)).toEqual([0, 1, 2]);
  expect(find("run", all)?.id).toBe(0);
  expect(find("gone/run", all)?.id).toBe(0);
  expect(parse(format({ session: "b/c/run", page: "ops" })).session).toBe("b/c/run");
});

it("a name that is a whole path is shortened", () => {
  const all = [
    session(0, "/logs/x/plugins/s1/host.pb"),
    session(1, "/logs/y/plugins/s1/host.pb"),
    session(2, "/logs/only.json"),
  ];
  expect(all.map((one) => labelOf(one, all))).toEqual(["x/host.pb", "y/host.pb", "only.json"]);
  expect(all.map((one) => find(keyOf(one, all), all)?.id)).toEqual([0, 1, 2]);
  expect(find("/logs/y/plugins/s1/host.pb", all)?.id).toBe(1);
});

it("an address without a page is the overview, and any other name may be a page", () => {
  expect(parse("")).toEqual({ session: "", page: "overview", query: {} });
  expect(parse("#/run/?x=1")).toEqual({ session: "run", page: "overview", query: { x: "1" } });
  expect(parse("#/run/slowest?x=1")).toEqual({ session: "run", page: "slowest", query: { x: "1" } });
  expect(parse("#/%E0%A4%A/ops")).toEqual({ session: "%E0%A4%A", page: "ops", query: {} });
});

it("a session may be called s", () =>
  expect(parse("#/s/overview")).toEqual({ session: "s", page: "overview", query: {} }));

it("thousands of sessions that all have one name are told apart at once", () => {
  const all = Array.from({ length: 5000 }, (_, id) =>
    session(id, `/logs/run-${id}/plugins/profile/2026_01_01/trainer.xplane.pb`),
  );
  const began = performance.now();
  expect(new Set(all.map((one) => keyOf(one, all))).size).toBe(5000);
  expect(find(keyOf(all[4711] as Session, all), all)?.id).toBe(4711);
  // A search among all for each would take minutes.
  expect(performance.now() - began).toBeLessThan(2000);
});
