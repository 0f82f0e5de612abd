/** Addresses of stretches on the timeline, which leaves room around them itself. */
import { askOnce } from "./api";
import { app } from "./app.svelte";
import type { Query } from "./route";
import type { Place } from "./types";

/** A finding's place; none where it cannot be put on the session's clock. */
export function placeQuery(place: Place): Query {
  return place.start_ns === null || place.end_ns === null ? {} : { from: String(place.start_ns), to: String(place.end_ns) };
}

/** A stretch in milliseconds of a host's own clock, `shiftNs` away from the session's. */
export function spanQuery(startMs: number, durationMs: number, shiftNs = 0): Query {
  const start = startMs * 1e6 + shiftNs;
  return { from: String(Math.round(start)), to: String(Math.round(start + durationMs * 1e6)) };
}

interface Clocks {
  hosts: string[];
  /** What to add to each host's times to have the session's. */
  shifts_ns?: number[];
}

/** What to add to a host's times to have the session's, in nanoseconds. A view of one host may leave out its name. */
export type Shift = (host: string | null | undefined) => number;

/** The hosts' clocks; where they cannot be had, the host's own time is the best guess. */
export async function clocksOf(session: number): Promise<Shift> {
  const clocks = await askOnce<Clocks>(session, "timeline").catch(() => null);
  return (host) => clocks?.shifts_ns?.[Math.max(0, clocks.hosts.indexOf(host ?? ""))] ?? 0;
}

/** Goes to a stretch of a host on the timeline. */
export async function showSpan(session: number, host: string | null | undefined, startMs: number, durationMs: number): Promise<void> {
  app.go("timeline", spanQuery(startMs, durationMs, (await clocksOf(session))(host)));
}
