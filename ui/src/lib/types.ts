/** What the server answers: the shapes of `crates/serve/API.md`, one type each. Times are milliseconds unless a key says `_ns`. */

export type Severity = "critical" | "warning" | "info";

export interface Session {
  id: number;
  name: string;
  path: string;
  hosts: string[];
  bytes: number;
  state: "unopened" | "loading" | "ready" | "failed";
  /** Found after the server started. */
  appeared: boolean;
}

export interface Sessions {
  version: string;
  current: number | null;
  watching: boolean;
  /** Newest first. */
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

export interface Step {
  index: number;
  name: string;
  start_ms: number;
  duration_ms: number;
  breakdown: Record<string, number>;
}

export interface Place {
  host: string;
  start_ns: number | null;
  end_ns: number | null;
}

export interface Finding {
  id: string;
  severity: Severity;
  subject: string | null;
  fraction: number | null;
  gain_ms_per_step: number | null;
  confidence: number;
  summary: string;
  evidence: string[];
  advice: string[];
  /** Its id in words. */
  title?: string;
  place?: Place | null;
}

export interface HealthRow {
  id: string;
  severity: "error" | "warning" | "info";
  message: string;
}

export interface BreakdownRow {
  category: string;
  ms_per_step: number | null;
  fraction: number;
  title?: string;
  about?: string;
}

export interface DeviceRow {
  id: string;
  name: string;
  kind: "cpu" | "gpu" | "tpu" | "other";
  busy_fraction: number | null;
  steps_seen: number;
}

export interface Report {
  session: string;
  verdict: { headline: string; severity: Severity; /** What is best taken with a grain of salt. */ despite?: string | null };
  damage: { what: string; found: string; todo: string }[];
  sources: { path: string; format: string; bytes: number; host: string; events: number }[];
  health: HealthRow[];
  steps: {
    count: number;
    origin: "marker" | "inferred" | "none";
    how: string;
    dropped: number;
    mean_ms: number | null;
    median_ms: number | null;
    p90_ms: number | null;
    p99_ms: number | null;
    stddev_ms: number | null;
    per_step: Step[];
  };
  step_host: string | null;
  breakdown: BreakdownRow[];
  devices: DeviceRow[];
  findings: Finding[];
}

export interface Named {
  key: string;
  value: unknown;
}

export interface HostInfo {
  host: string;
  path: string;
  format: string;
  bytes: number;
  events: number;
  span_ms: number | null;
  began_unix_ns: number | null;
  captured_unix_ns: [number, number] | null;
  devices: { number: number; name: string | null; kind: string; memory_bytes?: number | null; multiprocessors?: number | null }[];
  step_markers: { name: string; count: number }[];
  versions: Named[];
  capture: Named[];
  distributed: Named[];
}

export interface Info {
  session: string;
  events: number;
  span_ms: number | null;
  hosts: HostInfo[];
}

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

export interface Allocator {
  host: string;
  name: string;
  allocations: number;
  frees: number;
  peak_bytes: number;
  peak_ms: number;
  peak_step: number | null;
  capacity_bytes: number | null;
  reserved_bytes_at_peak: number | null;
  fragmentation_at_peak: number | null;
  pressure: number | null;
  before_capture_bytes: number;
  growth: { bytes_per_step: number; rising_fraction: number; steps: number; grows: boolean } | null;
  kept: { op: string; shape: string | null; blocks: number; bytes: number; steps: number }[];
  steps: { index: number; allocations: number; frees: number; end_bytes: number; peak_bytes: number }[];
  timeline: [number, number][];
}

/** A sampled quantity. */
export interface Gauge {
  mean: number;
  max: number;
}

/** The samples of one GPU. */
export interface Gauges {
  host: string;
  id: string;
  samples: number;
  seconds: number;
  utilisation: Gauge | null;
  memory_bytes: Gauge | null;
  memory_total_bytes: number | null;
  power_w: Gauge | null;
  power_limit_w: number | null;
  temperature_c: Gauge | null;
  clock_mhz: Gauge | null;
  throttled_fraction: number | null;
  throttle_reasons: string[] | null;
}

export interface MemoryAt {
  t_ns: number;
  in_use: number | null;
  rows: { op: string; bytes: number; blocks: number; shape: string | null; data_type: string | null; region: string | null }[];
}

export interface Estimate {
  value: number;
  low: number | null;
  high: number | null;
}

export interface Delta {
  base_ms: number;
  new_ms: number;
  delta_ms: number;
}

export interface Comparison {
  verdict: "faster" | "slower" | "same" | "unclear" | "not-comparable";
  /** The unit of measurement: the step, or one launch of each kernel profiled on both sides. */
  unit: "step" | "launch";
  summary: string;
  ratio: { median: number | null; low: number | null; high: number | null };
  /** The figure that decided; `ratio` and `delta_ms` are of it. */
  decided_by: "mean" | "median" | "p90";
  base: { runs: string[]; steps: number; median_ms: number | null; mean_ms: number | null };
  new: { runs: string[]; steps: number; median_ms: number | null; mean_ms: number | null };
  /** Further notes, one sentence each. */
  remarks: string[];
  delta_ms: Estimate | null;
  breakdown: (Delta & { category: string; proven: boolean; delta_low_ms: number | null; delta_high_ms: number | null })[];
  scopes: (Delta & { name: string })[];
  ops: (Delta & { name: string; type: string; where: string; matched: string; base_count: number | null; new_count: number | null })[];
  findings: Record<"solved" | "new" | "left", { id: string; subject: string | null }[]>;
  comparability: { similarity: number | null; several_changes: boolean; differences: { id: string; blocks: boolean; message: string }[] };
  runs: Record<"base" | "new", { label: string; step_ms: number[] }>;
}
