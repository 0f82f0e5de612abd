import { expect, it } from "vitest";
import { pagesOf } from "../state/pages";
import { parse as parseWith } from "./prose";

const view = (name: string, title: string) => ({
  name,
  title,
  group: "Time",
  question: "",
  about: "",
  record: [],
  events: null,
  ways: [],
});
const pages = pagesOf([view("steps", "Steps"), view("ops", "Ops"), view("kernels", "Kernels")]);
const parse = (text: string) => parseWith(text, pages);

const words = (text: string) =>
  parse(text)
    .map((part) => part.text)
    .join("");

it("a command that shows a view is a link to its page", () => {
  const parts = parse("See them: `stepscope kernels PATH`.");
  expect(parts[1]).toEqual({ kind: "link", text: "Kernels", page: "kernels", query: {} });
  expect(words("See them: `stepscope kernels PATH`.")).toBe("See them: Kernels.");
  expect(words("record again and run `stepscope compare BEFORE AFTER`; `input` can fall")).toBe(
    "record again and open Compare; input can fall",
  );
});

it("its options become the page's query", () => {
  expect(parse("`stepscope ops PATH --filter 'aten::cat'`")[0]).toMatchObject({
    page: "ops",
    query: { filter: "aten::cat" },
    text: "Ops with “aten::cat”",
  });
  expect(parse("`stepscope steps PATH --sort duration_ms`")[0]).toMatchObject({
    page: "steps",
    query: { sort: "duration_ms" },
    text: "Steps, longest first",
  });
});

it("what no page does stays a command, and other code stays code", () => {
  for (const code of ["stepscope capture HOST", "stepscope report PATH", "tf.data", "stepscope"]) {
    expect(parse(`Try \`${code}\`.`)[1]).toEqual({ kind: "code", text: code });
  }
});

it("one host's report is its part of the timeline", () => {
  const parts = parse("See what it does otherwise: `stepscope report PATH --host node-3`, beside another.");
  expect(parts[1]).toEqual({
    kind: "link",
    text: "the timeline of node-3",
    page: "timeline",
    query: { filter: "node-3" },
  });
  expect(parts.map((part) => part.text).join("")).toBe(
    "See what it does otherwise: the timeline of node-3, beside another.",
  );
});

it("categories are distinguished from names that look like them", () => {
  const kinds = (text: string) =>
    parse(text)
      .filter((part) => part.kind !== "text")
      .map((part) => part.kind);
  expect(kinds("open it; `transfer_in` can fall by up to 3 ms")).toEqual(["category"]);
  expect(kinds("Begin with `idle`: see the gaps")).toEqual(["category"]);
  expect(kinds("Expect `input` to drop by up to 3 ms per step.")).toEqual(["category"]);
  expect(kinds("Start with `dispatch`: do more work per call")).toEqual(["category"]);
  expect(kinds("Expect `transfer_in` and `transfer_out` together to drop by up to 761 ms per step.")).toEqual([
    "category",
    "category",
  ]);
  expect(kinds("meanwhile the host spends `input` 69.3 ms, `dispatch` 12.3 ms and `python` 2.59 ms.")).toEqual([
    "category",
    "category",
    "category",
  ]);
  expect(kinds("steps differ; `input` varies most (waiting for the next batch)")).toEqual(["category"]);
  expect(kinds("`input` costs most")).toEqual(["code"]);
  expect(kinds("It runs `input`, `output` and `MatMul`.")).toEqual(["code", "code", "code"]);
});

it("a backtick alone is a character", () => {
  expect(words("it's `so")).toBe("it's `so");
  expect(parse("")).toEqual([]);
});

it("a hyphen before a number is a minus, one within a name is not", () => {
  expect(parse("input -34.9 ms (-3 %), ops-by-1 `-O2`").map((part) => part.text)).toEqual([
    "input −34.9 ms (−3 %), ops-by-1 ",
    "-O2",
  ]);
});
