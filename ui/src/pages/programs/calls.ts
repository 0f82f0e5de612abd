/** What the page of programs asks the server. Numbers of programs fill 64 bits, so they are text. */
import { ask, query } from "../../server/ask";

export interface ProgramName {
  name: string;
  id: string | null;
}

/** Everything that a program says about one instruction. */
export interface OpCardData {
  program: ProgramName;
  op: string;
  opcode: string;
  category: string;
  what: string;
  scope: string;
  source: string;
  /** The innermost call first. */
  stack: string[];
  phase: string | null;
  text: string;
  inside: string[];
  cost: {
    flops: number | null;
    matrix_flops: number | null;
    transcendentals: number | null;
    bytes: number | null;
    type: string | null;
  };
  formula: { what: string; count: number }[];
}

export interface GraphNode {
  op: string;
  opcode: string;
  shape: string;
  what: string;
  distance: number;
  /** It has neighbours that are not shown. */
  cut: boolean;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface GraphData {
  program: ProgramName;
  width: number;
  height: number;
  nodes: GraphNode[];
  edges: { from: number; to: number; points: [number, number][] }[];
}

/** A value in the memory for temporary ones: where it lies, and from when to when. */
export interface MemoryBox {
  op: string;
  what: string;
  source: string;
  offset: number;
  size: number;
  start: number;
  end: number;
}

export interface MemoryData {
  program: ProgramName;
  space: number;
  spaces: { number: number; name: string }[];
  peak_bytes: number;
  peak_position: number;
  static_bytes: number;
  argument_bytes: number;
  output_bytes: number;
  alias_bytes: number;
  temp_bytes: number;
  constant_bytes: number;
  fragmentation_bytes: number;
  traced: boolean;
  /** Positions in the program. */
  length: number;
  /** Position and bytes. */
  curve: [number, number][];
  boxes: MemoryBox[];
  more_boxes: number;
  /** Calls from the outermost inwards, and the bytes that they made. */
  stacks: { path: string[]; bytes: number }[];
  live: {
    op: string;
    kind: string;
    bytes: number;
    shape: string;
    what: string;
    source: string;
    padding: number | null;
  }[];
}

export function card(session: number, program: string, op: string, signal?: AbortSignal): Promise<OpCardData> {
  return ask<OpCardData>(`s/${session}/programs/card${query({ program, op })}`, signal);
}

export function graph(
  session: number,
  program: string,
  op: string,
  radius: number,
  signal?: AbortSignal,
): Promise<GraphData> {
  return ask<GraphData>(`s/${session}/programs/graph${query({ program, op, radius })}`, signal);
}

export function memory(session: number, program: string, space: number, signal?: AbortSignal): Promise<MemoryData> {
  return ask<MemoryData>(`s/${session}/programs/memory${query({ program, space })}`, signal);
}
