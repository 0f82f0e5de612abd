import { expect, it } from "vitest";
import { groupsOf, pagesOf } from "./pages";
import type { ViewInfo } from "../server/views";

const view = (name: string, group: string): ViewInfo => ({
  name,
  title: name.toUpperCase(),
  group,
  question: `${name}?`,
  about: "",
  record: [],
  events: null,
  ways: [],
});
const views = [view("steps", "Summary"), view("ops", "Time"), view("memory", "Hardware"), view("slowest", "Time")];

it("a view that the page has never heard of is a page among its group", () => {
  const groups = groupsOf(pagesOf(views)).map(({ title, pages }) => [title, pages.map((page) => page.name)]);
  expect(groups).toEqual([
    ["Runs", ["home", "fleet", "curves"]],
    ["Summary", ["overview", "timeline", "steps"]],
    ["Time", ["ops", "slowest", "model"]],
    ["Hardware", ["memory"]],
    ["Queries", ["sql"]],
    ["Comparison", ["compare"]],
  ]);
});

it("a group of its own comes where it first occurs", () => {
  const groups = groupsOf(pagesOf([...views, view("tokens", "Training")]));
  expect(groups.map((group) => group.title)).toEqual([
    "Runs",
    "Summary",
    "Time",
    "Hardware",
    "Training",
    "Queries",
    "Comparison",
  ]);
});

it("a page knows its view, and the others have none", () => {
  const pages = pagesOf(views);
  expect(pages.find((page) => page.name === "slowest")?.view).toEqual(views[3]);
  expect(pages.find((page) => page.name === "timeline")?.view).toBeUndefined();
});
