/** Steps as bars: neighbours are merged if there are too many, and the scale tolerates a single long step. */
import type { Step } from "../server/types";

/** A bar: one step, or the mean of neighbours. */
export interface Bar {
  /** Index of its first step, and one past its last. */
  from: number;
  to: number;
  first: Step;
  last: Step;
  /** Means over its steps, in milliseconds. */
  duration: number;
  parts: Record<string, number>;
}

/** At most `most` bars, each of equally many neighbouring steps (the last may have fewer). */
export function merge(steps: readonly Step[], most: number): Bar[] {
  const size = Math.max(1, Math.ceil(steps.length / Math.max(1, most)));
  const bars: Bar[] = [];
  for (let from = 0; from < steps.length; from += size) {
    const group = steps.slice(from, from + size);
    const [first, last] = [group[0], group.at(-1)];
    if (!first || !last) break;
    bars.push({ from, to: from + group.length, first, last, ...means(group) });
  }
  return bars;
}

function means(group: readonly Step[]): { duration: number; parts: Record<string, number> } {
  const parts: Record<string, number> = {};
  let duration = 0;
  for (const step of group) {
    duration += step.duration_ms;
    for (const [key, ms] of Object.entries(step.breakdown)) parts[key] = (parts[key] ?? 0) + ms;
  }
  for (const key of Object.keys(parts)) parts[key] = (parts[key] ?? 0) / group.length;
  return { duration: duration / group.length, parts };
}

/** A few steps far above all others are cut off, so that the others can be read. */
export function ceiling(durations: readonly number[]): { top: number; cut: boolean } {
  const ordered = [...durations].sort((a, b) => a - b);
  const longest = ordered.at(-1) ?? 0;
  const usual = quantile(ordered, 0.9);
  const cut = ordered.length >= 5 && longest > 3 * usual && usual > 0;
  return { top: cut ? 1.5 * usual : longest, cut };
}

/** An interpolated quantile of sorted numbers; 0 if there are none. */
export function quantile(ordered: readonly number[], share: number): number {
  const place = (ordered.length - 1) * share;
  const [low, high] = [ordered[Math.floor(place)], ordered[Math.ceil(place)]];
  if (low === undefined || high === undefined) return 0;
  return low + (high - low) * (place - Math.floor(place));
}

/** Round numbers from 0 up to `top`, about `wanted` of them. */
export function ticks(top: number, wanted: number): number[] {
  if (!(top > 0)) return [0];
  const raw = top / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  const far = (step: number) => Math.abs(Math.log(step * power) - Math.log(raw));
  const size = [1, 2, 5, 10].reduce((best, step) => (far(step) < far(best) ? step : best)) * power;
  const marks: number[] = [];
  for (let at = 0; at <= top * (1 + 1e-9); at += size) marks.push(Number(at.toPrecision(12)));
  return marks;
}
