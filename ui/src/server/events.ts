/** Events, as tables and the timeline show them: the shapes of `crates/serve/API.md`. Times are nanoseconds from the origin. */

/** An event as search, neighbours and clicks return it. `category` is an index into the categories, 255 or null for none. */
export interface Hit {
  track: number;
  event: number;
  name: string;
  row: number;
  category: number | string | null;
  start_ns: number;
  dur_ns: number;
  /** Of a search: it is called like the text, and does not only contain it. */
  whole?: boolean;
}

export interface EventRef {
  track: number;
  event: number;
  name: string;
}

export interface Flow extends EventRef {
  direction: "in" | "out";
  kind: string;
  row: number;
  start_ns: number;
  dur_ns: number;
}

export interface EventDetails extends EventRef {
  category: number | string | null;
  start_ns: number;
  dur_ns: number;
  self_ns: number;
  row: number;
  depth: number;
  thread: string;
  process: string;
  host: string;
  step: number | null;
  args: { key: string; value: string | number | boolean }[];
  parents: EventRef[];
  flows: Flow[];
  /** The instruction of a compiled program that it runs. */
  instruction: Instruction | null;
}

export interface Instruction {
  program: string;
  program_id: string | null;
  op: string;
  what: string;
  scope: string;
  source: string;
  stack: string[];
  category: string;
  phase: string | null;
}
