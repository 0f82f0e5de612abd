/** What `--json` promises, as the page reads it. Written from docs/schema/ by `cargo xtask types`; do not edit. */

/** What `stepscope report --json` and `stepscope demo --json` write. */
export interface Report {
  /** Where the mean step goes, largest first. Sums to the mean step time. */
  breakdown: ReportOwner[];
  /** How the clocks of the hosts differ, by the ends of common collectives. Absent if there is one host, or if no host has collectives. */
  clocks?: ReportClock[];
  /** The part of the recording that the figures cover; null if nothing was recorded. */
  covers: ReportCovers | null;
  /** All devices of all hosts. */
  devices: ReportDevice[];
  /** Ordered. The first one is the verdict. */
  findings: ReportFinding[];
  /** What is wrong with the recording. `stepscope health` has more about each. */
  health: ReportHealth[];
  /** The ops that take most of the time, by self time. */
  ops: ReportOp[];
  /** The program's own ranges around time of which nothing else is known, longest first. Absent if something else shows where the time goes. */
  ranges?: ReportRange[];
  /** The run that the profile is part of, by event files beside it. Absent if there are none. */
  run?: ReportRun;
  /** The name of this schema. */
  schema: "stepscope.report.v1";
  /** The files that were read. */
  sources: ReportSource[];
  /** The steps and their times. */
  steps: ReportSteps;
  /** The share of the devices' peak that steps reach. Absent if the peaks or the compiled programs are unknown. */
  utilisation?: ReportUtilisation;
}

/** Milliseconds per category. Categories without time are left out. */
export type ReportBreakdown = Record<string, number>;

export interface ReportClock {
  /** Number of common collectives that say so; 0 for the reference itself. */
  collectives: number | null;
  /** The host. */
  host: string;
  /** The host whose clock the others are compared with. */
  reference: string;
  /** What to add to the host's wall clock to get that of the reference; null if it is unknown, or if a recording has no wall clock. */
  shift_ms: number | null;
  /** Median distance of the ends of single collectives from that; null if the shift is unknown. */
  uncertainty_ms: number | null;
  /** Why the shift is unknown, in words. Absent if it is known. */
  unknown?: string;
}

/** The part of the recording that the figures cover. */
export interface ReportCovers {
  /** The share of the recording's busy time that lies in the counted steps: of the device that limits them, or of the host. Null if there are no steps. */
  busy_share: number | null;
  /** Steps in the range that do not count, such as warm-up. */
  excluded_steps: number;
  /** The lowest step number. */
  first_step: number | null;
  /** Start of the covered time. */
  from_ms: number | null;
  /** The highest step number. */
  last_step: number | null;
  /** What was chosen: counted steps, a time, or the whole recording. */
  range: "steps" | "time" | "whole";
  /** Steps that count; null for one piece of time. */
  steps: number | null;
  /** End of the covered time. */
  to_ms: number | null;
}

export interface ReportDevice {
  /** Share of the covered time in which it works, 0 to 1. */
  busy_fraction: number | null;
  /** Its id; starts with its host if there are several hosts. */
  id: string;
  /** What it is. */
  kind: "cpu" | "gpu" | "tpu" | "other";
  /** Its model or its name in the recording. */
  name: string;
  /** Steps in which it was seen. */
  steps_seen: number;
}

export interface ReportFinding {
  /** What it is about: why steps take long, what the loop does in every step, the figure that such a program is run for, the curves of the run, or how far the recording can be trusted. */
  about: "cause" | "habits" | "goal" | "run" | "trust";
  /** What to do, and how to check it. */
  advice: string[];
  /** How sure it is, 0 to 1. */
  confidence: number;
  /** What proves it. */
  evidence: string[];
  /** The expected saving per step. */
  expected_ms_per_step?: number | null;
  /** Share of the step time that it owns, 0 to 1. */
  fraction: number | null;
  /** The most by which the time of its subject can fall, 0 to 1. */
  gain_fraction: number | null;
  /** The most that a fix can save per step. Never more than it owns. */
  gain_ms_per_step: number | null;
  /** Upper end of the expected saving. */
  high_ms?: number | null;
  /** The public id. An id never changes its meaning; new ids may be added. */
  id: string;
  /** The user's code that causes it, as `train.py:41 make_batch`, if Python was sampled or traced. */
  line?: string;
  /** Lower end of the expected saving. */
  low_ms?: number | null;
  /** How much it matters. */
  severity: "critical" | "warning" | "info";
  /** What it is about, for example the op type. */
  subject: string | null;
  /** One sentence. */
  summary: string;
}

export interface ReportHealth {
  /** The public name of the problem. */
  id: string;
  /** What is wrong, and what to do about it. */
  message: string;
  /** How bad it is. */
  severity: "error" | "warning" | "info";
}

export interface ReportOp {
  /** How often it ran. */
  count: number;
  /** Share of all self time, 0 to 1. */
  fraction: number;
  /** Scopes of the model and operation of the framework, of an instruction of a compiled program. Absent if unknown. */
  label?: string;
  /** Its name. */
  name: string;
  /** Its time, without ops inside it. */
  self_ms: number;
  /** Its file and line. Absent if unknown. */
  source?: string;
  /** Its time, with ops inside it. */
  total_ms: number;
  /** Its type. */
  type: string;
  /** Where it ran. */
  where: "host" | "device";
}

