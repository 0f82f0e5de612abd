/** URLs of time ranges on the timeline, which adds its own margin. */
import { askOnce } from "../server/ask";
import { app } from "./app.svelte";
import type { Query } from "./route";
import type { Place } from "../server/types";

/** A finding's location; empty if it cannot be mapped to the session's clock. */
export function placeQuery(place: Place, finding: string): Query {
  return place.start_ns === null || place.end_ns === null
    ? {}
    : { from: String(place.start_ns), to: String(place.end_ns), finding };
}

/** A time range in milliseconds of a host's own clock, which is `shiftNs` off the session's. */
export function spanQuery(startMs: number, durationMs: number, shiftNs = 0): Query {
  const start = startMs * 1e6 + shiftNs;
  return { from: String(Math.round(start)), to: String(Math.round(start + durationMs * 1e6)) };
}

interface Clocks {
  hosts: string[];
  /** Offset from each host's times to the session's. */
  shifts_ns?: number[];
}

/** Offset from a host's times to the session's, in nanoseconds. A view of one host may omit its name. */
export type Shift = (host: string | null | undefined) => number;

/** The hosts' clocks; if they are unavailable, the host's own time is the best guess. */
export async function clocksOf(session: number): Promise<Shift> {
  const clocks = await askOnce<Clocks>(session, "timeline").catch(() => null);
  return (host) => clocks?.shifts_ns?.[Math.max(0, clocks.hosts.indexOf(host ?? ""))] ?? 0;
}

/** Shows a time range of a host on the timeline. */
export async function showSpan(
  session: number,
  host: string | null | undefined,
  startMs: number,
  durationMs: number,
): Promise<void> {
  app.go("timeline", spanQuery(startMs, durationMs, (await clocksOf(session))(host)));
}
