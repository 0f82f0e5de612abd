/** Ticks of the time axis: round steps from picoseconds to minutes, and their labels. Pure. */
import type { Span } from "./types";

/** The spacing of ticks in ns, at least `minimum`: 1, 2 or 5 times a power of ten; whole seconds and minutes above. */
export function tickStep(minimum: number): number {
  if (!(minimum > 0)) return 1;
  for (const seconds of [10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200]) {
    if (minimum > 5e9 && minimum <= seconds * 1e9) return seconds * 1e9;
  }
  const power = 10 ** Math.floor(Math.log10(minimum));
  for (const times of [1, 2, 5]) if (times * power >= minimum * (1 - 1e-9)) return times * power;
  return 10 * power;
}

/** Writes the ticks inside a window into `out`, re-using it; returns their number. */
export function ticks(window: Span, step: number, out: Float64Array): number {
  const first = Math.ceil(window.start / step);
  let n = 0;
  for (let i = first; n < out.length; i += 1) {
    const t = i * step;
    if (t > window.end) break;
    out[n] = t;
    n += 1;
  }
  return n;
}

interface Unit {
  scale: number;
  name: string;
}

const PS: Unit = { scale: 1e-3, name: "ps" };
const NS: Unit = { scale: 1, name: "ns" };
const US: Unit = { scale: 1e3, name: "µs" };
const MS: Unit = { scale: 1e6, name: "ms" };
const S: Unit = { scale: 1e9, name: "s" };

function unitOf(step: number): Unit {
  if (step >= 1e9) return S;
  if (step >= 1e6) return MS;
  if (step >= 1e3) return US;
  return step >= 1 ? NS : PS;
}

/**
 * Deep inside a trace a full time stamp is too long for an axis. Then the axis shows a base once (at its left end) and
 * ticks show the distance from it.
 */
export interface AxisText {
  base: number;
  unit: Unit;
  step: number;
}

export function axisText(window: Span, step: number): AxisText {
  const unit = unitOf(step);
  const far = Math.max(Math.abs(window.start), Math.abs(window.end));
  // `44.5 ms` rather than `44500 µs`, as long as three decimals distinguish the ticks.
  const larger = [PS, NS, US, MS, S].find((u) => u.scale >= unit.scale && far / u.scale < 1e4);
  if (larger && step / larger.scale > 0.99e-3) return { base: 0, unit: larger, step };
  // Else the ticks count from a round moment before the window.
  const round = unit.scale * 1000;
  return { base: Math.floor(window.start / round) * round, unit, step };
}

export function tickLabel(t: number, text: AxisText): string {
  const away = t - text.base;
  if (text.unit === S && text.step >= 10e9 && Math.abs(away) >= 60e9) return clock(away);
  const digits = Math.max(0, -Math.floor(Math.log10(text.step / text.unit.scale) + 1e-9));
  const value = (away / text.unit.scale).toFixed(Math.min(digits, 3));
  return `${text.base === 0 ? "" : "+"}${value} ${text.unit.name}`;
}

function clock(ns: number): string {
  const seconds = Math.round(ns / 1e9);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} min`;
}

/** A moment written out to the nanosecond, as the base of an axis: `1.234 567 890 s`. */
export function moment(ns: number): string {
  const sign = ns < 0 ? "−" : "";
  const whole = Math.abs(ns);
  const seconds = Math.floor(whole / 1e9);
  const rest = Math.floor(whole - seconds * 1e9);
  const digits = String(rest).padStart(9, "0");
  return `${sign}${seconds}.${digits.slice(0, 3)} ${digits.slice(3, 6)} ${digits.slice(6)} s`;
}
