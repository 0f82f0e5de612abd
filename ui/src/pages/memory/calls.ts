/** What the page of memory asks the server. */
import { ask, query } from "../../server/ask";

/** What was allocated at a moment. */
export interface MemoryAt {
  t_ns: number;
  in_use: number | null;
  rows: {
    op: string;
    line: string | null;
    role: string | null;
    bytes: number;
    blocks: number;
    shape: string | null;
    data_type: string | null;
    region: string | null;
  }[];
  /** The calls that allocated it, callers first; null without stacks. */
  calls: Call[] | null;
}

export interface Call {
  /** Position of the caller. */
  parent: number | null;
  name: string;
  bytes: number;
  blocks: number;
}

/** Use over time by role, the largest role first. */
export interface RolesOver {
  t_ns: number[];
  roles: { role: string | null; bytes: number[] }[];
  /** Bytes of segments; empty if unknown. */
  reserved: number[];
}

/** Range, offset in it, bytes, from and to in nanoseconds; null beyond the recording. */
export type Segment = [number, number, number, number | null, number | null];
/** The same with line and role. */
export type Block = [number, number, number, number | null, number | null, string | null, string | null];

/** Where segments and blocks lie. */
export interface Addresses {
  ranges: { address: string; bytes: number }[];
  segments: Segment[];
  blocks: Block[];
  omitted: number;
}

export function memoryAt(session: number, allocator: number, ns: number, signal?: AbortSignal): Promise<MemoryAt> {
  return ask<MemoryAt>(`s/${session}/memory_at${query({ allocator, t_ns: Math.round(ns) })}`, signal);
}

export function rolesOver(session: number, allocator: number, signal?: AbortSignal): Promise<RolesOver> {
  return ask<RolesOver>(`s/${session}/memory_over${query({ allocator })}`, signal);
}

export function addresses(session: number, allocator: number, signal?: AbortSignal): Promise<Addresses> {
  return ask<Addresses>(`s/${session}/memory_map${query({ allocator })}`, signal);
}
