/** What the view of inference says besides its table. */

/** Requests between two latencies. */
export interface Bin {
  from_ms: number;
  to_ms: number;
  count: number;
}

/** The slowest request, on its host's clock. */
export interface Slowest {
  host: string;
  start_ms: number;
  duration_ms: number;
}

export interface InferenceMembers {
  histogram?: Bin[];
  slowest?: Slowest | null;
}
