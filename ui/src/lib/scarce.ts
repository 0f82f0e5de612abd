/** Recordings without a timeline: kernels that were profiled one at a time, and hardware samples. */

export type Scarce = "counters" | "samples";

const SAMPLES = new Set(["nvidia-smi", "stepscope-samples"]);

/** Why a session of these formats has no timeline; null if a program was recorded as it ran. */
export function scarce(formats: readonly string[]): Scarce | null {
  if (formats.length === 0 || !formats.every((format) => format === "ncu" || SAMPLES.has(format))) return null;
  return formats.includes("ncu") ? "counters" : "samples";
}
