/** The pages: their groups, and how to load each. All except the first are separate chunks. */
import type { Component } from "svelte";
import type { Page } from "../lib/route";
import Overview from "../pages/Overview.svelte";

/** Pages in groups, as the navigation shows them. */
export const GROUPS: { title: string; pages: Page[] }[] = [
  { title: "Summary", pages: ["overview", "timeline", "steps"] },
  { title: "Time", pages: ["ops", "kernels", "scopes", "model", "input", "functions", "inference"] },
  { title: "Hardware and data", pages: ["memory", "devices", "health"] },
  { title: "Comparison", pages: ["compare"] },
  { title: "Runs", pages: ["curves"] },
];

type Loaded = { default: unknown };
const LOADERS: Record<Page, () => Promise<Loaded>> = {
  // The first page is part of the main chunk.
  overview: () => Promise.resolve({ default: Overview }),
  timeline: () => import("../pages/Timeline.svelte"),
  steps: () => import("../pages/Steps.svelte"),
  ops: () => import("../pages/Ops.svelte"),
  kernels: () => import("../pages/Kernels.svelte"),
  input: () => import("../pages/Input.svelte"),
  memory: () => import("../pages/Memory.svelte"),
  scopes: () => import("../pages/Scopes.svelte"),
  model: () => import("../pages/Model.svelte"),
  devices: () => import("../pages/Devices.svelte"),
  functions: () => import("../pages/Functions.svelte"),
  inference: () => import("../pages/Inference.svelte"),
  health: () => import("../pages/Health.svelte"),
  compare: () => import("../pages/Compare.svelte"),
  curves: () => import("../pages/Curves.svelte"),
};

/** Loads a page's component. */
export async function load(page: Page): Promise<Component<{ session: number }>> {
  return (await LOADERS[page]()).default as Component<{ session: number }>;
}
