/** Points and roofs of a program's roofline, and its zoom. Pure. */
import type { Scale } from "../../charts/roofline";
import type { Op } from "./rows";

export interface Point {
  op: string;
  ms: number;
  /** Operations per second. */
  rate: number;
  /** Operations per byte. */
  intensity: number;
  bound: string;
  efficiency: number | null;
}

/** Instructions whose operations and bytes are known. */
export function pointsOf(ops: readonly Op[]): Point[] {
  return ops.flatMap(({ op, ms, flops, bytes, bound, efficiency }) =>
    flops && bytes && ms > 0 ? [{ op, ms, rate: (flops / ms) * 1e3, intensity: flops / bytes, bound, efficiency }] : [],
  );
}

export interface Roofs {
  /** Levels of memory with their bytes per second, the slowest first: main memory, then memory on the chip. */
  levels: { label: string; rate: number }[];
  /** Highest first; one per rate. */
  matrix: { label: string; flops: number }[];
}

/** The peaks that the view states. */
export function roofsOf(members: unknown): Roofs {
  const peaks = (members as { peaks?: unknown } | null)?.peaks as
    | {
        matrix_flops_per_s?: Record<string, number | null>;
        memory_bytes_per_s?: number | null;
        on_chip_read_bytes_per_s?: number | null;
      }
    | null
    | undefined;
  const byRate = new Map<number, string[]>();
  for (const [type, flops] of Object.entries(peaks?.matrix_flops_per_s ?? {}))
    if (flops) byRate.set(flops, [...(byRate.get(flops) ?? []), type]);
  const matrix = [...byRate].map(([flops, types]) => ({ label: types.slice(0, 2).join(", "), flops }));
  const level = (label: string, rate: number | null | undefined) => (rate ? [{ label, rate }] : []);
  const levels = [...level("HBM", peaks?.memory_bytes_per_s), ...level("VMEM", peaks?.on_chip_read_bytes_per_s)];
  return { levels: levels.sort((a, b) => a.rate - b.rate), matrix: matrix.sort((a, b) => b.flops - a.flops) };
}

/** The address of a part of the picture: both axes stretched by a factor around a place in it (0 to 1). */
export function zoomed(scales: { x: Scale; y: Scale }, at: { x: number; y: number }, factor: number): string {
  const part = ({ low, high }: Scale, share: number) => {
    const [from, to] = [Math.log10(low), Math.log10(high)];
    const middle = from + (to - from) * share;
    return [middle - (middle - from) * factor, middle + (to - middle) * factor];
  };
  return [...part(scales.x, at.x), ...part(scales.y, at.y)].map((value) => value.toFixed(3)).join(",");
}
