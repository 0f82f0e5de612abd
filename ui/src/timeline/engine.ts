/**
 * The timeline itself, without any framework: holds the state, draws a frame when something changed, and notifies the
 * page around it. All hot code is here and in what it calls; nothing in here waits for the network.
 */
import { axisBase, Backdrop } from "./backdrop";
import { type ColorMode, hueOf, palette } from "./colors";
import { drawCounters } from "./counters";
import { drawFlows } from "./flows";
import { gapsByProcess } from "./gaps";
import { type Hook, note } from "./hook";
import { type Hover, hoverAt } from "./hover";
import { LabelWriter } from "./labels";
import { average, busyShares, counterShares, deviceSlots, MOST_LANES, quietCategories } from "./lanes";
import { type Arrangement, arrange, emptyArrangement, type Layout } from "./layout";
import { Minimap, type MinimapState } from "./minimap";
import type { Source } from "./net";
import { pickRenderer, type Wanted } from "./renderer";
import type { Renderer, Scene } from "./scene";
import { markHits, Search } from "./search";
import { type Area, areaCaption, drawArea, drawDistances, drawMark, drawOutline, markCaption } from "./selection";
import { TileStore } from "./store";
import { readTheme, type Theme } from "./theme";
import type { Part } from "./tiles";
import type { Category, EventDetails, Span, Timeline } from "./types";
import { approach, clamp, levelFor, opening, pan, tilesOf, timeAt, xAt, zoom } from "./view";

export const AXIS_HEIGHT = 36;
export const MINIMAP_HEIGHT = 44;
const CACHE_BYTES = 192 * 1024 * 1024;
/** Minimum time between two checks for missing tiles while the view moves, in ms. */
const ASK_EVERY = 60;
/** Number of parts into which the minimap divides the trace for its lanes. */
const LANE_COLUMNS = 1024;

export interface Surfaces {
  root: HTMLElement;
  plot: HTMLElement;
  back: HTMLCanvasElement;
  spans: HTMLCanvasElement;
  front: HTMLCanvasElement;
  axis: HTMLCanvasElement;
  minimap: HTMLCanvasElement | null;
}

export interface Listener {
  layout(layout: Layout): void;
  frame(scroll: number): void;
  window(window: Span): void;
  hover(hover: Hover | null): void;
  base(text: string): void;
  /** What the minimap shows besides the categories, in a word. */
  lanes(caption: string): void;
  problem(error: unknown): void;
}

const enum Dirty {
  None = 0,
  Front = 1,
  All = 3,
}

export class Engine {
  readonly bounds: Span;
  /** The default view. */
  readonly opening: Span;
  readonly slotOf: ReadonlyMap<number, number>;
  readonly search: Search;
  window: Span;
  layout: Layout;
  arrangement: Arrangement = emptyArrangement();
  mode: ColorMode = "category";
  selected: EventDetails | null = null;
  area: Area | null = null;
  marks: Span[] = [];
  place: Span | null = null;
  hover: Hover | null = null;
  theme: Theme;
  scroll = 0;
  /** Called every frame while it returns true: held keys. */
  motion: (dt: number) => boolean = () => false;
  readonly hook: Hook;

  private renderer: Renderer;
  private readonly store: TileStore;
  private readonly backdrop: Backdrop;
  private readonly minimap: Minimap | null;
  private readonly writer: LabelWriter;
  private readonly contexts: Record<"back" | "front" | "axis", CanvasRenderingContext2D>;
  private readonly scene: Scene;
  private target: Span | null = null;
  private dirty: Dirty = Dirty.None;
  private pending = 0;
  private lastFrame = 0;
  /** The last frame moved and the next one will. */
  private gliding = false;
  private lastAsk = -1e9;
  private askTimer = 0;
  private lastBase = "";
  private closed = false;
  /** The level that is kept completely; -1 until it was requested. */
  private keptLevel = -1;
  private laned = false;
  private pointer: { x: number; y: number } | null = null;

