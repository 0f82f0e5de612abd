import { expect, test } from "vitest";
import { commandFor, quoted, viewMarkdown } from "./share";
import type { Session } from "../server/types";

const session: Session = {
  id: 0,
  name: "a",
  path: "/my logs/it's",
  hosts: [],
  bytes: 0,
  state: "ready",
  appeared: false,
  place: null,
  revision: 0,
};

test("paths are quoted for a shell, and options follow the path", () => {
  expect(quoted("logs/run-1.json")).toBe("logs/run-1.json");
  expect(commandFor("ops --by type", session)).toBe("stepscope ops '/my logs/it'\\''s' --by type");
});

test("a view becomes a table with its units in the header", () => {
  const text = viewMarkdown(
    {
      view: "ops",
      headline: "MatMul takes most",
      notes: [],
      rows: 2,
      members: {},
      ways: [],
      columns: [
        { key: "name", title: "op", format: "name", hidden: false, optional: false, values: ["a|b", "c"] },
        { key: "ms", title: "total", format: "ms", hidden: false, optional: false, values: [12, 3] },
        { key: "x", title: "x", format: "count", hidden: true, optional: false, values: [1, 2] },
      ],
    },
    "Ops",
  );
  expect(text).toBe(
    "**Ops**: MatMul takes most\n\n| op | total ms |\n| --- | ---: |\n| a\\|b | 12.000 |\n| c | 3.000 |\n",
  );
});
