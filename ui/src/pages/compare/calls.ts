/** What the page of comparisons asks the server. */
import { ask, query } from "../../server/ask";
import type { Compare, CompareEstimate } from "../../server/schema";

export type Estimate = CompareEstimate;

export interface Comparison extends Omit<Compare, "schema"> {
  runs: Record<"base" | "new", { label: string; step_ms: number[] }>;
}

/** Compares two sessions. */
export function compare(base: number, against: number, signal?: AbortSignal): Promise<Comparison> {
  return ask<Comparison>(`compare${query({ base, new: against })}`, signal);
}
