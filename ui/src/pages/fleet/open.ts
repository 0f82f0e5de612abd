/** From a cell of the map to that host and step on the timeline. */
import { askOnce } from "../../lib/api";
import { app } from "../../lib/app.svelte";
import type { FleetSteps } from "../../lib/schema";
import type { Session } from "../../lib/types";

interface TimelineSteps {
  hosts: string[];
  steps: { index: number; host: number; start_ns: number; end_ns: number; counted: boolean }[];
}

/** The time of a column on a host; null if the timeline has no such step. */
export function spanOf(timeline: TimelineSteps, map: FleetSteps, host: string, column: number): { from: number; to: number } | null {
  const number = timeline.hosts.indexOf(host);
  const [first, last] = [map.first[column] ?? 0, map.last[column] ?? 0];
  const own = timeline.steps.filter((step) => step.host === number);
  const meant = map.numbered
    ? own.filter((step) => step.index >= first && step.index <= last)
    : own.filter((step) => step.counted).slice(first, last + 1);
  if (meant.length === 0) return null;
  return { from: Math.min(...meant.map((step) => step.start_ns)), to: Math.max(...meant.map((step) => step.end_ns)) };
}

/** Opens the timeline of a host at a step. Reading the session may take a while. */
export async function openStep(session: Session, map: FleetSteps, row: number, column: number, signal: AbortSignal): Promise<void> {
  const host = map.hosts[row] ?? "";
  const timeline = await askOnce<TimelineSteps>(session.id, "timeline", signal);
  if (signal.aborted) return;
  const span = spanOf(timeline, map, host, column);
  const filter = timeline.hosts.length > 1 && timeline.hosts.includes(host) ? host : "";
  app.go("timeline", { ...(span ? { from: String(Math.round(span.from)), to: String(Math.round(span.to)) } : {}), filter }, session);
}
