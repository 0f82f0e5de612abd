/**
 * What the server answers: the shapes of `crates/serve/API.md`, one type each. Times are milliseconds unless a key says
 * `_ns`. What the command line promises as well comes from its schemas.
 */
import type {
  Compare, CompareEstimate, DevicesGauge, DevicesSpread, Info as InfoDocument, InfoHost, MemoryAllocator, Report as ReportDocument,
  ReportDevice, ReportFinding, ReportHealth, ReportOwner, ReportStep,
} from "./schema";

export type Severity = ReportFinding["severity"];

export interface Session {
  id: number;
  name: string;
  path: string;
  hosts: string[];
  bytes: number;
  state: "unopened" | "loading" | "ready" | "failed";
  /** Found after the server started. */
  appeared: boolean;
  /** Position of its path on the command line; null if there is only one. */
  place: number | null;
  /** Grows when what was said about it is stale. */
  revision: number;
}

export interface Sessions {
  version: string;
  current: number | null;
  watching: boolean;
  /** Runs with event files. */
  curves?: number;
  /** Whether partials of a fleet are served. */
  fleet?: boolean;
  /** In the order of the command line, newest first below each path. */
  sessions: Session[];
}

export interface Progress {
  stage: "queued" | "reading" | "analysing";
  bytes: number;
  total_bytes: number;
  events: number;
  hosts: number;
  hosts_done: number;
}

export interface Category {
  key: string;
  title: string;
  about: string;
  color: string;
}

/** A view as the server describes it: enough to list it and to draw its table. */
export interface ViewInfo {
  name: string;
  title: string;
  group: string;
  question: string;
  about: string;
  /** How to record what it shows. */
  record: string[];
  /** The column whose values are names of events on the timeline. */
  events: string | null;
  /** How its rows can be grouped; empty if there is no choice. */
  ways: string[];
}

export type Step = ReportStep;

export interface Place {
  host: string;
  start_ns: number | null;
  end_ns: number | null;
}

export interface Finding extends ReportFinding {
  /** Its id in words. */
  title?: string;
  place?: Place | null;
}

export type HealthRow = ReportHealth;

export interface BreakdownRow extends ReportOwner {
  title?: string;
  about?: string;
}

export type DeviceRow = ReportDevice;

export interface Report extends Omit<ReportDocument, "schema" | "breakdown" | "findings"> {
  session: string;
  /** What each file delivers. */
  delivers: Delivers[];
  verdict: {
    headline: string;
    severity: Severity;
    /** The position of the finding that the headline is about. */
    finding: number | null;
    /** What makes the headline less certain, in a few words each. */
    doubts: string[];
  };
  damage: { what: string; found: string; todo: string }[];
  step_host: string | null;
  /** The report in Markdown, as the command line writes it. */
  markdown?: string;
  breakdown: BreakdownRow[];
  findings: Finding[];
}

export interface Named {
  key: string;
  value: unknown;
}

export type HostInfo = InfoHost;

export interface Info extends InfoDocument {
  /** What each file delivers. */
  delivers: Delivers[];
}

/** What a recording shows, as its reader declares it. */
export type Delivers = "timeline" | "runs" | "counters" | "samples" | "run-samples";

export type Format = "name" | "text" | "count" | "id" | "ms" | "bytes" | "percent" | "short";

export type Value = number | string | boolean | null | Record<string, number | null>;

export interface Column {
  key: string;
  title: string;
  format: Format;
  hidden: boolean;
  optional: boolean;
  values: Value[];
}

export interface View<Members = Record<string, unknown>> {
  view: string;
  headline: string | null;
  notes: string[];
  rows: number;
  columns: Column[];
  members: Members;
  ways: string[];
}

export interface Allocator extends Omit<MemoryAllocator, "timeline"> {
  /** Milliseconds and bytes in use. */
  timeline: [number, number][];
}

/** A quantity that a monitor sampled. */
export type Sampled = DevicesSpread;

/** What it sampled of one GPU. */
export type GpuSamples = DevicesGauge;

export interface MemoryAt {
  t_ns: number;
  in_use: number | null;
  rows: { op: string; bytes: number; blocks: number; shape: string | null; data_type: string | null; region: string | null }[];
}

export type Estimate = CompareEstimate;

export interface Comparison extends Omit<Compare, "schema"> {
  runs: Record<"base" | "new", { label: string; step_ms: number[] }>;
}