export interface ReportOwner {
  /** Who owns the time. */
  category: "compute" | "communication" | "transfer_in" | "transfer_out" | "transfer_device" | "input" | "tracing" | "compile" | "launch" | "dispatch" | "python" | "output" | "sync" | "idle" | "unknown";
  /** Share of the mean step, 0 to 1. */
  fraction: number;
  /** Milliseconds of the mean step. */
  ms_per_step: number;
}

export interface ReportRange {
  /** Share of the mean step, 0 to 1. */
  fraction: number;
  /** Milliseconds of the mean step, without the ranges nested in it. */
  ms_per_step: number;
  /** Its name. `*` stands for numbers that differ. */
  name: string;
}

export interface ReportRun {
  /** First step of the stretch in which the profile was recorded; null if that is unknown. */
  first_step: number | null;
  /** Last step of that stretch. */
  last_step: number | null;
  /** Its name. */
  name: string;
  /** Last step that the run logged. */
  of_steps: number | null;
  /** A pause that the profile lies in. */
  pause: "evaluation" | "checkpoint" | "restart" | "unknown" | null;
  /** Time per step there by the log; null if the log shows only a pause. */
  step_ms: number | null;
  /** Where in the run the profile was recorded, and whether its steps were typical, in words. */
  summary: string;
  /** The tag whose times show it. */
  tag: string | null;
  /** Whether steps there were typical of the run; null if that is unknown. */
  typical: "yes" | "slower" | "faster" | null;
  /** Median time per step of the run, without pauses. */
  typical_ms: number | null;
  /** What is counted. */
  unit: "step" | "epoch" | null;
}

export interface ReportSource {
  /** Its size. */
  bytes: number;
  /** Events in it. */
  events: number;
  /** Its format, for example xplane. */
  format: string;
  /** The host that it was recorded on. */
  host: string;
  /** Where the file is. */
  path: string;
}

export interface ReportStep {
  /** Where it goes. Sums to its duration to 0.1 %. */
  breakdown: ReportBreakdown;
  /** How long it takes. */
  duration_ms: number;
  /** Its number. */
  index: number;
  /** What marks it. */
  name: string;
  /** When it starts. */
  start_ms: number;
}

export interface ReportSteps {
  /** Steps that count. */
  count: number;
  /** Steps that do not count: warm-up, cut off, before a pause. */
  dropped: number;
  /** The same in words. */
  how: string;
  /** Mean step time. */
  mean_ms: number | null;
  /** Median step time. */
  median_ms: number | null;
  /** How the steps were found. */
  origin: "marker" | "inferred" | "none";
  /** 90th percentile of the step time. */
  p90_ms: number | null;
  /** 99th percentile of the step time. */
  p99_ms: number | null;
  /** Every step that counts. */
  per_step: ReportStep[];
  /** Standard deviation of the step time. */
  stddev_ms: number | null;
  /** Why the median step differs from the mean step, in words; null if it does not, or if that is unknown. */
  uneven: string | null;
}

export interface ReportUtilisation {
  /** The device. */
  device: string;
  /** Hardware FLOPs utilisation, 0 to 1: all matrix operations that ran. */
  hfu: number;
  /** Model FLOPs utilisation of the mean step, 0 to 1: matrix operations without recomputation, each type against its own peak. */
  mfu: number;
  /** Where its peaks come from. */
  source: string;
}

/** What `stepscope info --json` writes. */
export interface Info {
  /** Events of all files. */
  events: number;
  /** What each file holds. */
  hosts: InfoHost[];
  /** The name of this schema. */
  schema: "stepscope.info.v1";
  /** The session that was read. */
  session: string;
  /** All sessions that were found, newest first. */
  sessions: string[];
  /** The files that were read. */
  sources: InfoSource[];
  /** The longest span of any host. */
  span_ms: number | null;
}

export interface InfoDevice {
  /** Core clock. */
  clock_khz: number | null;
  /** CUDA compute capability. */
  compute_capability: string | null;
  /** Events on its own tracks; null if the device is only listed. */
  events: number | null;
  /** What it is. */
  kind: "cpu" | "gpu" | "tpu" | "other";
  /** Peak memory bandwidth in bytes per second. */
  memory_bandwidth: number | null;
  /** Memory. */
  memory_bytes: number | null;
  /** Streaming multiprocessors or compute units. */
  multiprocessors: number | null;
  /** Its model. */
  name: string | null;
  /** The file's own number. */
  number: number;
  /** All properties, in the file's own words. */
  properties: InfoNamed[];
  /** Who made it. */
  vendor: string | null;
}

export interface InfoHost {
  /** Records that belong to no event, such as compiled modules. */
  attachments: number;
  /** When the first event began, in nanoseconds since 1970. */
  began_unix_ns: number | null;
  /** Its size. */
  bytes: number;
  /** Options of the capture. */
  capture: InfoNamed[];
  /** When the capture began and ended, in nanoseconds since 1970. */
  captured_unix_ns: number[] | null;
  /** Its devices. */
  devices: InfoDevice[];
  /** Its place in a distributed job. */
  distributed: InfoNamed[];
  /** Events in it. */
  events: number;
  /** Ends of arrows between events. */
  flow_points: number;
  /** Its format. */
  format: string;
  /** The host's name. */
  host: string;
  /** Distinct kinds of events. */
  kinds: number;
  /** Where the file is. */
  path: string;
  /** Its tracks, by process. */
  processes: InfoProcess[];
  /** From the first event to the last. */
  span_ms: number | null;
  /** Explicit step markers. */
  step_markers: InfoMarker[];
  /** Whether it says what ran when. Samples and profiled launches do not. */
  timeline: boolean;
  /** Versions of software. */
  versions: InfoNamed[];
}

