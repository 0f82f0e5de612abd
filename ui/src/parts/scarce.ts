/** Recordings without a timeline: kernels that were profiled one at a time, and hardware samples. */
import type { Delivers } from "../server/types";

export type Scarce = "counters" | "samples";

const SAMPLES: ReadonlySet<Delivers> = new Set(["samples", "run-samples"]);

/** Why a session whose files deliver this has no timeline; null if a program was recorded as it ran. */
export function scarce(delivers: readonly Delivers[]): Scarce | null {
  if (delivers.length === 0 || !delivers.every((one) => one === "counters" || SAMPLES.has(one))) return null;
  return delivers.includes("counters") ? "counters" : "samples";
}
