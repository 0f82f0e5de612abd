/**
 * Arithmetic of the visible window of time: pan, zoom about a point, clamp, fit, and which tiles of which level a
 * window needs. Pure; all times are nanoseconds as doubles.
 *
 * A level `L` has buckets of 2^L picoseconds and tiles of 1,024 buckets. The level for a window is the coarsest whose
 * bucket is not wider than a pixel, so that a bucket is between half a pixel and one pixel wide on the screen.
 */
import type { Span } from "./types";

export const BUCKETS = 1024;
export const MAX_LEVEL = 62;
/** The narrowest window: a thousand pixels of one picosecond each. */
export const MIN_WINDOW_NS = 1;
/** How far a window may reach beyond what was recorded, as a share of the window. */
const MARGIN = 0.05;

export function bucketNs(level: number): number {
  return 2 ** level / 1000;
}

export function tileNs(level: number): number {
  return (BUCKETS * 2 ** level) / 1000;
}

/** The coarsest level whose bucket is at most `nsPerPx` wide. */
export function levelFor(nsPerPx: number): number {
  if (!(nsPerPx > 0)) return 0;
  const level = Math.floor(Math.log2(nsPerPx * 1000) + 1e-9);
  return Math.max(0, Math.min(MAX_LEVEL, level));
}

/** First and last tile of a level that a window overlaps, within the recording. Empty if `last < first`. */
export function tilesOf(window: Span, level: number, bounds: Span): { first: number; last: number } {
  const width = tileNs(level);
  const from = Math.max(window.start, bounds.start);
  const to = Math.min(window.end, bounds.end);
  if (to < from) return { first: 0, last: -1 };
  const first = Math.max(0, Math.floor(from / width));
  return { first, last: Math.max(first, Math.ceil(to / width) - 1) };
}

/** Keeps a window inside `bounds` with a small margin and a minimum width; keeps its width if possible. */
export function clamp(window: Span, bounds: Span): Span {
  const whole = Math.max(bounds.end - bounds.start, MIN_WINDOW_NS);
  const width = Math.max(MIN_WINDOW_NS, Math.min(window.end - window.start, whole * (1 + 2 * MARGIN)));
  const margin = Math.min(width, whole) * MARGIN;
  const low = bounds.start - margin;
  const high = bounds.start + whole + margin;
  if (width >= high - low) {
    const middle = bounds.start + whole / 2;
    return { start: middle - width / 2, end: middle + width / 2 };
  }
  const centre = (window.start + window.end) / 2;
  const start = Math.max(low, Math.min(high - width, centre - width / 2));
  return { start, end: start + width };
}

export function pan(window: Span, ns: number): Span {
  return { start: window.start + ns, end: window.end + ns };
}

/** Scales the window by `factor` (below one zooms in) so that `at` stays where it is on the screen. */
export function zoom(window: Span, at: number, factor: number): Span {
  const width = Math.max(MIN_WINDOW_NS, (window.end - window.start) * factor);
  const share = (at - window.start) / (window.end - window.start);
  const start = at - share * width;
  return { start, end: start + width };
}

/** The window in which `span` fills `share` of the width, centred. A moment without a duration gets a little room around it. */
export function fit(span: Span, share: number): Span {
  const width = Math.max(MIN_WINDOW_NS, (span.end - span.start) / share);
  const centre = (span.start + span.end) / 2;
  return { start: centre - width / 2, end: centre + width / 2 };
}

/** Steps that take less than this share of a recording are shown first, because the rest is mostly warm-up. */
const SLIVER = 0.25;

/** The initial view of a timeline: everything, or the steps if they would be a sliver. */
export function opening(bounds: Span, steps: readonly { start_ns: number; end_ns: number; counted: boolean }[]): Span {
  let [start, end] = [Infinity, -Infinity];
  for (const step of steps) {
    if (!step.counted) continue;
    start = Math.min(start, step.start_ns);
    end = Math.max(end, step.end_ns);
  }
  return end > start && end - start < SLIVER * (bounds.end - bounds.start) ? fit({ start, end }, 0.9) : bounds;
}

/** Moves the window as little as needed to show `span`; a span wider than the window is shown from its start. */
export function reveal(window: Span, span: Span): Span {
  const width = window.end - window.start;
  if (span.end > window.start && span.start < window.end) {
    const inside = span.start >= window.start && span.end <= window.end;
    const covers = span.start <= window.start && span.end >= window.end;
    if (inside || covers) return window;
  }
  if (span.end - span.start > width * 0.9) return { start: span.start - width * 0.05, end: span.start + width * 0.95 };
  const centre = (span.start + span.end) / 2;
  return { start: centre - width / 2, end: centre + width / 2 };
}

export function timeAt(window: Span, x: number, width: number): number {
  return window.start + ((window.end - window.start) * x) / width;
}

export function xAt(window: Span, t: number, width: number): number {
  return ((t - window.start) / (window.end - window.start)) * width;
}

/** One step of a smooth animation in `dt` ms; ends exactly when the rest is invisible. */
export function approach(from: Span, to: Span, dt: number): Span {
  const k = 1 - Math.exp(-dt / 60);
  const start = from.start + (to.start - from.start) * k;
  const end = from.end + (to.end - from.end) * k;
  const width = Math.abs(to.end - to.start);
  if (Math.abs(start - to.start) < width * 5e-4 && Math.abs(end - to.end) < width * 5e-4) return { ...to };
  return { start, end };
}

/** The part of a span inside bounds. */
export function within(span: Span, bounds: Span): Span {
  const inside = (ns: number) => Math.max(bounds.start, Math.min(bounds.end, ns));
  return { start: inside(span.start), end: inside(span.end) };
}

/** When an event ran. */
export function spanOf(event: { start_ns: number; dur_ns: number }): Span {
  return { start: event.start_ns, end: event.start_ns + event.dur_ns };
}