export interface InfoMarker {
  /** How many there are. */
  count: number;
  /** The lowest step number. */
  first_step: number | null;
  /** The highest step number. */
  last_step: number | null;
  /** The name that the markers share. */
  name: string;
  /** Whether each marks a whole step. */
  root: boolean;
}

export interface InfoNamed {
  key: string;
  /** In the file's own type. */
  value: string | number | boolean | null;
}

export interface InfoProcess {
  /** What it is. */
  kind: "host" | "device" | "other";
  /** Its name as recorded. */
  name: string;
  /** The recorder's own number. */
  number: number;
  /** Its tracks. */
  tracks: InfoTrack[];
}

export interface InfoSource {
  /** Its size. */
  bytes: number;
  /** Events in it. */
  events: number;
  /** Its format, for example xplane. */
  format: string;
  /** The host that it was recorded on. */
  host: string;
  /** Where the file is. */
  path: string;
}

export interface InfoTrack {
  /** Events on it. */
  events: number;
  /** What it is. */
  kind: "thread" | "stream" | "async" | "counter" | "derived";
  /** Kinds of events on it. */
  kinds: number;
  /** Its name as recorded. */
  name: string;
  /** The recorder's own number. */
  number: number;
  /** Samples, if it is a counter. */
  samples: number;
  /** From its first event to its last. */
  span_ms: number | null;
}

/** What `stepscope compare --json` writes. */
export interface Compare {
  /** The base side. */
  base: CompareSide;
  /** Mean step time beside what the load of the machine makes of the base: `base_ms` is what an unchanged program would take. */
  beyond_load: CompareMeasured | null;
  /** Difference per category. */
  breakdown: CompareCategory[];
  /** Whether the sides can be compared. */
  comparability: CompareComparability;
  /** The figure that decided. */
  decided_by: "mean" | "median" | "beyond_load" | "pairs";
  /** Difference of the figure that decided. */
  delta_ms: CompareEstimate | null;
  /** What was solved, what is new, what is left. */
  findings: CompareFindings;
  /** How much slower or faster the whole machine was. */
  load: CompareLoad | null;
  /** Whether a difference is called unclear because the machine alone can explain it. */
  machine_explains: boolean;
  /** The limits of the decision. */
  margins: CompareMargins;
  /** Mean step time. */
  mean: CompareMeasured | null;
  /** Median step time. */
  median: CompareMeasured | null;
  /** What would give a clear answer. */
  needed: CompareNeeded | null;
  /** The new side. */
  new: CompareSide;
  /** What limits the precision. */
  noise: CompareNoise;
  /** Difference per op. */
  ops: CompareOp[];
  /** 90th percentile. */
  p90: CompareMeasured | null;
  /** How many pairs of windows decided, for `stepscope gate --paired`. */
  pairs: number | null;
  /** Difference per part of the model in compiled programs. Empty if a side has none. */
  programs: ComparePart[];
  /** Mann-Whitney test of the steps. */
  rank_test: CompareRanks | null;
  /** New over base of the figure that decided. */
  ratio: CompareRatio;
  /** What else matters. */
  remarks: string[];
  /** The name of this schema. */
  schema: "stepscope.compare.v1";
  /** Difference per scope. */
  scopes: CompareScope[];
  /** The verdict in one sentence. */
  summary: string;
  /** What was measured. */
  unit: "step" | "launch";
  /** What changed, as far as it is certain. */
  verdict: "faster" | "slower" | "same" | "unclear" | "not-comparable";
  /** The same by the steps of the runs alone. */
  verdict_by_steps: "faster" | "slower" | "same" | "unclear" | "not-comparable";
  /** What a step does, as far as both sides know it. */
  work: CompareWork[];
}

export interface CompareCategory {
  /** On the base side. */
  base_ms: number;
  /** The category. */
  category: "compute" | "communication" | "transfer_in" | "transfer_out" | "transfer_device" | "input" | "tracing" | "compile" | "launch" | "dispatch" | "python" | "output" | "sync" | "idle" | "unknown";
  /** Upper end of its interval. */
  delta_high_ms: number | null;
  /** Lower end of its interval. */
  delta_low_ms: number | null;
  /** Difference. */
  delta_ms: number;
  /** On the new side. */
  new_ms: number;
  /** Whether the difference is more than noise. */
  proven: boolean;
  /** New over base. */
  ratio: CompareEstimate | null;
}

export interface CompareComparability {
  /** What differs. */
  differences: CompareDifference[];
  /** Whether more than one thing changed. */
  several_changes: boolean;
  /** How alike the sides are, 0 to 1. */
  similarity: number | null;
}

export interface CompareDifference {
  /** Whether it forbids a comparison. */
  blocks: boolean;
  /** The public name of the difference. */
  id: string;
  /** The difference in words. */
  message: string;
}

