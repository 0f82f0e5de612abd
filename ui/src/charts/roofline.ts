/** The roofline: how fast arithmetic could be at each intensity (operations per byte), and where work lies below that. Pure. */

export interface Work {
  name: string;
  /** Operations per second. */
  flops: number;
  /** Operations per byte of memory traffic. */
  intensity: number;
  /** The share of time, 0 to 1, for the size of its dot. */
  share: number;
}

export interface Roof {
  label: string;
  /** Operations per second that arithmetic can deliver. */
  flops: number;
}

export interface Peaks {
  /** Bytes per second. */
  memory: number;
  /** Highest first. */
  roofs: Roof[];
}

export interface Scale {
  low: number;
  high: number;
}

/** The most operations per second at an intensity. */
export function limit(peaks: Peaks, intensity: number): number {
  return Math.min(peaks.roofs[0]?.flops ?? Infinity, peaks.memory * intensity);
}

/** What bounds work at this intensity, and how close to it the work is (0 to 1). */
export function bound(peaks: Peaks, work: Work): { by: "memory" | "arithmetic"; share: number } {
  const highest = peaks.roofs[0]?.flops ?? Infinity;
  return {
    by: peaks.memory * work.intensity < highest ? "memory" : "arithmetic",
    share: work.flops / limit(peaks, work.intensity),
  };
}

/** Powers of ten around all values. */
export function around(values: readonly number[]): Scale {
  const known = values.filter((value) => value > 0 && Number.isFinite(value));
  if (known.length === 0) return { low: 0.1, high: 10 };
  const [low, high] = [
    Math.floor(Math.log10(Math.min(...known)) + 1e-9),
    Math.ceil(Math.log10(Math.max(...known)) - 1e-9),
  ];
  return { low: 10 ** low, high: 10 ** Math.max(high, low + 1) };
}

/** Both axes: everything that is drawn, and the bend of the roof. */
export function axes(peaks: Peaks, works: readonly Work[]): { x: Scale; y: Scale } {
  const bends = peaks.roofs.map((roof) => roof.flops / peaks.memory);
  const x = around([...works.map((work) => work.intensity), ...bends]);
  // The slope may leave at the bottom: work far to the left is still near it.
  const y = around([...works.map((work) => work.flops), ...peaks.roofs.map((roof) => roof.flops)]);
  return { x, y };
}

/** Position of a value on a logarithmic axis, 0 to 1. */
export function along(scale: Scale, value: number): number {
  return Math.log10(value / scale.low) / Math.log10(scale.high / scale.low);
}

/** The powers of ten on an axis. */
export function decades(scale: Scale): number[] {
  const [first, last] = [Math.round(Math.log10(scale.low)), Math.round(Math.log10(scale.high))];
  const every = Math.max(1, Math.ceil((last - first) / 8));
  return Array.from({ length: Math.floor((last - first) / every) + 1 }, (_, at) => 10 ** (first + at * every));
}
