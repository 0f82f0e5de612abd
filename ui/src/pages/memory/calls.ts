/** What the page of memory asks the server. */
import { ask, query } from "../../server/ask";

/** What was allocated at a moment. */
export interface MemoryAt {
  t_ns: number;
  in_use: number | null;
  rows: {
    op: string;
    bytes: number;
    blocks: number;
    shape: string | null;
    data_type: string | null;
    region: string | null;
  }[];
}

export function memoryAt(session: number, allocator: number, ns: number, signal?: AbortSignal): Promise<MemoryAt> {
  return ask<MemoryAt>(`s/${session}/memory_at${query({ allocator, t_ns: Math.round(ns) })}`, signal);
}