export interface CompareEstimate {
  /** Upper end of the interval. */
  high: number | null;
  /** Lower end of the interval. */
  low: number | null;
  /** The estimate. */
  value: number;
}

export interface CompareFinding {
  /** The public id. */
  id: string;
  /** What it is about. */
  subject: string | null;
}

export interface CompareFindings {
  /** On both sides. */
  left: CompareFinding[];
  /** Only on the new side. */
  new: CompareFinding[];
  /** Only on the base side. */
  solved: CompareFinding[];
}

export interface CompareLoad {
  /** New over base. */
  factor: number;
  /** Ops that it is measured by. */
  ops: number;
  /** Its spread. */
  spread: number | null;
}

export interface CompareMargins {
  /** The smallest relative change that matters. */
  practical: number;
  /** The largest relative change that counts as same. */
  same: number;
  /** Level of significance. */
  significance: number;
}

export interface CompareMeasured {
  /** On the base side. */
  base_ms: number;
  /** Upper end of its interval. */
  delta_high_ms: number | null;
  /** Lower end of its interval. */
  delta_low_ms: number | null;
  /** Difference. */
  delta_ms: number;
  /** On the new side. */
  new_ms: number;
  /** New over base. */
  ratio: CompareEstimate | null;
}

export interface CompareNeeded {
  /** Runs per side. */
  runs: number | null;
  /** Steps per run. */
  steps: number | null;
}

export interface CompareNoise {
  /** Half the width of the interval of the ratio that comes from differences between runs. */
  from_runs: number | null;
  /** Half the width that comes from the scatter of steps. */
  from_steps: number | null;
  /** Relative standard deviation between runs. */
  run_to_run: number | null;
}

export interface CompareOp {
  /** Runs per step, base. */
  base_count: number | null;
  /** Per step, base. */
  base_ms: number | null;
  /** Difference. */
  delta_ms: number;
  /** How the sides were matched. */
  matched: "name" | "type" | "base-only" | "new-only";
  /** The op. */
  name: string;
  /** Runs per step, new. */
  new_count: number | null;
  /** Per step, new. */
  new_ms: number | null;
  /** Its type. */
  type: string | null;
  /** Where it ran. */
  where: "host" | "device";
}

export interface ComparePart {
  /** Bytes per step on the base side; null if part of them is unknown. */
  base_bytes: number | null;
  /** Operations per step on the base side; null if part of them is unknown. */
  base_flops: number | null;
  /** Time per step on the base side. */
  base_ms: number;
  /** Difference. */
  delta_ms: number;
  /** Scopes of the model and operation of the framework, or the file of source. */
  name: string;
  /** The same on the new side. */
  new_bytes: number | null;
  /** The same on the new side. */
  new_flops: number | null;
  /** Time per step on the new side. */
  new_ms: number;
  /** Forward, backward, recompute or optimizer. */
  phase: string;
  /** Line of source that costs most; empty if unknown. */
  source: string;
  /** Whether it is more work, or the same work at another speed, in words. */
  why: string;
}

export interface CompareRanks {
  /** The effect size, -1 to 1. */
  cliffs_delta: number;
  /** Whether the p-value is exact. */
  exact: boolean;
  /** The p-value. */
  p: number;
  /** The statistic. */
  u: number;
}

export interface CompareRatio {
  /** Upper end of the interval. */
  high: number | null;
  /** Lower end of the interval. */
  low: number | null;
  /** The estimate. */
  median: number | null;
}

export interface CompareRhythm {
  /** Every how many steps. */
  every: number | null;
  /** Extra time of a slow step. */
  extra_ms: number;
  /** A step without the extra time. */
  typical_ms: number;
}

export interface CompareScope {
  /** Per step, base. */
  base_ms: number | null;
  /** Difference. */
  delta_ms: number;
  /** The scope. */
  name: string;
  /** Per step, new. */
  new_ms: number | null;
}

export interface CompareSide {
  /** Mean step time. */
  mean_ms: number | null;
  /** Median step time. */
  median_ms: number | null;
  /** The labels of the runs. */
  runs: string[];
  /** Slow steps that come at intervals. */
  slow_steps: CompareRhythm | null;
  /** Steps of all runs. */
  steps: number;
}

export interface CompareWork {
  /** On the base side, per step: milliseconds, bytes or a number. */
  base: number;
  /** What is certain about it. */
  change: "more" | "less" | "same" | "unclear";
  /** The kind of work, as `stepscope gate --metric` calls it. */
  metric: string;
  /** On the new side. */
  new: number;
  /** New over base. */
  ratio: CompareEstimate | null;
}

/** What `stepscope devices --json` writes. The members of a row are the columns of `--csv`. */
export interface Devices {
  /** The part of the recording that the figures cover. */
  covers?: DevicesCovers;
  /** The longest times in which a device had nothing to do. */
  gaps?: DevicesGap[];
  /** What a monitor sampled. */
  gauges?: DevicesGauge[];
  /** The answer in one line. */
  headline?: string;
  /** Remarks. */
  notes?: string[];
  /** What the devices can do by their data sheets, in operations per second. */
  peaks?: DevicesPeak[];
  /** One object per row. */
  rows: DevicesRow[];
  /** The name of this schema. */
  schema: "stepscope.devices.v1";
}

