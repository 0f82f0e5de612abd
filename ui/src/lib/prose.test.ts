import { expect, it } from "vitest";
import { parse } from "./prose";

const words = (text: string) => parse(text).map((part) => part.text).join("");

it("a command that shows a view is a link to its page", () => {
  const parts = parse("See them: `stepscope kernels PATH`.");
  expect(parts[1]).toEqual({ kind: "link", text: "Kernels", page: "kernels", query: {} });
  expect(words("See them: `stepscope kernels PATH`.")).toBe("See them: Kernels.");
  expect(words("record again and run `stepscope compare BEFORE AFTER`; `input` can fall")).toBe("record again and open Compare; input can fall");
});

it("its options become the page's query", () => {
  expect(parse("`stepscope ops PATH --filter 'aten::cat'`")[0]).toMatchObject({ page: "ops", query: { filter: "aten::cat" }, text: "Ops with “aten::cat”" });
  expect(parse("`stepscope steps PATH --sort duration_ms`")[0]).toMatchObject({ page: "steps", query: { sort: "duration_ms" }, text: "Steps, longest first" });
});

it("what no page does stays a command, and other code stays code", () => {
  for (const code of ["stepscope capture HOST", "stepscope report PATH --host", "tf.data", "stepscope"]) {
    expect(parse(`Try \`${code}\`.`)[1]).toEqual({ kind: "code", text: code });
  }
});

it("a backtick alone is a character", () => {
  expect(words("it's `so")).toBe("it's `so");
  expect(parse("")).toEqual([]);
});
