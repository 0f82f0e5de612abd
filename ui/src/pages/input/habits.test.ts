import { expect, test } from "vitest";
import { habitsOf } from "./habits";

const texts = (members: Parameters<typeof habitsOf>[0], written: string[] = []) =>
  habitsOf(members, written).map((habit) => habit.text);

test("each habit is named, present or not", () => {
  expect(texts({ has_prefetch_by_user: true, has_parallel_map: true })).toEqual([
    "prefetch",
    "parallel map",
    "no cache",
    "no interleave",
    "no Python inside",
  ]);
  expect(habitsOf({ runs_python: true }, []).at(-1)).toMatchObject({ text: "runs Python", tone: "warning" });
  expect(habitsOf({}, [])[0]).toMatchObject({ text: "no prefetch", tone: "" });
});

test("a map that TensorFlow made parallel is not missing", () => {
  expect(texts({ has_parallel_map: false }, ["your code", "parallelised"])[1]).toBe(
    "parallel map (added by TensorFlow)",
  );
  expect(texts({ has_parallel_map: false }, ["your code"])[1]).toBe("no parallel map");
});
