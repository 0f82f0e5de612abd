/** Recordings that answer some questions only: kernels that were profiled one by one, and samples of a monitor. */

export type Scarce = "counters" | "samples";

const SAMPLES = new Set(["nvidia-smi", "stepscope-samples"]);

/** What a session of these formats lacks a timeline for; null where some program was recorded as it ran. */
export function scarce(formats: readonly string[]): Scarce | null {
  if (formats.length === 0 || !formats.every((format) => format === "ncu" || SAMPLES.has(format))) return null;
  return formats.includes("ncu") ? "counters" : "samples";
}