  constructor(
    private readonly surfaces: Surfaces,
    readonly timeline: Timeline,
    readonly categories: readonly Category[],
    private readonly source: Source,
    private readonly listener: Listener,
    wanted: Wanted,
  ) {
    this.bounds = { start: timeline.start_ns, end: Math.max(timeline.end_ns, timeline.start_ns + 1) };
    this.opening = clamp(opening(this.bounds, timeline.steps), this.bounds);
    this.window = this.opening;
    this.slotOf = new Map(timeline.tracks.map((t, slot) => [t.id, slot]));
    this.search = new Search(source);
    this.theme = readTheme(surfaces.root);
    this.layout = arrange(timeline, this.arrangement);
    this.backdrop = new Backdrop(timeline);
    this.contexts = { back: pen(surfaces.back), front: pen(surfaces.front), axis: pen(surfaces.axis) };
    this.writer = new LabelWriter(this.contexts.front);
    this.minimap = surfaces.minimap ? new Minimap(surfaces.minimap, categories) : null;
    this.renderer = pickRenderer(surfaces.spans, wanted, () => {
      this.hook.renderer = this.renderer.kind;
      this.invalidate();
    });
    this.store = new TileStore({
      maxBytes: CACHE_BYTES, maxRequests: 4, trackIds: timeline.tracks.map((t) => t.id), hueOf,
      fetch: (level, tile, tracks, signal) => source.tile(level, tile, tracks, signal),
      onTile: () => this.invalidate(),
      onError: (error) => listener.problem(error),
      onForget: (chunk) => this.renderer.forget(chunk),
    });
    this.scene = {
      width: 0, height: 0, ratio: 1, window: this.window, level: 0, first: 0, last: -1, layout: this.layout, scroll: 0,
      slots: [], store: this.store, palette: palette(this.mode, categories, this.theme.dark), mode: this.mode, dim: false,
    };
    this.hook = {
      ready: false, renderer: this.renderer.kind, frames: [], tileTimes: this.store.times, spans: 0,
      complete: () => this.complete(), view: () => this.window,
    };
    if (this.minimap) {
      source.overview().then((overview) => {
        this.minimap?.setOverview(overview);
        this.laned = false;
        this.invalidate();
      }, listener.problem);
    }
  }

  /** True if the picture is complete at this level. */
  complete(): boolean {
    return this.target === null && this.dirty === Dirty.None && this.scene.width > 0 && this.store.complete();
  }

  close(): void {
    this.closed = true;
    cancelAnimationFrame(this.pending);
    clearTimeout(this.askTimer);
    this.store.close();
    this.renderer.dispose();
  }

  // ---- changes ----

  resize(width: number, height: number): void {
    const { scene } = this;
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    if (scene.width === width && scene.height === height && scene.ratio === ratio) return;
    [scene.width, scene.height, scene.ratio] = [width, height, ratio];
    for (const [canvas, h] of [[this.surfaces.back, height], [this.surfaces.front, height], [this.surfaces.axis, AXIS_HEIGHT]] as const) {
      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.max(1, Math.round(h * ratio));
    }
    this.invalidate();
  }

  /** Shows a window at once, or glides there. */
  show(window: Span, glide = false): void {
    const goal = clamp(window, this.bounds);
    if (glide) this.target = goal;
    else {
      this.target = null;
      this.window = goal;
    }
    this.invalidate();
  }

  /** The current or upcoming view. */
  get goal(): Span {
    return this.target ?? this.window;
  }

  zoomBy(factor: number, x: number | null): void {
    const at = timeAt(this.window, x ?? this.scene.width / 2, this.scene.width);
    this.show(zoom(this.window, at, factor));
    this.listener.window(this.window);
  }

  panBy(share: number): void {
    this.show(pan(this.window, share * (this.window.end - this.window.start)));
    this.listener.window(this.window);
  }

  panPx(px: number): void {
    this.panBy(px / Math.max(1, this.scene.width));
  }

