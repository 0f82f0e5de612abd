/**
 * The pages with a component of their own, each a separate chunk except the first. Every other view is drawn by
 * `ViewTable`, so this list only grows by views with pictures.
 */
import type { Component } from "svelte";
import { Unreachable } from "../lib/api";
import Overview from "./Overview.svelte";

/** What every page is given: the session's number and the page's name. */
export type PageComponent = Component<{ session: number; name: string }>;

const OWN: Record<string, () => Promise<{ default: unknown }>> = {
  // The first page is part of the main chunk.
  overview: () => Promise.resolve({ default: Overview }),
  home: () => import("./Home.svelte"),
  fleet: () => import("./Fleet.svelte"),
  timeline: () => import("./Timeline.svelte"),
  steps: () => import("./Steps.svelte"),
  ops: () => import("./Ops.svelte"),
  kernels: () => import("./Kernels.svelte"),
  input: () => import("./Input.svelte"),
  memory: () => import("./Memory.svelte"),
  scopes: () => import("./Scopes.svelte"),
  model: () => import("./Model.svelte"),
  devices: () => import("./Devices.svelte"),
  inference: () => import("./Inference.svelte"),
  health: () => import("./Health.svelte"),
  sql: () => import("./Sql.svelte"),
  compare: () => import("./Compare.svelte"),
  curves: () => import("./Curves.svelte"),
};
const anyView = () => import("../lib/ViewTable.svelte");

/** Loads a page's component. */
export async function load(name: string): Promise<PageComponent> {
  try {
    return (await (OWN[name] ?? anyView)()).default as PageComponent;
  } catch {
    // The chunks are part of the server, so only a server that is gone cannot deliver one.
    throw new Unreachable();
  }
}
