/**
 * What the server answers: the shapes of `crates/serve/API.md`, one type each. Times are milliseconds unless a key says
 * `_ns`. What the command line promises as well comes from its schemas.
 */
import type {
  Info as InfoDocument,
  InfoHost,
  Report as ReportDocument,
  ReportDevice,
  ReportFinding,
  ReportHealth,
  ReportOwner,
  ReportStep,
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

/** What a capture from the page does, or what came of the last one. */
export interface Recording {
  /** The folder that is written to; null if the server does not record. */
  into: string | null;
  number: number;
  state: "off" | "idle" | "running" | "done" | "failed" | "cancelled";
  address?: string;
  stage?: "connecting" | "settling" | "recording" | "receiving";
  /** The last remark. */
  said?: string;
  cancelled?: boolean;
  elapsed_ms?: number;
  window?: { elapsed_ms: number; lasts_ms: number } | null;
  path?: string;
  session?: number | null;
  error?: { what: string; found: string; todo: string; hints: string[] } | null;
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
