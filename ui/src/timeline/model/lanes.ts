/**
 * How busy tracks were over the whole trace, pixel by pixel: what the minimap shows for devices besides the categories.
 * Computed from the tiles of the level that is always kept, so it needs no extra request. Pure.
 */
import type { Part } from "./tiles";
import type { Category, Span, Timeline } from "./types";
import { bucketNs, tileNs } from "./view";

/** Number of parts into which the trace is divided. */
const COLUMNS = 1024;
/** More devices than this are shown as one, by their average. */
const MOST_LANES = 4;
/** Time on a device in which nothing is done. */
const QUIET = new Set(["idle", "sync", "unknown"]);

/** Slots of each device's tracks, in display order. */
export function deviceSlots(timeline: Timeline): number[][] {
  const devices = new Set(
    timeline.processes.filter((process) => process.kind === "device").map((process) => process.id),
  );
  const slots = new Map<number, number[]>();
  timeline.tracks.forEach((track, slot) => {
    if (!devices.has(track.process) || track.kind !== "stream" || track.events === 0) return;
    const list = slots.get(track.process);
    if (list) list.push(slot);
    else slots.set(track.process, [slot]);
  });
  return [...slots.values()];
}

/** Numbers of the categories that are not work. */
export function quietCategories(categories: readonly Category[]): Set<number> {
  return new Set(categories.flatMap((category, number) => (QUIET.has(category.key) ? [number] : [])));
}

/** The share of each of `width` columns of `bounds` in which something ran; several parts at once count as one. */
export function busyShares(
  parts: Iterable<Part>,
  bounds: Span,
  width: number,
  quiet: ReadonlySet<number> = new Set(),
): Float32Array {
  const shares = new Float32Array(width);
  const scale = width / (bounds.end - bounds.start);
  for (const part of parts) {
    const { chunk } = part;
    const origin = chunk.tile * tileNs(chunk.level) - bounds.start;
    const bucket = bucketNs(chunk.level);
    for (let i = part.first; i < part.first + part.count; i += 1) {
      if (quiet.has(chunk.category[i] as number)) continue;
      // Spans that cross a tile border also occur in the next tile.
      const [start, end] = [Math.max(0, chunk.start[i] as number), Math.min(1024, chunk.end[i] as number)];
      const whole = (chunk.end[i] as number) - (chunk.start[i] as number);
      const share = (chunk.count[i] as number) > 1 ? Math.min(1, (chunk.busy[i] as number) / Math.max(1e-6, whole)) : 1;
      spread(shares, (origin + start * bucket) * scale, (origin + end * bucket) * scale, share);
    }
  }
  return shares.map((share) => Math.min(1, share));
}

function spread(shares: Float32Array, from: number, to: number, share: number): void {
  const last = Math.min(shares.length - 1, Math.floor(to));
  for (let x = Math.max(0, Math.floor(from)); x <= last; x += 1) {
    shares[x] = (shares[x] as number) + Math.max(0, Math.min(to, x + 1) - Math.max(from, x)) * share;
  }
}

/** A counter's greatest value in each column as a share of `most`; a value holds until the next. */
export function counterShares(parts: Iterable<Part>, bounds: Span, width: number, most: number): Float32Array {
  const shares = new Float32Array(width).fill(Number.NaN);
  const scale = width / (bounds.end - bounds.start);
  for (const part of parts) {
    const { chunk } = part;
    for (let i = part.sampleFirst; i < part.sampleFirst + part.sampleCount; i += 1) {
      const at = chunk.at[i] as number;
      if (at < 0 || at > 1024) continue;
      const x = Math.floor((chunk.tile * tileNs(chunk.level) + at * bucketNs(chunk.level) - bounds.start) * scale);
      const share = Math.max(0, Math.min(1, (chunk.maximum[i] as number) / (most || 1)));
      if (x >= 0 && x < width)
        shares[x] = Math.max(Number.isNaN(shares[x] as number) ? 0 : (shares[x] as number), share);
    }
  }
  let held = 0;
  return shares.map((share) => (held = Number.isNaN(share) ? held : share));
}

/** Several lanes as one: the average. */
export function average(lanes: readonly Float32Array[]): Float32Array {
  const sum = new Float32Array(lanes[0]?.length ?? 0);
  for (const lane of lanes) lane.forEach((share, x) => (sum[x] = (sum[x] as number) + share / lanes.length));
  return sum;
}

/** What the minimap shows besides the categories: lanes of devices, and for a trace without categories something else. */
export interface Lanes {
  lanes: Float32Array[];
  other: Float32Array | null;
  /** In a word. */
  caption: string;
}

/** The minimap's lanes; null while some of the tiles that they need are loading. `bare`: nothing in the trace has a category. */
export function lanesOf(
  timeline: Timeline,
  categories: readonly Category[],
  bounds: Span,
  bare: boolean,
  kept: (slot: number) => Part[] | null,
): Lanes | null {
  const { tracks } = timeline;
  const devices = deviceSlots(timeline);
  const counter = tracks.findIndex((track) => track.kind === "counter");
  const busiest = tracks.reduce((best, track, slot) => (track.busy_ns > (tracks[best]?.busy_ns ?? 0) ? slot : best), 0);
  const shown = bare ? (counter >= 0 ? counter : busiest) : null;
  const wanted = [...devices.flat(), ...(shown === null ? [] : [shown])];
  if (wanted.some((slot) => !kept(slot))) return null;
  const parts = (slots: readonly number[]) => slots.flatMap((slot) => kept(slot) ?? []);
  const quiet = quietCategories(categories);
  const lanes = devices.map((slots) => busyShares(parts(slots), bounds, COLUMNS, quiet));
  const other =
    shown === null
      ? null
      : shown === counter
        ? counterShares(parts([shown]), bounds, COLUMNS, tracks[shown]?.max ?? 1)
        : busyShares(parts([shown]), bounds, COLUMNS);
  const caption =
    shown === null
      ? lanes.length === 0
        ? ""
        : lanes.length === 1
          ? "device"
          : "devices"
      : (tracks[shown]?.name ?? "");
  return { lanes: lanes.length > MOST_LANES ? [average(lanes)] : lanes, other, caption };
}