  setScroll(scroll: number): void {
    if (scroll === this.scroll) return;
    this.scroll = scroll;
    this.invalidate();
  }

  arrangeAs(arrangement: Arrangement): void {
    this.arrangement = arrangement;
    this.layout = arrange(this.timeline, arrangement);
    this.listener.layout(this.layout);
    this.invalidate();
  }

  setMode(mode: ColorMode): void {
    this.mode = mode;
    this.recolor();
  }

  recolor(): void {
    this.theme = readTheme(this.surfaces.root);
    this.scene.palette = palette(this.mode, this.categories, this.theme.dark);
    this.invalidate();
  }

  invalidate(front = false): void {
    this.dirty |= front ? Dirty.Front : Dirty.All;
    if (this.pending === 0 && !this.closed) {
      this.pending = requestAnimationFrame((now) => this.frame(now));
    }
  }

  // ---- pointing ----

  point(x: number, y: number): void {
    this.pointer = { x, y };
    this.invalidate(true);
  }

  unpoint(): void {
    this.pointer = null;
    this.invalidate(true);
  }

  /** What is drawn at a position of the plot. */
  at(x: number, y: number): Hover | null {
    return hoverAt(this.scene, this.timeline, x, y, this.backdrop.gaps);
  }

  timeAt(x: number): number {
    return timeAt(this.window, x, this.scene.width);
  }

  /** The minimap's state, for drawing and for dragging on it. */
  overview(): MinimapState {
    const { selected } = this;
    return {
      bounds: this.bounds, window: this.window, marks: this.marks, place: this.place, density: this.search.density,
      selected: selected && { start: selected.start_ns, end: selected.start_ns + selected.dur_ns },
    };
  }

  minimapPart(x: number, width: number): "left" | "right" | "inside" | "outside" {
    return this.minimap?.part(this.overview(), x, width) ?? "outside";
  }

  // ---- the frame ----

  private frame(now: number): void {
    this.pending = 0;
    if (this.closed) return;
    const began = performance.now();
    // After a pause the clock restarts: nothing moved in the meantime.
    const dt = this.gliding ? Math.min(200, now - this.lastFrame) : 16;
    this.lastFrame = now;
    let dirty = this.dirty;
    this.dirty = Dirty.None;
    const moving = this.motion(dt);
    if (this.target) {
      this.window = approach(this.window, this.target, dt);
      if (this.window.start === this.target.start && this.window.end === this.target.end) this.target = null;
      this.listener.window(this.window);
    }
    if (moving || this.target || this.dirty !== Dirty.None) dirty = Dirty.All;
    this.dirty = Dirty.None;
    if (this.scene.width > 0 && this.scene.height > 0) this.paint(dirty);
    note(this.hook, performance.now() - began);
    this.gliding = moving || this.target !== null;
    if (this.gliding) this.invalidate();
  }

  private paint(dirty: Dirty): void {
    const { scene, theme } = this;
    if (dirty === Dirty.All) {
      this.prepare();
      this.ask();
      this.store.nextFrame();
      this.backdrop.draw(this.scaled("back"), scene, theme);
      drawCounters(this.contexts.back, scene, this.timeline.tracks, theme);
      this.renderer.draw(scene);
      this.backdrop.axis(this.scaled("axis"), scene, theme, AXIS_HEIGHT);
      const base = axisBase(scene);
      if (base !== this.lastBase) this.listener.base((this.lastBase = base));
      this.listener.frame(this.scroll);
      if (!this.hook.ready && this.store.complete()) {
        this.hook.ready = true;
        this.keepOverview();
        this.fetchGaps();
      }
    }
    if (dirty === Dirty.All) this.fillLanes();
    if (this.minimap) this.minimap.draw(this.overview(), theme, scene.width, MINIMAP_HEIGHT, scene.ratio);
    this.drawFront();
  }

