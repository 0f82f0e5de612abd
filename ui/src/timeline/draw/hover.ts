/** What is under the pointer: a span, several merged into one, or a counter's value. */
import { counterAt } from "./counters";
import { type Gap, gapAt } from "./gaps";
import { duration } from "../model/format";
import { rowAt } from "../model/layout";
import { bucketPx, eachPart, type Scene, tileX } from "./scene";
import { itemAtPlot, type Outline } from "./selection";
import { type Part, spanAt } from "../model/tiles";
import type { RankRun, Timeline, Track } from "../model/types";
import { BUCKETS, bucketNs, timeAt } from "../model/view";

/** Tolerance in pixels. */
const NEAR_PX = 2;

export interface Hover extends Outline {
  x: number;
  y: number;
  track: Track;
  name: string;
  event: number;
  /** Number of merged events there; 0 for a counter. */
  count: number;
  /** Share of its width in which something ran. */
  busy: number;
  category: number;
  /** For a counter: its values there. */
  low: number | null;
  high: number | null;
  /** For an idle time of a device: what the host did meanwhile. */
  idle?: string;
  /** For a collective of several ranks: how long this one waited. */
  run?: RankRun;
}

export function hoverAt(
  scene: Scene,
  timeline: Timeline,
  x: number,
  y: number,
  gaps: ReadonlyMap<number, readonly Gap[]> = new Map(),
): Hover | null {
  const { layout, scroll } = scene;
  const item = itemAtPlot(layout, scroll, y);
  if (item?.kind === "process") return idleHover(scene, timeline, item.id, gaps.get(item.id) ?? [], x, y);
  const track = item && timeline.tracks[item.slot];
  if (!item || !track) return null;
  if (track.kind === "counter") return counterHover(scene, item.slot, track, x, y);
  const row = rowAt(layout, item.slot, item.pinned ? y : y - layout.pinnedHeight + scroll);
  let found: Hover | null = null;
  eachPart(scene, item.slot, (part, left, right) => {
    if (found === null && x >= left && x < right) found = spanHover(scene, part, track, row, x, y);
  });
  return found;
}

/** The heading of a device: its idle times. */
function idleHover(
  scene: Scene,
  timeline: Timeline,
  process: number,
  gaps: readonly Gap[],
  x: number,
  y: number,
): Hover | null {
  const gap = gapAt(gaps, scene, timeAt(scene.window, x, scene.width));
  const slot = timeline.tracks.findIndex((track) => track.process === process);
  const track = timeline.tracks[slot];
  if (!gap || !track) return null;
  const name = `Idle for ${duration(gap.end - gap.start)}`;
  return {
    x,
    y,
    slot,
    row: 0,
    start: gap.start,
    end: gap.end,
    track,
    name,
    event: -1,
    count: 0,
    busy: 0,
    category: 255,
    low: null,
    high: null,
    idle: gap.cause,
  };
}

function counterHover(scene: Scene, slot: number, track: Track, x: number, y: number): Hover | null {
  const ns = timeAt(scene.window, x, scene.width);
  const value = counterAt(scene, slot, ns);
  if (!value) return null;
  return {
    x,
    y,
    slot,
    row: 0,
    start: ns,
    end: ns,
    track,
    name: track.name,
    event: -1,
    count: 0,
    busy: 0,
    category: 255,
    ...value,
  };
}

function spanHover(scene: Scene, part: Part, track: Track, row: number, x: number, y: number): Hover | null {
  const { chunk, slot } = part;
  const scale = bucketPx(scene, chunk.level);
  const i = spanAt(part, row, (x - tileX(scene, chunk.level, chunk.tile)) / scale, NEAR_PX / scale);
  if (i < 0) return null;
  const width = bucketNs(chunk.level);
  const origin = chunk.tile * BUCKETS * width;
  const [start, end] = [chunk.start[i] as number, chunk.end[i] as number];
  return {
    x,
    y,
    slot,
    row,
    track,
    start: origin + start * width,
    end: origin + end * width,
    name: chunk.names.get(chunk.name[i] as number) ?? "",
    event: chunk.event[i] as number,
    count: chunk.count[i] as number,
    busy: (chunk.busy[i] as number) / Math.max(1e-6, end - start),
    category: chunk.category[i] as number,
    low: null,
    high: null,
  };
}
