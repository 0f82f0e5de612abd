/** From a cell of the map to that host and step on the timeline. */
import { askOnce } from "../../server/ask";
import { app } from "../../state/app.svelte";
import type { FleetSteps } from "../../server/schema";
import type { Session } from "../../server/types";
import { spanOf, type TimelineSteps } from "./heat";

/** Opens the timeline of a host at a step. Reading the session may take a while. */
export async function openStep(
  session: Session,
  map: FleetSteps,
  row: number,
  column: number,
  signal: AbortSignal,
): Promise<void> {
  const host = map.hosts[row] ?? "";
  const timeline = await askOnce<TimelineSteps>(session.id, "timeline", signal);
  if (signal.aborted) return;
  const span = spanOf(timeline, map, host, column);
  const filter = timeline.hosts.length > 1 && timeline.hosts.includes(host) ? host : "";
  app.go(
    "timeline",
    { ...(span ? { from: String(Math.round(span.from)), to: String(Math.round(span.to)) } : {}), filter },
    session,
  );
}
