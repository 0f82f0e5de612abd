/**
 * The pages with a component of their own, each a separate chunk except the first. Every other view is drawn by
 * `ViewTable`, so this list only grows by views with pictures.
 */
import type { Component } from "svelte";
import { Unreachable } from "../server/ask";
import Overview from "./overview/Overview.svelte";

/** What every page is given: the session's number and the page's name. */
export type PageComponent = Component<{ session: number; name: string }>;

const OWN: Record<string, () => Promise<{ default: unknown }>> = {
  // The first page is part of the main chunk.
  overview: () => Promise.resolve({ default: Overview }),
  home: () => import("./home/Home.svelte"),
  fleet: () => import("./fleet/Fleet.svelte"),
  timeline: () => import("./timeline/Timeline.svelte"),
  steps: () => import("./steps/Steps.svelte"),
  path: () => import("./path/Path.svelte"),
  ops: () => import("./ops/Ops.svelte"),
  kernels: () => import("./kernels/Kernels.svelte"),
  hlo_modules: () => import("./programs/Programs.svelte"),
  input: () => import("./input/Input.svelte"),
  memory: () => import("./memory/Memory.svelte"),
  ranks: () => import("./ranks/Ranks.svelte"),
  scopes: () => import("./scopes/Scopes.svelte"),
  model: () => import("./model/Model.svelte"),
  devices: () => import("./devices/Devices.svelte"),
  inference: () => import("./inference/Inference.svelte"),
  health: () => import("./health/Health.svelte"),
  sql: () => import("./sql/Sql.svelte"),
  compare: () => import("./compare/Compare.svelte"),
  curves: () => import("./curves/Curves.svelte"),
};
const anyView = () => import("../table/ViewTable.svelte");

/** Loads a page's component. */
export async function load(name: string): Promise<PageComponent> {
  try {
    return (await (OWN[name] ?? anyView)()).default as PageComponent;
  } catch {
    // The chunks are part of the server, so only a server that is gone cannot deliver one.
    throw new Unreachable();
  }
}
