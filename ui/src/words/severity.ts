/** How bad things are, and the order that follows from it. */
import type { Severity } from "../server/types";

const WORST_FIRST: readonly Severity[] = ["critical", "warning", "info"];

/** Worst first; equally bad ones keep their order, which is the server's. */
export function bySeverity<T extends { severity: Severity }>(all: readonly T[]): T[] {
  return [...all].sort((a, b) => WORST_FIRST.indexOf(a.severity) - WORST_FIRST.indexOf(b.severity));
}
