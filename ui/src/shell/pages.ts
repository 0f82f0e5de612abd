/** The pages: their titles, what each answers, and how to load it. Each is a chunk of its own. */
import type { Component } from "svelte";
import type { Page } from "../lib/route";

export const TITLES: Record<Page, string> = {
  overview: "Overview",
  timeline: "Timeline",
  steps: "Steps",
  ops: "Ops",
  kernels: "Kernels",
  input: "Input",
  memory: "Memory",
  scopes: "Scopes",
  devices: "Devices",
  functions: "Functions",
  inference: "Inference",
  health: "Health",
  compare: "Compare",
};

/** What a page answers, in a few words. */
export const ABOUT: Record<Page, string> = {
  overview: "Why is the step slow?",
  timeline: "What ran when?",
  steps: "How long did each step take?",
  ops: "Which ops does the time go to?",
  kernels: "What ran on the GPUs, and how well?",
  input: "Where do batches come from, and what holds them up?",
  memory: "What fills the memory?",
  scopes: "Which layers and modules cost the time?",
  devices: "How busy were the devices?",
  functions: "Was anything traced or compiled again?",
  inference: "How long do requests take?",
  health: "Can this recording be trusted?",
  compare: "What changed between two recordings?",
};

/** Pages in groups, as the navigation shows them. */
export const GROUPS: { title: string; pages: Page[] }[] = [
  { title: "Why", pages: ["overview", "timeline", "steps"] },
  { title: "Where the time goes", pages: ["ops", "kernels", "scopes", "input", "functions", "inference"] },
  { title: "What it ran on", pages: ["memory", "devices", "health"] },
  { title: "Before and after", pages: ["compare"] },
];

type Loaded = { default: unknown };
const LOADERS: Record<Page, () => Promise<Loaded>> = {
  overview: () => import("../pages/Overview.svelte"),
  timeline: () => import("../pages/Timeline.svelte"),
  steps: () => import("../pages/Steps.svelte"),
  ops: () => import("../pages/Ops.svelte"),
  kernels: () => import("../pages/Kernels.svelte"),
  input: () => import("../pages/Input.svelte"),
  memory: () => import("../pages/Memory.svelte"),
  scopes: () => import("../pages/Scopes.svelte"),
  devices: () => import("../pages/Devices.svelte"),
  functions: () => import("../pages/Functions.svelte"),
  inference: () => import("../pages/Inference.svelte"),
  health: () => import("../pages/Health.svelte"),
  compare: () => import("../pages/Compare.svelte"),
};

/** Loads a page's component. */
export async function load(page: Page): Promise<Component<{ session: number }>> {
  return (await LOADERS[page]()).default as Component<{ session: number }>;
}
