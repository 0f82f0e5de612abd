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