  private prepare(): void {
    const { scene } = this;
    scene.window = this.window;
    scene.layout = this.layout;
    scene.scroll = this.scroll;
    scene.mode = this.mode;
    scene.dim = this.search.active && this.search.total > 0;
    scene.level = levelFor((this.window.end - this.window.start) / (scene.width * scene.ratio));
    const { first, last } = tilesOf(this.window, scene.level, this.bounds);
    scene.first = first;
    scene.last = last;
    this.visibleSlots(scene.slots);
    if (this.search.active) markHits(scene, this.search);
  }

  private visibleSlots(out: number[]): void {
    const { slots, pinnedHeight } = this.layout;
    out.length = 0;
    for (let slot = 0; slot * 4 < slots.length; slot += 1) {
      const place = slots[slot * 4 + 3] as number;
      if (place < 0 || slot >= this.timeline.tracks.length) continue;
      const y = (slots[slot * 4] as number) - (place === 1 ? 0 : this.scroll - pinnedHeight);
      const end = y + (slots[slot * 4 + 1] as number) * (slots[slot * 4 + 2] as number);
      if (y < this.scene.height && end > (place === 1 ? 0 : pinnedHeight)) out.push(slot);
    }
  }

  /** Requests missing tiles, at a limited rate while the view moves. */
  private ask(): void {
    const wait = this.lastAsk + ASK_EVERY - performance.now();
    clearTimeout(this.askTimer);
    this.askTimer = 0;
    if (wait > 0) {
      this.askTimer = setTimeout(() => this.askNow(), wait) as unknown as number;
      // Pending tiles of an older view must not count as complete.
      this.store.look(this.wish());
      return;
    }
    this.askNow();
  }

  private askNow(): void {
    if (this.closed) return;
    this.lastAsk = performance.now();
    const { level } = this.scene;
    this.store.want(this.wish(), tilesOf(this.bounds, level, this.bounds).last);
  }

  private wish() {
    const { level, first, last, slots } = this.scene;
    return { level, first, last, slots: [...slots] };
  }

  /** The whole trace in all tracks, kept permanently, so that there is always something to draw. */
  private keepOverview(): void {
    const level = levelFor((this.bounds.end - this.bounds.start) / (this.scene.width * this.scene.ratio));
    this.store.keepLevel(level);
    this.keptLevel = level;
    const { first, last } = tilesOf(this.bounds, level, this.bounds);
    const slots = this.timeline.tracks.map((_, slot) => slot);
    for (let tile = first; tile <= last; tile += 1) this.store.fetchAlso(level, tile, slots);
  }

  /** Idle times of devices; after the first picture, because this is an analysis, not a slice of the trace. */
  private fetchGaps(): void {
    if (!this.timeline.processes.some((process) => process.kind === "device")) return;
    this.source.gaps().then((gaps) => {
      this.backdrop.gaps = gapsByProcess(this.timeline, gaps, this.categories);
      this.invalidate();
    }, () => undefined); // The tracks show them too, and the page of devices tells what went wrong.
  }

  /** The minimap's lanes, as soon as the required tiles are loaded. */
  private fillLanes(): void {
    const { minimap, bounds } = this;
    if (!minimap || this.laned || this.keptLevel < 0) return;
    const { tracks } = this.timeline;
    const devices = deviceSlots(this.timeline);
    const counter = tracks.findIndex((track) => track.kind === "counter");
    const busiest = tracks.reduce((best, track, slot) => (track.busy_ns > (tracks[best]?.busy_ns ?? 0) ? slot : best), 0);
    const bare = minimap.bare ? (counter >= 0 ? counter : busiest) : null;
    const wanted = [...devices.flat(), ...(bare === null ? [] : [bare])];
    if (wanted.some((slot) => !this.keptParts(slot))) return;
    const parts = (slots: readonly number[]) => slots.flatMap((slot) => this.keptParts(slot) ?? []);
    const quiet = quietCategories(this.categories);
    const lanes = devices.map((slots) => busyShares(parts(slots), bounds, LANE_COLUMNS, quiet));
    const other = bare === null ? null
      : bare === counter ? counterShares(parts([bare]), bounds, LANE_COLUMNS, tracks[bare]?.max ?? 1)
      : busyShares(parts([bare]), bounds, LANE_COLUMNS);
    minimap.setLanes(lanes.length > MOST_LANES ? [average(lanes)] : lanes, other);
    this.laned = true;
    this.listener.lanes(bare === null ? (lanes.length === 0 ? "" : lanes.length === 1 ? "device" : "devices") : (tracks[bare]?.name ?? ""));
  }

