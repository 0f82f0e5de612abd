/** The selection: an event, an area of time and tracks, marks; and how these are drawn over the spans. */
import { locate } from "./flows";
import { duration } from "../model/format";
import { itemAt, type Layout } from "../model/layout";
import type { Scene } from "./scene";
import type { Theme } from "./theme";
import type { Evidence, Span, Timeline } from "../model/types";
import { title } from "../../words/format";
import { xAt } from "../model/view";

/** Time × tracks. */
export interface Area extends Span {
  tracks: number[];
}

/** A span on a row, to be outlined. */
export interface Outline extends Span {
  slot: number;
  row: number;
}

/** Tracks between two heights of the plot (CSS pixels), in their order; a folded process brings all its tracks. */
export function tracksBetween(timeline: Timeline, layout: Layout, scroll: number, y0: number, y1: number): number[] {
  const [top, bottom] = y0 < y1 ? [y0, y1] : [y1, y0];
  const tracks: number[] = [];
  for (const item of layout.items) {
    const y = item.pinned ? item.y : item.y - scroll + layout.pinnedHeight;
    if (y > bottom || y + item.height < top) continue;
    if (item.kind === "track") tracks.push(item.id);
    else if (item.kind === "process" && item.folded) {
      for (const track of timeline.tracks) if (track.process === item.id) tracks.push(track.id);
    }
  }
  return tracks;
}

/** The item at a height of the plot, pinned part first. */
export function itemAtPlot(layout: Layout, scroll: number, y: number) {
  return y < layout.pinnedHeight ? itemAt(layout, y, true) : itemAt(layout, y - layout.pinnedHeight + scroll, false);
}

export function drawOutline(
  context: CanvasRenderingContext2D,
  scene: Scene,
  timeline: Timeline,
  outline: Outline,
  color: string,
  strong: boolean,
): void {
  const place = locate(scene, timeline, outline.slot, outline.row);
  if (place.hidden) return;
  const left = Math.max(-10, xAt(scene.window, outline.start, scene.width));
  const right = Math.min(scene.width + 10, xAt(scene.window, outline.end, scene.width));
  if (right < -5 || left > scene.width + 5) return;
  const x = Math.floor(left);
  const width = Math.max(2, Math.round(right) - x);
  context.lineWidth = strong ? 2 : 1;
  context.strokeStyle = color;
  const out = strong ? 1 : 0.5;
  context.strokeRect(
    x - (width <= 3 ? out : 0) + (strong ? 0 : 0.5),
    place.y - out + (strong ? 0 : 0.5),
    width,
    place.height + (strong ? out : 0) - (strong ? 0 : 1),
  );
}

/** Fills an area; returns its top. */
export function drawArea(
  context: CanvasRenderingContext2D,
  scene: Scene,
  timeline: Timeline,
  area: Area,
  slotOf: ReadonlyMap<number, number>,
  theme: Theme,
): number {
  const left = Math.max(-2, Math.round(xAt(scene.window, area.start, scene.width)));
  const right = Math.min(scene.width + 2, Math.round(xAt(scene.window, area.end, scene.width)));
  if (right < left) return 0;
  context.fillStyle = theme.area;
  let top = Infinity;
  let bottom = -Infinity;
  for (const id of area.tracks) {
    const slot = slotOf.get(id);
    if (slot === undefined) continue;
    const item = scene.layout.items.find((i) => i.kind === "track" && i.slot === slot);
    const place =
      item ?? scene.layout.items.find((i) => i.kind === "process" && i.id === timeline.tracks[slot]?.process);
    if (!place) continue;
    const y = place.pinned
      ? place.y
      : Math.max(scene.layout.pinnedHeight, place.y - scene.scroll + scene.layout.pinnedHeight);
    const end = (place.pinned ? place.y : place.y - scene.scroll + scene.layout.pinnedHeight) + place.height;
    if (end <= y || (!item && end <= bottom)) continue;
    context.fillRect(left, y, Math.max(1, right - left), end - y);
    top = Math.min(top, y);
    bottom = Math.max(bottom, end);
  }
  context.fillStyle = theme.accent;
  for (const x of [left, right]) context.fillRect(x, 0, 1, scene.height);
  return top < bottom ? top : 0;
}

