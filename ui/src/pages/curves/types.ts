/** What the server answers about curves (`crates/serve/API.md`). */

export interface CurveState {
  version: number;
  listing: number;
  /** Runs that changed since the version that was asked about. */
  changed: { run: number; last_step: number | null; last_s: number | null }[];
  total: number;
  done: number;
  /** Were all runs read once? */
  ready: boolean;
}

export interface CurveRun {
  id: number;
  name: string;
  /** Which of the sets of tags it has. */
  set: number;
  gone: boolean;
  first_s: number | null;
  last_s: number | null;
  last_step: number | null;
  damage: string[];
  /** Tags with distributions and with pictures. */
  histograms: string[];
  images: string[];
  /** Tags with graphs. */
  graphs: string[];
  /** Does it have hyperparameters? */
  trial: boolean;
  /** The latest text of each tag. */
  texts: { tag: string; step: number; text: string }[];
}

/** Distributions of a tag over steps: counts of each step in equal bins. */
export interface HeatMap {
  run: number;
  tag: string;
  low: number | null;
  high: number | null;
  steps: number[];
  wall_s: number[];
  rows: number[][];
}

export interface CurveListing {
  version: number;
  listing: number;
  tags: string[];
  /** Places in `tags`. */
  sets: number[][];
  runs: CurveRun[];
}

export interface CurveFinding {
  run: string;
  run_id: number;
  id: string;
  severity: "critical" | "warning" | "info";
  summary: string;
  evidence: string[];
  advice: string[];
}

export interface ProfileMark {
  session: number;
  run: number;
  start_s: number;
  end_s: number;
  first_step: number;
  last_step: number;
}

export interface RangeRow {
  run: number;
  points: number;
  start: number | null;
  end: number | null;
  start_step: number | null;
  end_step: number | null;
  min: number | null;
  min_step: number | null;
  max: number | null;
  max_step: number | null;
  mean: number | null;
  seconds: number | null;
}

/** The steps of a tag that have pictures, and how many each has. */
export interface PictureSteps {
  steps: number[];
  wall_s: number[];
  samples: number[];
}

export type Setting = number | string | boolean | null;

export interface Trial {
  run: string;
  run_id: number;
  status: "success" | "failure" | "running" | null;
  /** In the order of the study's settings and metrics. */
  settings: Setting[];
  metrics: (number | null)[];
}

/** All runs with hyperparameters. */
export interface Study {
  settings: string[];
  metrics: string[];
  trials: Trial[];
  /** Trials that are not listed. */
  more: number;
}

export interface GraphNode {
  name: string;
  /** Its name without that of the scope above it. */
  title: string;
  /** Its operation; empty for a scope that is no node. */
  op: string;
  device: string;
  /** Nodes at and below it. */
  nodes: number;
  children: number;
  params: number | null;
  micros: number | null;
  flops: number | null;
}

interface Outside {
  total: number;
  nodes: { name: string; count: number }[];
}

/** One level of a graph: the children of a scope. */
export interface GraphLevel {
  under: GraphNode | null;
  total: number;
  cut: boolean;
  damage: number;
  timed: boolean;
  children: GraphNode[];
  more: number;
  /** From child to child, by place, and how many connections each stands for. */
  edges: [number, number, number][];
  inputs: Outside;
  users: Outside;
  ops: { op: string; count: number }[];
}

export interface GraphHits {
  total: number;
  hits: GraphNode[];
}
