/**
 * The views: their description, their table, and what each says besides it. All types of views are here, so that the
 * pages agree on them.
 */
import type { DevicesGauge, DevicesSpread, MemoryAllocator } from "./schema";

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

/** An idle time of a device, on its host's clock. */
export interface DeviceGap {
  host: string;
  device: string;
  start_ms: number;
  duration_ms: number;
  /** The category of what the host did at that time. */
  cause: string;
  /** What ran on the host then. */
  host_event: string | null;
}

/** Requests between two latencies. */
export interface LatencyBin {
  from_ms: number;
  to_ms: number;
  count: number;
}

/** The slowest request, on its host's clock. */
export interface SlowestRequest {
  host: string;
  start_ms: number;
  duration_ms: number;
}

/** What an input pipeline does to be fast; absent for pipelines other than tf.data. */
export interface Habits {
  has_prefetch_by_user?: boolean;
  has_parallel_map?: boolean;
  has_cache?: boolean;
  has_interleave?: boolean;
  runs_python?: boolean;
}

/** The peaks of one device, in trillions of operations per second; null where unknown. */
export interface DevicePeaks {
  device: string;
  name: string;
  fp32: number | null;
  tf32: number | null;
  fp16: number | null;
  memory_bytes_per_s: number;
}

export interface InputMembers extends Habits {
  wait_ms_per_step: number | null;
  wait_fraction: number | null;
  batches: number | null;
  batches_per_second: number | null;
  examples_per_second: number | null;
  most_batches_per_second: number | null;
  batch_size: number | null;
}

/** All ranks of a job in all steps, in milliseconds by rank and step. */
export interface RankMap {
  steps: number[];
  ranks: string[];
  waiting_ms: number[][];
  late_ms: number[][];
}

/** What a view's answer has besides its table, by the view's name. */
export interface ViewMembers {
  devices: { gaps?: DeviceGap[]; gauges?: GpuSamples[]; peaks?: DevicePeaks[] };
  inference: { histogram?: LatencyBin[]; slowest?: SlowestRequest | null };
  input: InputMembers;
  memory: { allocators: Allocator[] };
  ranks: { map?: RankMap | null };
  scopes: { steps: number | null };
  steps: { mean_ms: number | null; p90_ms: number | null; host?: string };
}

/** The members of a view; nothing is known about those that the page draws as a table only. */
export type MembersOf<Name extends string> = Name extends keyof ViewMembers
  ? ViewMembers[Name]
  : Record<string, unknown>;
