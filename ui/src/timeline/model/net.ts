/** The requests of the timeline, in one place; tests and measurements replace them. */
import { api } from "../../server/api";
import { ask, headers, Problem } from "../../server/ask";
import type { DeviceGap } from "../../server/views";
import type { QueryAnswer } from "./queryrows";
import type {
  AreaAnswer,
  Category,
  EventDetails,
  Hit,
  Overview,
  Proof,
  RankRun,
  SearchAnswer,
  StepPath,
  Timeline,
} from "./types";

export interface Source {
  timeline(signal?: AbortSignal): Promise<Timeline>;
  categories(signal?: AbortSignal): Promise<Category[]>;
  overview(signal?: AbortSignal): Promise<Overview>;
  /** The longest gaps of the devices. */
  gaps(): Promise<DeviceGap[]>;
  /** Collectives of several ranks. */
  collectives(): Promise<RankRun[]>;
  /** The critical path of a host's step at a moment. */
  critical(host: number, ns: number): Promise<StepPath>;
  /** The rows of a query. */
  sql(query: string): Promise<QueryAnswer>;
  /** What a finding is about. */
  evidence(finding: string): Promise<Proof>;
  tile(level: number, tile: number, tracks: readonly number[], signal: AbortSignal): Promise<ArrayBuffer>;
  event(track: number, event: number, signal?: AbortSignal): Promise<EventDetails>;
  neighbour(track: number, event: number, dir: "next" | "previous", same: "name" | "row"): Promise<Hit | null>;
  at(track: number, row: number, ns: number, tolerance: number): Promise<Hit | null>;
  search(text: string, offset: number, limit: number, signal?: AbortSignal): Promise<SearchAnswer>;
  /** `null` means all tracks. */
  area(start: number, end: number, tracks: readonly number[] | null, signal?: AbortSignal): Promise<AreaAnswer>;
}

/** A session as its server draws it, or on the clocks that its hosts recorded. */
export function serverSource(session: number, recorded = false): Source {
  const clock = recorded ? { clock: "recorded" } : {};
  const of = (path: string, values: Record<string, string | number> = {}) => {
    const pairs = Object.entries({ ...clock, ...values }).map(([key, value]) => [key, String(value)]);
    return `s/${session}/${path}${pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`}`;
  };
  return {
    timeline: (signal) => ask<Timeline>(of("timeline"), signal),
    categories: (signal) => api.categories(signal),
    overview: (signal) => ask<Overview>(of("overview", { buckets: 1024 }), signal),
    gaps: async () => (await api.view(session, "devices")).members.gaps ?? [],
    collectives: async () => (await ask<{ runs: RankRun[] }>(of("collectives"))).runs,
    critical: (host, ns) => ask<StepPath>(of("critical", { host, t_ns: ns })),
    sql: (query) => ask<QueryAnswer>(`s/${session}/sql?${new URLSearchParams({ q: query })}`),
    evidence: (finding) => ask<Proof>(of("evidence", { finding })),
    tile: (level, tile, tracks, signal) =>
      bytes(
        `api/s/${session}/tiles?level=${level}&tile=${tile}&tracks=${tracks.join(",")}${recorded ? "&clock=recorded" : ""}`,
        signal,
      ),
    event: (track, event, signal) => ask<EventDetails>(of("event", { track, event }), signal),
    neighbour: (track, event, dir, same) =>
      ask<{ event: Hit | null }>(of("neighbour", { track, event, dir, same })).then((a) => a.event),
    at: (track, row, ns, tolerance) =>
      ask<{ event: Hit | null }>(of("at", { track, row, t_ns: ns, tolerance_ns: tolerance })).then((a) => a.event),
    search: (q, offset, limit, signal) => ask<SearchAnswer>(of("search", { q, offset, limit }), signal),
    area: (start, end, tracks, signal) =>
      ask<AreaAnswer>(
        of("area", { start_ns: start, end_ns: end }) + (tracks ? `&tracks=${tracks.join(",")}` : ""),
        signal,
      ),
  };
}

async function bytes(url: string, signal: AbortSignal): Promise<ArrayBuffer> {
  const response = await fetch(url, { headers: headers(), signal });
  if (response.status !== 200)
    throw new Problem(`The server answered with ${response.status}`, "", "", [], response.status);
  return response.arrayBuffer();
}
