/** What a renderer needs to draw one frame, and what every renderer can do. */
import type { ColorMode, Palette } from "./colors";
import type { Layout } from "../model/layout";
import type { TileStore } from "../model/store";
import type { Chunk, Part } from "../model/tiles";
import type { Span } from "../model/types";
import { bucketNs, tileNs } from "../model/view";

export interface Scene {
  /** Size of the plot in CSS pixels, and device pixels per CSS pixel. */
  width: number;
  height: number;
  ratio: number;
  window: Span;
  level: number;
  first: number;
  last: number;
  layout: Layout;
  scroll: number;
  /** Slots in sight. */
  slots: number[];
  store: TileStore;
  palette: Palette;
  mode: ColorMode;
  /** True while a search dims what does not match. */
  dim: boolean;
}

export interface Renderer {
  readonly kind: "webgl" | "canvas";
  draw(scene: Scene): void;
  forget(chunk: Chunk): void;
  dispose(): void;
}

/** Minimum opacity of a span, so that rare ones stay visible. */
export const FLOOR_ALPHA = 0.3;
/** Opacity of spans that do not match a search. */
export const DIM_ALPHA = 0.16;

/** Start of a tile on the screen (in CSS pixels) and the width of its buckets. */
export function tileX(scene: Scene, level: number, tile: number): number {
  return ((tile * tileNs(level) - scene.window.start) / (scene.window.end - scene.window.start)) * scene.width;
}

export function bucketPx(scene: Scene, level: number): number {
  return (bucketNs(level) / (scene.window.end - scene.window.start)) * scene.width;
}

/** Calls `draw` with each part that belongs on the screen for a slot, and the pixels of the plot it may fill. */
export function eachPart(scene: Scene, slot: number, draw: (part: Part, left: number, right: number) => void): void {
  for (let tile = scene.first; tile <= scene.last; tile += 1) {
    const left = tileX(scene, scene.level, tile);
    const right = tileX(scene, scene.level, tile + 1);
    const part = scene.store.part(scene.level, tile, slot);
    if (part) draw(part, left, right);
    else scene.store.substitute(scene.level, tile, slot, (other) => draw(other, left, right));
  }
}

/** Top of a slot's first row on the plot in CSS pixels. */
export function slotTop(scene: Scene, slot: number): number {
  const y = scene.layout.slots[slot * 4] as number;
  return (scene.layout.slots[slot * 4 + 3] as number) === 1 ? y : y - scene.scroll + scene.layout.pinnedHeight;
}

/** Fills in the slots of the tracks that are in sight; the first `tracks` slots are tracks. */
export function visibleSlots({ layout, scroll, height, slots: out }: Scene, tracks: number): void {
  const { slots, pinnedHeight } = layout;
  out.length = 0;
  for (let slot = 0; slot * 4 < slots.length && slot < tracks; slot += 1) {
    const place = slots[slot * 4 + 3] as number;
    if (place < 0) continue;
    const y = (slots[slot * 4] as number) - (place === 1 ? 0 : scroll - pinnedHeight);
    const end = y + (slots[slot * 4 + 1] as number) * (slots[slot * 4 + 2] as number);
    if (y < height && end > (place === 1 ? 0 : pinnedHeight)) out.push(slot);
  }
}