/** The part of the recording that the figures cover. */
export interface DevicesCovers {
  /** The share of the recording's busy time that lies in the counted steps: of the device that limits them, or of the host. Null if there are no steps. */
  busy_share: number | null;
  /** Steps in the range that do not count, such as warm-up. */
  excluded_steps: number;
  /** The lowest step number. */
  first_step: number | null;
  /** Start of the covered time. */
  from_ms: number | null;
  /** The highest step number. */
  last_step: number | null;
  /** What was chosen: counted steps, a time, or the whole recording. */
  range: "steps" | "time" | "whole";
  /** Steps that count; null for one piece of time. */
  steps: number | null;
  /** End of the covered time. */
  to_ms: number | null;
}

export interface DevicesGap {
  /** Who owns it. */
  cause: "compute" | "communication" | "transfer_in" | "transfer_out" | "transfer_device" | "input" | "tracing" | "compile" | "launch" | "dispatch" | "python" | "output" | "sync" | "idle" | "unknown";
  /** The device. */
  device: string;
  /** How long it is. */
  duration_ms: number;
  /** The host. */
  host: string;
  /** What the host did meanwhile. */
  host_event: string | null;
  /** When it starts. */
  start_ms: number;
}

export interface DevicesGauge {
  /** Clock. */
  clock_mhz: DevicesSpread | null;
  /** The host. */
  host: string;
  /** The GPU. */
  id: string;
  /** Memory in use. */
  memory_bytes: DevicesSpread | null;
  /** Memory. */
  memory_total_bytes: number | null;
  /** Share of time in which memory was read or written. */
  memory_utilisation: DevicesSpread | null;
  /** Its limit. */
  power_limit_w: number | null;
  /** Power. */
  power_w: DevicesSpread | null;
  /** Samples. */
  samples: number;
  /** Time that they cover. */
  seconds: number;
  /** Temperature. */
  temperature_c: DevicesSpread | null;
  /** Why clocks were reduced. */
  throttle_reasons: string[] | null;
  /** Share of samples with reduced clocks. */
  throttled_fraction: number | null;
  /** Share of time in which a kernel ran. */
  utilisation: DevicesSpread | null;
}

export interface DevicesPeak {
  /** The device. */
  device: string;
  /** FP16 and BF16. */
  fp16: number | null;
  /** FP32. */
  fp32: number | null;
  /** FP64. */
  fp64: number | null;
  /** FP8. */
  fp8: number | null;
  /** The host. */
  host: string;
  /** INT8. */
  int8: number | null;
  /** Memory bandwidth. */
  memory_bytes_per_s: number | null;
  /** Multiprocessors. */
  multiprocessors: number | null;
  /** The model. */
  name: string;
  /** TF32. */
  tf32: number | null;
}

export interface DevicesRow {
  /** Bytes per second of these copies. */
  bandwidth_device: number | null;
  /** Bytes per second of these copies. */
  bandwidth_in: number | null;
  /** Bytes per second of these copies. */
  bandwidth_out: number | null;
  /** Milliseconds per category; categories without time are left out. */
  breakdown: Record<string, number> | null;
  /** Share of the covered time in which it works. */
  busy_fraction: number | null;
  /** Bytes copied between devices. */
  bytes_device: number | null;
  /** Bytes copied to it. */
  bytes_in: number | null;
  /** Bytes copied from it. */
  bytes_out: number | null;
  /** Time of collectives. */
  communication_ms: number | null;
  /** Streams that work at once, on average. */
  concurrency: number | null;
  /** Time of all copies. */
  copies_ms: number | null;
  /** Time of collectives under compute. */
  hidden_communication_ms: number | null;
  /** Time of copies under compute. */
  hidden_copies_ms: number | null;
  /** Its host. */
  host: string;
  /** Its id. */
  id: string;
  /** What its idle time is mostly for. */
  idle_mostly: string | null;
  /** Mean time of a kernel. */
  kernel_mean_ms: number | null;
  /** Kernel launches. */
  kernels: number | null;
  /** What it is. */
  kind: "cpu" | "gpu" | "tpu" | "other";
  /** Its model or name. */
  name: string | null;
  /** Copies from or to pageable memory. */
  pageable_copies: number | null;
  /** Copies from or to pinned memory. */
  pinned_copies: number | null;
  /** Steps in which it was seen. */
  steps_seen: number | null;
  /** Streams. */
  streams: number | null;
}

export interface DevicesSpread {
  /** The largest. */
  max: number;
  /** The mean. */
  mean: number;
}

/** What `stepscope memory --json` writes. The members of a row are the columns of `--csv`. */
export interface Memory {
  /** Each allocator over time. */
  allocators?: MemoryAllocator[];
  /** The part of the recording that the figures cover. */
  covers?: MemoryCovers;
  /** The answer in one line. */
  headline?: string;
  /** What each allocator held at the moment that was asked for. */
  held?: MemoryHeld[];
  /** Remarks. */
  notes?: string[];
  /** One object per row. */
  rows: MemoryRow[];
  /** The name of this schema. */
  schema: "stepscope.memory.v1";
}