  /** A track's parts of the whole trace, or null while some are loading. */
  private keptParts(slot: number): Part[] | null {
    const { first, last } = tilesOf(this.bounds, this.keptLevel, this.bounds);
    const parts: Part[] = [];
    for (let tile = first; tile <= last; tile += 1) {
      const part = this.store.part(this.keptLevel, tile, slot);
      if (!part) return null;
      parts.push(part);
    }
    return parts;
  }

  private scaled(which: "back" | "front" | "axis"): CanvasRenderingContext2D {
    const context = this.contexts[which];
    context.setTransform(this.scene.ratio, 0, 0, this.scene.ratio, 0, 0);
    return context;
  }

  private drawFront(): void {
    const { scene, theme, layout } = this;
    const context = this.scaled("front");
    context.clearRect(0, 0, scene.width, scene.height);
    const before = this.hover;
    this.hover = this.pointer ? this.at(this.pointer.x, this.pointer.y) : null;
    if (before !== this.hover) this.listener.hover(this.hover);
    for (const mark of this.marks) drawMark(context, scene, mark, theme, false);
    const top = this.area ? drawArea(context, scene, this.timeline, this.area, this.slotOf, theme) : 0;
    this.region(context, 0, layout.pinnedHeight, 1);
    this.region(context, layout.pinnedHeight, scene.height, 0);
    // Above the labels: they are dimmed with their spans.
    if (this.place) drawMark(context, scene, this.place, theme, true);
    if (this.selected) drawFlows(context, scene, this.timeline, this.slotOf, this.selected, theme);
    if (this.place) markCaption(context, scene, this.place, theme, 0);
    this.marks.forEach((mark, lane) => markCaption(context, scene, mark, theme, lane + (this.place ? 1 : 0)));
    drawDistances(context, scene, this.marks, theme);
    if (this.area) areaCaption(context, scene, this.area, theme, top);
    if (this.pointer) {
      context.fillStyle = theme.soft;
      context.globalAlpha = 0.5;
      context.fillRect(Math.round(this.pointer.x), 0, 1, scene.height);
      context.globalAlpha = 1;
    }
  }

  /** Labels and outlines of the pinned or of the scrolling part. */
  private region(context: CanvasRenderingContext2D, top: number, bottom: number, place: 0 | 1): void {
    if (bottom <= top) return;
    const { scene, theme } = this;
    context.save();
    context.beginPath();
    context.rect(0, top, scene.width, bottom - top);
    context.clip();
    const spans = this.writer.draw(context, scene, theme, place, top, bottom);
    if (place === 0) this.hook.spans = spans;
    const at = (slot: number) => (this.layout.slots[slot * 4 + 3] ?? -1) === place;
    const { selected, hover } = this;
    if (hover && hover.count > 0 && at(hover.slot)) drawOutline(context, scene, this.timeline, hover, theme.soft, false);
    const slot = selected && this.slotOf.get(selected.track);
    if (selected && slot !== null && slot !== undefined && at(slot)) {
      const outline = { slot, row: selected.row, start: selected.start_ns, end: selected.start_ns + selected.dur_ns };
      drawOutline(context, scene, this.timeline, outline, theme.ink, true);
    }
    context.restore();
  }

  /** x of a moment on the plot, in CSS pixels. */
  xOf(ns: number): number {
    return xAt(this.window, ns, this.scene.width);
  }
}

function pen(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("This browser has no 2D canvas.");
  return context;
}
