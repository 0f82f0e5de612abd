/** What the server answers about the model (`crates/serve/API.md`). */

/** What can be measured, by tfprof's names. */
export type Measure =
  | "micros"
  | "accelerator_micros"
  | "cpu_micros"
  | "bytes"
  | "peak_bytes"
  | "residual_bytes"
  | "output_bytes"
  | "params"
  | "float_ops"
  | "occurrence";

export type Measures = Record<Measure, number[]>;

/** What the server says of the model. */
export interface ModelInfo {
  files: { graph: string | null; op_log: string | null; checkpoint: string | null; runs: string[] } | null;
  nodes: number;
  steps: number[];
  has_stacks: boolean;
  damage: { what: string; found: string; todo: string }[];
}

/** A view of the model, column by column; each row stands behind the one above it. */
export interface ModelView {
  view: string;
  command: string;
  /** The depth to which the rows were cut because there are too many. */
  cut_to_depth: number | null;
  names: string[];
  above: (number | null)[];
  ops: string[];
  devices: string[];
  nodes: number[];
  own: Measures;
  total: Measures;
  /** One value each: of the whole view. */
  whole: Measures;
}

/** A node of the graph in a list. */
export interface NodeLine {
  name: string;
  op: string;
  device: string;
  own: Measures;
}

/** A neighbour: `port` is null where only the order of execution is meant. */
export interface NodeLink {
  name: string;
  port: number | null;
  shape: number[];
  node: NodeLine | null;
}

/** A node with its neighbours, or the nodes that nobody uses. */
export interface NodeInfo {
  node: NodeLine | null;
  types?: string[];
  shape?: number[];
  inputs?: NodeLink[];
  users?: NodeLink[];
  inputs_total?: number;
  users_total?: number;
  ends?: NodeLine[];
  total?: number;
}

/** A variable. What is not known is null. */
export interface Variable {
  name: string;
  shape: number[] | null;
  type: string | null;
  parameters: number | null;
  bytes: number | null;
  trainable: boolean | null;
  in_graph: boolean;
}