export interface MemoryAllocator {
  /** Allocations. */
  allocations: number;
  /** Allocated before the capture. */
  before_capture_bytes: number;
  /** What the allocator can hold. */
  capacity_bytes: number | null;
  /** Share of reserved memory that was unusable, 0 to 1. */
  fragmentation_at_peak: number | null;
  /** Frees. */
  frees: number;
  /** Growth from step to step. */
  growth: MemoryGrowth | null;
  /** The host. */
  host: string;
  /** What is allocated in every step and never freed. */
  kept: MemoryKept[];
  /** The peak since the process started. */
  lifetime_peak_bytes: number | null;
  /** The allocator. */
  name: string;
  /** The last request that failed. */
  out_of_memory: MemoryFailure | null;
  /** The peak. */
  peak_bytes: number;
  /** When it was; null if the recording has no times. */
  peak_ms: number | null;
  /** The step in which it was. */
  peak_step: number | null;
  /** Peak over capacity, 0 to 1. */
  pressure: number | null;
  /** The program that reserves it. */
  program: string | null;
  /** Reserved at the peak by loaded programs for their temporaries. */
  program_reserved_bytes: number;
  /** What compiled programs hold at the peak, largest first. */
  programs: MemoryProgram[];
  /** What it had reserved at the peak. */
  reserved_bytes_at_peak: number | null;
  /** Bytes at the peak per role, largest first; empty if no role is known. */
  roles: MemoryRole[];
  /** Where the roles come from: `file`, or `lifetimes` of blocks. */
  roles_from: string | null;
  /** Each step. */
  steps: MemoryStep[];
  /** Pairs of milliseconds and bytes in use. */
  timeline: ((number | null)[])[];
}

/** The part of the recording that the figures cover. */
export interface MemoryCovers {
  /** The share of the recording's busy time that lies in the counted steps: of the device that limits them, or of the host. Null if there are no steps. */
  busy_share: number | null;
  /** Steps in the range that do not count, such as warm-up. */
  excluded_steps: number;
  /** The lowest step number. */
  first_step: number | null;
  /** Start of the covered time. */
  from_ms: number | null;
  /** The highest step number. */
  last_step: number | null;
  /** What was chosen: counted steps, a time, or the whole recording. */
  range: "steps" | "time" | "whole";
  /** Steps that count; null for one piece of time. */
  steps: number | null;
  /** End of the covered time. */
  to_ms: number | null;
}

export interface MemoryFailure {
  /** In use then. */
  allocated_bytes: number;
  /** When. */
  at_ms: number | null;
  /** Free on the device, outside of segments. */
  device_free_bytes: number | null;
  /** Whether enough was free, but in pieces that are too small. */
  fragmented: boolean;
  /** Free in segments that cannot be given back. */
  free_bytes: number | null;
  /** The largest free piece. */
  largest_free_bytes: number | null;
  /** The line that asked. */
  line: string | null;
  /** Lines whose blocks keep nearly empty segments. */
  pinned_by: MemoryPin[];
  /** What was asked for. */
  requested_bytes: number;
  /** In segments then. */
  reserved_bytes: number | null;
}

export interface MemoryGrowth {
  /** Bytes per step. */
  bytes_per_step: number;
  /** Whether it grows for good. */
  grows: boolean;
  /** Share of steps that end with more than the step before. */
  rising_fraction: number;
  /** Steps. */
  steps: number;
}

export interface MemoryHeld {
  /** The allocator. */
  allocator: string;
  /** When. */
  at_ms: number | null;
  /** The host. */
  host: string;
  /** Bytes in use. */
  in_use_bytes: number;
}

export interface MemoryKept {
  /** Blocks. */
  blocks: number;
  /** Bytes. */
  bytes: number;
  /** Bytes kept per step, if the recording has stacks. */
  bytes_per_step: number | null;
  /** What allocated it: an op or a line. */
  op: string | null;
  /** Its shape. */
  shape: string | null;
  /** Steps. */
  steps: number;
}

export interface MemoryPin {
  /** Its blocks in them. */
  blocks: number;
  /** Bytes of its blocks in them. */
  bytes: number;
  /** Free bytes in those segments. */
  free_bytes: number;
  /** The line. */
  line: string;
  /** Segments. */
  segments: number;
}

export interface MemoryProgram {
  /** Bytes at the peak that were allocated for its temporaries. */
  bytes: number;
  /** How: by `name`, or by the `size` of the allocation, which no other program has. */
  matched: string;
  /** Its name. */
  program: string;
  /** Its temporaries at its own peak by line of source, largest first. */
  values: MemoryValue[];
}

export interface MemoryRole {
  /** Bytes. */
  bytes: number;
  /** What memory is for: parameter, optimizer, input, temporary, activation, gradient, autograd, kept, program or unknown. */
  role: string;
}

export interface MemoryRow {
  /** Where it lies (--by block). */
  address: string | null;
  /** The allocator. */
  allocator: string;
  /** Whether it was allocated before the capture. */
  before_capture: boolean | null;
  /** Number of blocks. */
  blocks: number | null;
  /** When it was allocated (--by block). */
  born_ms: number | null;
  /** Size. */
  bytes: number;
  /** Type of its elements. */
  data_type: string | null;
  /** Share of what was in use. */
  fraction: number | null;
  /** The host. */
  host: string;
  /** The line of the program that allocated it, if recorded; else the op, or who holds it. */
  line: string | null;
  /** The op or the call that allocated it. */
  op: string | null;
  /** Kind of memory. */
  region: string | null;
  /** Size as requested. */
  requested_bytes: number | null;
  /** What it is for, if known. */
  role: string | null;
  /** Shape of the tensor. */
  shape: string | null;
  /** The same as fraction. */
  share: number | null;
}

