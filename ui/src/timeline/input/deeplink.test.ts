import { describe, expect, it } from "vitest";
import { KEYS, read, write, type LinkState } from "./deeplink";

const full: LinkState = {
  window: { start: -12.5, end: 98765.432 },
  selected: { track: 3, event: 4_000_000 },
  area: { start: 5, end: 6, tracks: [1, 2] },
  marks: [
    { start: 1, end: 2 },
    { start: 1e12, end: 1.5e12 },
  ],
  arrangement: {
    toggled: new Set(["p1", "t9"]),
    pinned: [7, 3],
    filter: "main -idle",
    hideEmpty: true,
    order: new Map([[1, [11, 10]]]),
  },
  mode: "name",
  critical: true,
  search: "/mat.*mul~!/",
  listed: true,
  place: { start: 100, end: 250 },
};

describe("links", () => {
  it("bring back the same picture", () => {
    const query = write(full);
    expect(Object.keys(query).sort()).toEqual([...KEYS].sort());
    expect(read(query)).toEqual(full);
    const address = new URLSearchParams(query).toString();
    expect(read(Object.fromEntries(new URLSearchParams(address)))).toEqual(full);
  });
  it("are empty for a fresh page", () => {
    const fresh = read({});
    expect(fresh.window).toBeNull();
    expect(Object.values(write(fresh)).every((value) => value === "")).toBe(true);
  });
  it("take what findings point at", () => {
    expect(read({ from: "1000", to: "2500.5" }).place).toEqual({ start: 1000, end: 2500.5 });
    expect(read({ from: "1000" }).place).toEqual({ start: 1000, end: 1000 });
  });
  it("name the finding whose evidence they show", () => {
    const state = read({ from: "5", to: "9", finding: "input-bound" });
    expect(state.place).toEqual({ start: 5, end: 9, finding: "input-bound" });
    expect(write(state)).toMatchObject({ from: "5", to: "9", finding: "input-bound" });
    expect(read({ finding: "input-bound" }).place).toBeNull();
  });
  it("survive nonsense", () => {
    const state = read({
      view: "9~1",
      sel: "x",
      area: "1~",
      marks: "~!1~2",
      fold: "q1.p",
      pin: "a.2",
      order: "1!:2",
      from: "NaN",
      color: "?",
    });
    expect(state).toMatchObject({
      window: null,
      selected: null,
      area: null,
      marks: [{ start: 1, end: 2 }],
      mode: "category",
      place: null,
    });
    expect(state.arrangement.pinned).toEqual([2]);
    expect(state.arrangement.toggled.size).toBe(0);
  });
});
