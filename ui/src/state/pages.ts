/**
 * The pages of a session: those that the page has by itself, and one per view that the server describes. A new view
 * therefore needs nothing here; `pages/own.ts` lists the views with pictures of their own.
 */
import type { ViewInfo } from "../server/views";

export interface PageInfo {
  /** Its part of the address. */
  name: string;
  title: string;
  /** The heading under which the navigation lists it. */
  group: string;
  /** The question that it answers. */
  question: string;
  /** The view that it shows, if it shows one. */
  view?: ViewInfo;
}

export const OVERVIEW: PageInfo = {
  name: "overview",
  title: "Overview",
  group: "Summary",
  question: "Why is the step slow?",
};

export const HOME: PageInfo = {
  name: "home",
  title: "All runs",
  group: "Runs",
  question: "Which runs are there, and which are slow?",
};

export const FLEET: PageInfo = {
  name: "fleet",
  title: "Fleet",
  group: "Runs",
  question: "Which jobs lose most, and which hosts are repeatedly slow?",
};

/** Pages about all runs: they need no session. */
export const OF_ALL: readonly string[] = ["home", "fleet", "curves"];

/** Pages that are no views: some before the views, some after them. */
const BEFORE: readonly PageInfo[] = [
  HOME,
  FLEET,
  OVERVIEW,
  { name: "timeline", title: "Timeline", group: "Summary", question: "What ran when?" },
];
const AFTER: readonly PageInfo[] = [
  {
    name: "model",
    title: "Model",
    group: "Time",
    question: "What is the model made of, and what does each part cost?",
  },
  { name: "sql", title: "SQL", group: "Queries", question: "What else do you want to know?" },
  { name: "compare", title: "Compare", group: "Comparison", question: "What changed between two recordings?" },
  { name: "curves", title: "Curves", group: "Runs", question: "How did runs go: loss, metrics, speed?" },
];

/** All pages, in the order of the navigation: groups as they first occur, pages within a group in their order. */
export function pagesOf(views: readonly ViewInfo[]): PageInfo[] {
  const described = views.map((view) => ({
    name: view.name,
    title: view.title,
    group: view.group,
    question: view.question,
    view,
  }));
  return groupsOf([...BEFORE, ...described, ...AFTER]).flatMap((group) => group.pages);
}

/** The pages by group. */
export function groupsOf(pages: readonly PageInfo[]): { title: string; pages: PageInfo[] }[] {
  const titles = [...new Set(pages.map((page) => page.group))];
  return titles.map((title) => ({ title, pages: pages.filter((page) => page.group === title) }));
}