export interface MemoryStep {
  /** Allocations. */
  allocations: number;
  /** In use at its end. */
  end_bytes: number | null;
  /** Frees. */
  frees: number;
  /** Its number. */
  index: number;
  /** Its peak. */
  peak_bytes: number | null;
}

export interface MemoryValue {
  /** Bytes of all values of this line. */
  bytes: number;
  /** Shape of the largest value. */
  shape: string;
  /** File and line. */
  source: string | null;
  /** Scopes of the model and operation of the framework. */
  what: string;
}

/** What `stepscope fleet report --json` writes. */
export interface Fleet {
  /** The answer in one sentence. */
  answer: string;
  /** Causes over all jobs. */
  causes: FleetCause[];
  /** Jobs whose step time changed. */
  changes: FleetChange[];
  /** Communication that nothing hides, by number of devices. */
  communication: FleetScale[];
  /** What is covered and what is missing, in one sentence. */
  coverage: string;
  /** Hosts whose profiles were read. */
  covered: number;
  /** Files that were read in part. */
  damaged: FleetFile[];
  /** Device hours that the side table names; `None` without one. */
  device_hours: number | null;
  /** Accelerators of all jobs; a host without any counts as one. */
  devices: number;
  /** Files that could not be read. */
  failed: FleetFile[];
  /** Hosts that were slower than their peers, the surest first. */
  hosts: FleetHost[];
  /** Causes in each job. */
  job_causes: FleetJobcause[];
  /** Jobs, those that lose most first. */
  jobs: FleetJob[];
  /** Kernels over all jobs. */
  kernels: FleetWork[];
  /** Device hours that are lost, if the profiles are typical. */
  lost_device_hours: number | null;
  /** The share of all devices that is lost. */
  lost_fraction: number | null;
  /** Allocators near their limit. */
  memory: FleetMemory[];
  /** Shards of a plan that are missing: `3 of 10`. */
  missing_shards: string[];
  /** Ops over all jobs. */
  ops: FleetWork[];
  /** Hosts that were planned. */
  planned: number;
  /** Recordings that were read. */
  recordings: number;
  /** The name of this schema. */
  schema: "stepscope.fleet.v1";
  /** Every recording, by job and time. */
  series: FleetSeries[];
  /** Jobs without a usable profile. */
  unusable: FleetUnusable[];
}

/** A cause over all jobs. */
export interface FleetCause {
  /** The finding's id. */
  finding: string;
  /** What to do there. */
  fix: string | null;
  /** The job that it costs most. */
  job: string;
  /** Jobs that have it. */
  jobs: number;
  /** Device hours that it takes. */
  lost_device_hours: number | null;
  /** Devices that it takes: devices times share, over all jobs. */
  lost_devices: number;
}

/** A change of a job's step time. */
export interface FleetChange {
  /** Recordings after. */
  after: number;
  /** The same after. */
  after_ms: number;
  /** Recordings before and after. */
  before: number;
  /** The median of the median steps before, in milliseconds. */
  before_ms: number;
  /** The category that moved most. */
  category: string | null;
  /** By how many milliseconds per step it moved. */
  category_ms: number | null;
  /** The relative change; above 0 is slower. */
  change: number;
  /** The day of the first recording after it. */
  day: string;
  /** The job. */
  job: string;
  /** How likely ranks this uneven are by chance alone; `None` if only the newest recording shows it. */
  p: number | null;
  /** That recording. */
  session: string;
}

/** A file. */
export interface FleetFile {
  /** Its host. */
  host: string;
  /** Its job. */
  job: string;
  /** Its path. */
  path: string;
  /** What is wrong with it. */
  reason: string;
}

/** A host that was slow. */
export interface FleetHost {
  /** What was measured in its worst recording. */
  evidence: string;
  /** Its name. */
  host: string;
  /** The job in which it was slowest. */
  job: string;
  /** Jobs in which it was slow. */
  jobs: number;
  /** The share of collectives at which it was last, in its worst recording; `None` if unknown. */
  last_fraction: number | null;
  /** Recordings with other hosts beside it. */
  recordings: number;
  /** By how much its step, or its own work in it, was longer than the median host's, over all its recordings. */
  slow_fraction: number;
  /** Recordings in which it was slow. */
  slow_in: number;
  /** The least share of recordings in which it is slow, with 95 % confidence. */
  sure: number;
}

