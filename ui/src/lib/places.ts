/** Addresses of stretches on the timeline, which leaves room around them itself. */
import type { Query } from "./route";
import type { Place } from "./types";

/** A finding's place. */
export function placeQuery(place: Place): Query {
  return { from: String(place.start_ns), to: String(place.end_ns) };
}

/** A stretch given in milliseconds. */
export function spanQuery(startMs: number, durationMs: number): Query {
  return { from: String(Math.round(startMs * 1e6)), to: String(Math.round((startMs + durationMs) * 1e6)) };
}
