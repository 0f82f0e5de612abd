/** The server's data about a session's timeline: the shapes of `crates/serve/API.md`. Times are nanoseconds from the origin. */
import type { Hit } from "../../server/events";

export interface Process {
  id: number;
  host: number;
  name: string;
  kind: "host" | "device" | "other";
}

export interface Track {
  id: number;
  process: number;
  name: string;
  kind: "thread" | "stream" | "async" | "counter" | "derived";
  rows: number;
  events: number;
  start_ns: number;
  end_ns: number;
  busy_ns: number;
  min?: number | null;
  max?: number | null;
}

export interface Step {
  index: number;
  host: number;
  name: string;
  start_ns: number;
  end_ns: number;
  counted: boolean;
}

export type Clock = "aligned" | "recorded";

/** What is unknown is null. */
export interface HostClock {
  reference: boolean;
  /** What is added to the host's times when clocks are aligned. */
  shift_ns: number | null;
  uncertainty_ns: number | null;
  /** Number of common collectives that say so. */
  collectives: number | null;
  /** Why it is unknown. */
  unknown: string | null;
}

export interface Timeline {
  origin_unix_ns: string | null;
  start_ns: number;
  end_ns: number;
  hosts: string[];
  /** Offset from each host's own times to the session's. */
  shifts_ns?: number[];
  /** The hosts' clocks as they are drawn: as recorded, or moved to where their collectives end together. */
  clock?: Clock;
  /** How each host's clock stands to that of the reference; null if there is one clock. */
  clocks?: HostClock[] | null;
  processes: Process[];
  tracks: Track[];
  steps: Step[];
  origin: "marker" | "inferred" | "none";
}

export type { EventDetails, EventRef, Flow, Hit } from "../../server/events";
export type { Category } from "../../server/types";

/** A part of a step's critical path. One without an event of its own has no track. */
export interface PathPiece {
  kind: string;
  category: string;
  start_ns: number;
  end_ns: number;
  track: number | null;
  event: number | null;
  row: number | null;
}

/** The critical path of one step, or why it is unknown. */
export interface StepPath {
  host: number;
  /** Null if there is none. */
  step: number | null;
  unknown: string | null;
  start_ns?: number;
  end_ns?: number;
  categories?: { category: string; fraction: number }[];
  pieces: PathPiece[];
}

export interface SearchAnswer {
  total: number;
  names: number;
  /** The matching names as tiles number them; null if there are too many. */
  name_ids: number[] | null;
  hits: Hit[];
  density: number[];
}

export interface AreaRow {
  name: string;
  category: number | string | null;
  count: number;
  total_ns: number;
  average_ns: number;
  self_ns: number;
  min_ns: number;
  max_ns: number;
}

export interface FlameBox {
  name: string;
  category: number | string | null;
  depth: number;
  start: number;
  total_ns: number;
  count: number;
}

export interface AreaAnswer {
  rows: AreaRow[];
  events: number;
  flame: FlameBox[];
  span_ns: number;
}

/** A collective on one of several ranks. */
export interface RankRun {
  track: number;
  row: number;
  start_ns: number;
  end_ns: number;
  /** How long this rank waited for the last one; the transfer follows. */
  waited_ns: number;
  last: boolean;
}

export interface Overview {
  start_ns: number;
  end_ns: number;
  buckets: number;
  categories: Record<string, number[]>;
}

/** A time range. */
export interface Span {
  start: number;
  end: number;
}

/** The time range that a finding refers to. */
export interface Evidence extends Span {
  /** The id of the finding, if a link named it. */
  finding?: string;
  /** What it is about, once the server has said it. */
  proof?: Proof;
}

/** What a finding is about in its step: where to look, and the stretches that it owns there. */
export interface Proof {
  title: string;
  /** What it costs: `72.0 ms per step`. */
  figure: string | null;
  host: number;
  start_ns: number;
  end_ns: number;
  /** The thread of the loop. */
  track: number | null;
  pieces: {
    start_ns: number;
    end_ns: number;
    category: string;
    title: string;
    /** No event shows it. */ empty: boolean;
  }[];
}
