/** From values to pixels and back: ranges, ticks, and what a point's place is on each axis. */
import type { Line } from "./frame";

export type Axis = "step" | "relative" | "wall";

/** Where the points of a line lie on the x-axis. */
export function xs(line: Line, axis: Axis): Float64Array {
  if (axis === "step") return line.steps;
  return axis === "wall" ? line.walls : line.walls.map((wall) => wall - line.firstS);
}

export interface Scale {
  from: number;
  to: number;
  log: boolean;
}

/** A place from 0 to 1 on a scale; outside of that beyond its ends. */
export function share(scale: Scale, value: number): number {
  const [from, to, at] = scale.log
    ? [Math.log10(scale.from), Math.log10(scale.to), Math.log10(value)]
    : [scale.from, scale.to, value];
  return to === from ? 0.5 : (at - from) / (to - from);
}

/** The range of all points of lines on the x-axis; null without points. */
export function rangeX(lines: readonly Line[], axis: Axis): [number, number] | null {
  let [low, high] = [Infinity, -Infinity];
  for (const line of lines) {
    for (const x of xs(line, axis)) {
      if (x < low) low = x;
      if (x > high) high = x;
    }
  }
  return low <= high ? [low, high] : null;
}

/** The range of values that a chart shows. Outliers are what lies beyond the 5th and the 95th percentile. */
export function rangeY(values: number[], log: boolean, ignoreOutliers: boolean): [number, number] | null {
  const usable = values.filter((value) => Number.isFinite(value) && (!log || value > 0)).sort((a, b) => a - b);
  if (usable.length === 0) return null;
  const at = (q: number) => usable[Math.round(q * (usable.length - 1))] ?? 0;
  const [low, high] = ignoreOutliers ? [at(0.05), at(0.95)] : [at(0), at(1)];
  if (log) return low === high ? [low / 2, high * 2] : [low / 1.1, high * 1.1];
  const room = low === high ? Math.abs(low) * 0.1 || 1 : (high - low) * 0.06;
  return [low - room, high + room];
}

/** Round values between two ends, at most so many, and not closer than `least`: there is nothing between two steps. */
export function ticks(from: number, to: number, most: number, least = 0): number[] {
  const span = to - from;
  if (!(span > 0) || most < 1) return [];
  const rough = Math.max(span / most, least);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough) ?? 10 * power;
  const all: number[] = [];
  for (let at = Math.ceil(from / step); at * step <= to && all.length < 50; at++)
    all.push(Number((at * step).toPrecision(12)));
  return all;
}

/** Powers of ten between two ends, or round values where there are fewer than two of those. */
export function logTicks(from: number, to: number): number[] {
  const all: number[] = [];
  const [low, high] = [Math.ceil(Math.log10(from)), Math.floor(Math.log10(to))];
  const each = Math.max(1, Math.ceil((high - low) / 6));
  for (let power = low; power <= high; power += each) all.push(10 ** power);
  return all.length >= 2 ? all : ticks(from, to, 4);
}

/** The point of a sorted column that is nearest to a value; -1 of none. */
export function nearest(column: Float64Array, value: number): number {
  let [low, high] = [0, column.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((column[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  const before = low > 0 && Math.abs((column[low - 1] ?? 0) - value) <= Math.abs((column[low] ?? 0) - value);
  return before ? low - 1 : column.length === 0 ? -1 : low;
}

const number = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });

/** A value on an axis or in a table. */
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : number.format(value);
}

/** Seconds as people write them: `12 s`, `3 min 20 s`, `5 h 12 min`. */
export function seconds(value: number): string {
  if (value < 120) return `${number.format(value)} s`;
  const whole = Math.round(value);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

/** A place on the x-axis in words. */
export function place(x: number, axis: Axis): string {
  if (axis === "step") return new Intl.NumberFormat("en-US").format(Math.round(x));
  if (axis === "relative") return seconds(x);
  return new Date(x * 1000).toLocaleTimeString();
}
