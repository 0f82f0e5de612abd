import { describe, expect, test } from "vitest";
import {
  bars,
  complete,
  drawing,
  eventColumns,
  eventQuery,
  pieces,
  placeOf,
  readSaved,
  shown,
  withSaved,
  type SqlAnswer,
} from "./sql";

const answer = (columns: string[], rows: SqlAnswer["rows"]): SqlAnswer => ({ columns, rows, truncated: false });

describe("the SQL console", () => {
  test("colours are pieces of the query, whatever it is", () => {
    for (const sql of ["SELECT 'it''s' -- x\nFROM event WHERE ts > 1e6", "'open", "/* open", "é <b>", ""]) {
      expect(
        pieces(sql)
          .map((piece) => piece.text)
          .join(""),
      ).toBe(sql);
    }
    expect(pieces("select a")[0]).toEqual({ text: "select", sort: "keyword" });
    expect(pieces("'x'")[0]?.sort).toBe("text");
  });

  test("numbers of events lead to the timeline", () => {
    expect(placeOf(3 * 2 ** 32 + 7)).toEqual({ track: 3, event: 7 });
    expect(eventQuery(2 ** 32, 10.5, 0)).toEqual({ from: "10", to: "12", sel: "1.0" });
    expect(eventColumns(answer(["id", "name", "parent_id"], []), "SELECT id FROM event")).toEqual([0, 2]);
    expect(eventColumns(answer(["id"], []), "SELECT id FROM track")).toEqual([]);
  });

  test("two columns are drawn where they can be", () => {
    expect(
      drawing(
        answer(
          ["step", "ms"],
          [
            [1, 5],
            [2, 6],
          ],
        ),
      )?.data,
    ).toEqual([
      [1, 2],
      [5, 6],
    ]);
    expect(
      drawing(
        answer(
          ["step", "ms"],
          [
            [2, 5],
            [1, 6],
          ],
        ),
      ),
    ).toBeNull();
    expect(
      bars(
        answer(
          ["name", "ms"],
          [
            ["a", 5],
            [null, 10],
          ],
        ),
      ),
    ).toEqual([
      { label: "a", value: 5, share: 0.5 },
      { label: "(none)", value: 10, share: 1 },
    ]);
    expect(bars(answer(["name", "ms"], [["a", 5]]))).toBeNull();
  });

  test("values are shown as they are", () => {
    expect([shown(null), shown(4294967296), shown(0.1 + 0.2)]).toEqual(["", "4294967296", "0.3"]);
  });
});

test("words are completed from the tables that a query names", () => {
  const column = (name: string) => ({ name, type: "INTEGER", about: "" });
  const known = {
    tables: [
      { name: "event", about: "", columns: ["ts", "dur", "name"].map(column) },
      { name: "step", about: "", columns: ["number", "ts"].map(column) },
    ],
    functions: [{ call: "ms(x)", about: "" }],
    examples: [],
  };
  expect(complete("SELECT du", 9, known)).toEqual({ from: 7, options: ["dur"] });
  expect(complete("SELECT n FROM step", 8, known).options).toEqual(["number", "name"]);
  expect(complete("SELECT step.", 12, known).options).toEqual(["number", "ts"]);
  expect(complete("SELECT m", 8, known).options).toEqual(["ms("]);
  expect(complete("SELECT ", 7, known).options).toEqual([]);
});

test("saved queries survive, and broken ones are forgotten", () => {
  const saved = withSaved(withSaved([], "b", "SELECT 2"), "a", "SELECT 1");
  expect(readSaved(JSON.stringify(saved))).toEqual(saved);
  expect(withSaved(saved, "a", "SELECT 3")).toEqual([
    { name: "a", sql: "SELECT 3" },
    { name: "b", sql: "SELECT 2" },
  ]);
  expect([readSaved(null), readSaved("{"), readSaved('[{"name": 1}]')]).toEqual([[], [], []]);
});