/** A job. */
export interface FleetJob {
  /** Device hours from the side table. */
  device_hours: number | null;
  /** Accelerators of its largest recording. */
  devices: number;
  /** The finding that takes most. */
  finding: string | null;
  /** The share of the step that it takes. */
  finding_fraction: number | null;
  /** What to do first. */
  fix: string | null;
  /** The framework. */
  framework: string;
  /** Hosts of its largest recording. */
  hosts: number;
  /** Its name. */
  job: string;
  /** Other named groups of the job pattern. */
  labels: Record<string, string>;
  /** Device hours that are lost, if the profiles are typical. */
  lost_device_hours: number | null;
  /** The most that fixing everything saves, as a share of the step, over all recordings. */
  lost_fraction: number | null;
  /** The newest recording, as a date. */
  newest: string;
  /** Recordings. */
  recordings: number;
  /** That recording's session. */
  session: string | null;
  /** Median step of the newest recording with steps, in milliseconds. */
  step_ms: number | null;
  /** The finding in one sentence, in the recording where it takes most. */
  summary: string | null;
}

/** A cause in one job. */
export interface FleetJobcause {
  /** The finding's id. */
  finding: string;
  /** What to do first. */
  fix: string | null;
  /** The job. */
  job: string;
  /** Device hours that it takes. */
  lost_device_hours: number | null;
  /** The share of the step that a fix saves at most, over all recordings. */
  lost_fraction: number;
  /** Recordings that have it. */
  recordings: number;
  /** That recording's session. */
  session: string;
  /** What it is about. */
  subject: string | null;
  /** The finding in one sentence, in the recording where it takes most. */
  summary: string;
}

/** An allocator. */
export interface FleetMemory {
  /** The allocator. */
  allocator: string;
  /** Peak over limit. */
  fraction: number;
  /** Growth from step to step; `None` if it does not grow. */
  growth_bytes_per_step: number | null;
  /** The host. */
  host: string;
  /** The job. */
  job: string;
  /** Its limit. */
  limit_bytes: number;
  /** Its peak. */
  peak_bytes: number;
}

/** Communication at one scale. */
export interface FleetScale {
  /** At least this many devices, and fewer than twice as many. */
  devices: number;
  /** The median share of the step in communication that nothing hides. */
  exposed_fraction: number;
  /** The median of communication under compute, in milliseconds per step. */
  hidden_ms: number;
  /** The job with the largest. */
  job: string;
  /** Jobs of this size. */
  jobs: number;
  /** The largest. */
  most_fraction: number;
  /** Recordings of this size. */
  recordings: number;
}

/** One recording. */
export interface FleetSeries {
  /** When it was recorded, in UTC. */
  at: string;
  /** The mean step by category, in milliseconds. */
  breakdown: Record<string, number>;
  /** Accelerators. */
  devices: number;
  /** The verdict. */
  finding: string | null;
  /** The folder that its files were read from. */
  folder: string;
  /** Hosts that were read. */
  hosts: number;
  /** The job. */
  job: string;
  /** The share that fixing everything saves at most. */
  lost_fraction: number | null;
  /** Its id. */
  recording: string;
  /** The session. */
  session: string;
  /** Is it known how slow each host was at each step? */
  step_map: boolean;
  /** The median step, in milliseconds. */
  step_ms: number | null;
}

/** A job without a usable profile. */
export interface FleetUnusable {
  /** The job. */
  job: string;
  /** Why none is usable. */
  reason: string;
  /** Its recordings. */
  recordings: number;
}

/** An op type or kernel. */
export interface FleetWork {
  /** How often it ran in the recordings. */
  count: number;
  /** Its share of the time of all rows of the same place. */
  fraction: number;
  /** Jobs that run it. */
  jobs: number;
  /** Its name; `(other)` sums up what was not kept one by one. */
  name: string;
  /** Its time in the recordings, in milliseconds. */
  total_ms: number;
  /** `device` or `host`. */
  where: string;
}

/** How far the report on the fleet is: what the page's `/api/fleet` answers. */
export interface FleetPage {
  /** Partials that could not be read, and why. */
  damage: string[];
  /** Hosts that were read. */
  done: number;
  /** Why there is no newer report. */
  problem: FleetPageProblem | null;
  /** The name of this schema. */
  schema: "stepscope.fleet-page.v1";
  /** The session that shows each recording, by the recording's id. Recordings whose files are elsewhere have none. */
  sessions: Record<string, number>;
  /** Is it being read, there, or impossible? */
  state: "reading" | "ready" | "failed";
  /** Hosts to read, as far as known. */
  total: number;
  /** Grows with every report; 0 before the first. */
  version: number;
}

/** An error for people. */
export interface FleetPageProblem {
  /** What was found. */
  found: string;
  /** Further hints. */
  hints: string[];
  /** What to do. */
  todo: string;
  /** What is wrong. */
  what: string;
}

/** How slow each host of a recording was at each step: what the page's `/api/fleet/steps` answers. */
export interface FleetSteps {
  /** The first step of each column. */
  first: number[];
  /** The rows. */
  hosts: string[];
  /** Its job. */
  job: string;
  /** The last step of each column. */
  last: number[];
  /** Hosts without a row: those that differ least from the others. */
  left_out: number;
  /** Do columns have the loop's own step numbers? Else steps are counted from 0 on each host. */
  numbered: boolean;
  /** The recording's id. */
  recording: string;
  /** The name of this schema. */
  schema: "stepscope.fleet-steps.v1";
  /** Its session. */
  session: string;
  /** By host and column: by how much the step, or the host's own work in it, is longer than the median host's, as a share of the median step. Null where a host has no such step. */
  slow: ((number | null)[])[];
  /** The median host's step in each column, in milliseconds. */
  usual_ms: number[];
}
