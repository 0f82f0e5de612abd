import { expect, it } from "vitest";
import { matching, reveal, sorted, sortingOf, sortWords, tsv, visible } from "./table";
import type { Column } from "../server/views";

const column = (key: string, format: Column["format"], values: Column["values"]): Column => ({
  key,
  title: key,
  format,
  values,
  hidden: false,
  optional: false,
});
const names = column("name", "name", ["conv2", "conv10", "Relu", null]);
const times = column("ms", "ms", [2, null, 7, 2]);
const order = (rows: Uint32Array) => Array.from(rows);
const all = Uint32Array.from([0, 1, 2, 3]);

it("sorts numbers both ways, with what is not known last and equal ones as they came", () => {
  expect(order(sorted(all, times, false))).toEqual([0, 3, 2, 1]);
  expect(order(sorted(all, times, true))).toEqual([2, 0, 3, 1]);
});

it("sorts names as people count", () => expect(order(sorted(all, names, false))).toEqual([0, 1, 2, 3]));

it("leaves the rows alone without a column", () => expect(sorted(all, undefined, true)).toBe(all));

it("filters by text, case aside, or by a regular expression", () => {
  const rows = (text: string) => order(matching([names, times], 4, text));
  expect(rows("")).toEqual([0, 1, 2, 3]);
  expect(rows("RELU")).toEqual([2]);
  expect(rows("/v\\d$/")).toEqual([0]);
  expect(rows("/[/")).toEqual([]);
  expect(rows("7")).toEqual([]);
});

it("draws the rows in view and a few more, and keeps the height", () => {
  for (const scrolled of [0, 15_000, 2_999_600]) {
    const part = visible(100_000, 30, scrolled, 400);
    expect(part.above + (part.end - part.first) * 30 + part.below).toBe(3_000_000);
    expect(part.first * 30).toBeLessThanOrEqual(scrolled);
    expect(part.end * 30).toBeGreaterThanOrEqual(Math.min(3_000_000, scrolled + 400));
    expect(part.end - part.first).toBeLessThan(45);
  }
  expect(visible(0, 30, 0, 400)).toEqual({ first: 0, end: 0, above: 0, below: 0 });
  // Scrolled far down, then filtered to few rows.
  expect(visible(3, 30, 9000, 400)).toEqual({ first: 3, end: 3, above: 90, below: 0 });
});

it("scrolls just far enough to show a row below the head", () => {
  expect(reveal(0, 30, 300, 400, 34)).toBe(0);
  expect(reveal(10, 30, 300, 400, 34)).toBe(300);
  expect(reveal(30, 30, 300, 400, 34)).toBe(31 * 30 - 366);
});

it("copies bare values that stay in their cells", () => {
  const odd = column("odd", "text", ["a\tb\nc", true, { x: 1 }, null]);
  expect(tsv([odd, times], [0, 1, 2])).toBe('odd\tms\na b c\t2\ntrue\t\n{"x":1}\t7');
});

it("a sort order survives the way into the address and back", () => {
  for (const sorting of [
    { key: "total_ms", descending: true },
    { key: "name", descending: false },
  ])
    expect(sortingOf(sortWords(sorting))).toEqual(sorting);
  expect(sortWords(undefined)).toBe("");
  expect(sortingOf("")).toBeUndefined();
});
