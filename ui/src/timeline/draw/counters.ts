/** Counters as areas: a value holds until the next sample; between a bucket's minimum and maximum the area is paler. */
import { bucketPx, eachPart, type Scene, slotTop, tileX } from "./scene";
import { tileNs } from "../model/view";
import type { Theme } from "./theme";
import type { Track } from "../model/types";

const HEADROOM = 2;

/** One counter's values by pixel column; re-used from frame to frame. */
class Columns {
  low = new Float64Array(0);
  high = new Float64Array(0);

  reset(width: number): void {
    if (this.low.length < width) {
      this.low = new Float64Array(width);
      this.high = new Float64Array(width);
    }
    this.low.fill(Number.NaN, 0, width);
    this.high.fill(Number.NaN, 0, width);
  }

  put(x: number, low: number, high: number): void {
    const before = this.low[x] as number;
    this.low[x] = Number.isNaN(before) ? low : Math.min(before, low);
    const above = this.high[x] as number;
    this.high[x] = Number.isNaN(above) ? high : Math.max(above, high);
  }
}

const columns = new Columns();

export function drawCounters(
  context: CanvasRenderingContext2D,
  scene: Scene,
  tracks: readonly Track[],
  theme: Theme,
): void {
  for (const slot of scene.slots) {
    const track = tracks[slot];
    if (track?.kind !== "counter" || (scene.layout.slots[slot * 4 + 1] as number) < 10) continue;
    drawCounter(context, scene, slot, track, theme);
  }
}

function fill(scene: Scene, slot: number, width: number): void {
  columns.reset(width);
  let value = Number.NaN;
  let reached = 0;
  // A value holds over columns without samples, so columns are filled up to each sample with what came before.
  const hold = (to: number) => {
    for (; reached < Math.min(to, width); reached += 1)
      if (!Number.isNaN(value) && Number.isNaN(columns.low[reached] as number)) columns.put(reached, value, value);
  };
  eachPart(scene, slot, (part, left, right) => {
    const { at, minimum, maximum, level, tile } = part.chunk;
    scene.store.touch(part.chunk);
    const origin = tileX(scene, level, tile);
    const scale = bucketPx(scene, level);
    for (let i = part.sampleFirst; i < part.sampleFirst + part.sampleCount; i += 1) {
      const x = Math.floor(origin + (at[i] as number) * scale);
      if (x >= right || x >= width) break;
      hold(x);
      value = maximum[i] as number;
      if (x >= Math.max(0, Math.floor(left))) columns.put(x, minimum[i] as number, value);
    }
    hold(Math.round(right));
  });
}

function drawCounter(context: CanvasRenderingContext2D, scene: Scene, slot: number, track: Track, theme: Theme): void {
  const width = Math.ceil(scene.width);
  fill(scene, slot, width);
  const top = slotTop(scene, slot) + HEADROOM;
  const height = (scene.layout.slots[slot * 4 + 1] as number) - HEADROOM;
  const least = Math.min(0, track.min ?? 0);
  const most = Math.max(least + Number.MIN_VALUE, track.max ?? 1);
  const bottom = Math.round(top + height);
  const edge = (value: number) =>
    Math.min(bottom - 1, Math.round(top + height * (1 - (value - least) / (most - least || 1))));
  context.fillStyle = theme.counter;
  // Whole pixels and plain rectangles: filling a path of a thousand steps takes ten times as long.
  context.globalAlpha = 0.75;
  runs(columns.low, width, edge, (from, to, y) => context.fillRect(from, y, to - from, bottom - y));
  context.globalAlpha = 0.35;
  const low = columns.low;
  runs(columns.high, width, edge, (from, to, y) => {
    for (let x = from; x < to; x += 1) {
      const under = edge(low[x] as number);
      if (under > y) context.fillRect(x, y, 1, under - y);
    }
  });
  context.globalAlpha = 1;
}

/** Columns of equal height, as one. */
function runs(
  values: Float64Array,
  width: number,
  edge: (value: number) => number,
  draw: (from: number, to: number, y: number) => void,
): void {
  let from = 0;
  let before = Number.NaN;
  for (let x = 0; x <= width; x += 1) {
    const value = x < width ? (values[x] as number) : Number.NaN;
    const y = Number.isNaN(value) ? Number.NaN : edge(value);
    if (Object.is(y, before)) continue;
    if (!Number.isNaN(before)) draw(from, x, before);
    from = x;
    before = y;
  }
}

/** A counter's minimum and maximum at a moment: of its bucket, else the value at that time. */
export function counterAt(scene: Scene, slot: number, ns: number): { low: number; high: number } | null {
  const tile = Math.floor(ns / tileNs(scene.level));
  for (let back = tile; back >= scene.first; back -= 1) {
    const part = scene.store.part(scene.level, back, slot);
    if (!part) return null;
    const { at, minimum, maximum } = part.chunk;
    const bucket = (ns / tileNs(scene.level) - back) * 1024;
    for (let i = part.sampleFirst + part.sampleCount - 1; i >= part.sampleFirst; i -= 1) {
      if ((at[i] as number) <= bucket) return { low: minimum[i] as number, high: maximum[i] as number };
    }
  }
  return null;
}