/** The duration label at the top of an area. */
export function areaCaption(
  context: CanvasRenderingContext2D,
  scene: Scene,
  area: Area,
  theme: Theme,
  top: number,
): void {
  const middle = visibleMiddle(scene, area);
  if (middle !== null) caption(context, theme, middle, Math.max(2, top) + 9, duration(area.end - area.start));
}

/** Position of a span's caption: over the middle of its visible part; null if nothing is visible. */
function visibleMiddle(scene: Scene, span: Span): number | null {
  const left = Math.max(0, xAt(scene.window, span.start, scene.width));
  const right = Math.min(scene.width, xAt(scene.window, span.end, scene.width));
  return right < left ? null : Math.max(40, Math.min(scene.width - 40, (left + right) / 2));
}

/** A mark: a band over all tracks. A soft one is the target of a link: it keeps its colours, and its surroundings are dimmed. */
export function drawMark(
  context: CanvasRenderingContext2D,
  scene: Scene,
  mark: Span,
  theme: Theme,
  soft: boolean,
): void {
  const left = Math.max(-2, Math.round(xAt(scene.window, mark.start, scene.width)));
  const right = Math.min(scene.width + 2, Math.round(xAt(scene.window, mark.end, scene.width)));
  if (right < 0 || left > scene.width) return;
  if (soft) {
    context.fillStyle = theme.back;
    context.globalAlpha = 0.5;
    context.fillRect(0, 0, left, scene.height);
    context.fillRect(right, 0, scene.width - right, scene.height);
  }
  context.fillStyle = theme.mark;
  if (!soft) {
    context.globalAlpha = 0.16;
    context.fillRect(left, 0, Math.max(1, right - left), scene.height);
  }
  context.globalAlpha = 0.9;
  context.fillRect(left, 0, 1, scene.height);
  context.fillRect(Math.max(left, right - 1), 0, 1, scene.height);
  context.globalAlpha = 1;
}

export function markCaption(
  context: CanvasRenderingContext2D,
  scene: Scene,
  mark: Span,
  theme: Theme,
  lane: number,
): void {
  const middle = visibleMiddle(scene, mark);
  if (middle !== null)
    caption(context, theme, middle, scene.height - 12 - (lane % 3) * 18, duration(mark.end - mark.start), theme.mark);
}

/** The caption over what a finding refers to: its name, and how long it takes. */
export function evidenceCaption(context: CanvasRenderingContext2D, scene: Scene, place: Evidence, theme: Theme): void {
  const middle = visibleMiddle(scene, place);
  const time = place.proof?.figure ?? duration(place.end - place.start);
  const text = place.finding ? `${place.proof?.title ?? title(place.finding)} · ${time}` : time;
  if (middle !== null) caption(context, theme, middle, scene.layout.pinnedHeight + 12, text, theme.mark);
}

/** The time from the start of each mark to that of the next, with a line between them. */
export function drawDistances(
  context: CanvasRenderingContext2D,
  scene: Scene,
  marks: readonly Span[],
  theme: Theme,
): void {
  const sorted = [...marks].sort((a, b) => a.start - b.start);
  sorted.slice(1).forEach((mark, place) => {
    const before = sorted[place];
    if (!before || mark.start === before.start) return;
    const between = { start: before.start, end: mark.start };
    const middle = visibleMiddle(scene, between);
    if (middle === null) return;
    const y = 22 + (place % 3) * 18;
    const left = Math.max(0, xAt(scene.window, between.start, scene.width));
    context.fillStyle = theme.mark;
    context.fillRect(left, y, Math.min(scene.width, xAt(scene.window, between.end, scene.width)) - left, 1);
    caption(context, theme, middle, y, `${duration(between.end - between.start)} apart`, theme.mark);
  });
}

function caption(
  context: CanvasRenderingContext2D,
  theme: Theme,
  x: number,
  y: number,
  text: string,
  edge = theme.accent,
): void {
  context.font = "600 11px system-ui, sans-serif";
  const width = context.measureText(text).width + 12;
  context.fillStyle = theme.back;
  context.strokeStyle = edge;
  context.lineWidth = 1;
  context.beginPath();
  context.roundRect(Math.round(x - width / 2) + 0.5, Math.round(y - 8) + 0.5, Math.round(width), 16, 4);
  context.fill();
  context.stroke();
  context.fillStyle = theme.ink;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, x, y + 0.5);
  context.textAlign = "left";
}
