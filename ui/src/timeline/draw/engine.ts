/**
 * The timeline itself, without any framework: holds the state, draws a frame when something changed, and notifies the
 * page around it. All hot code is here and in what it calls; nothing in here waits for the network.
 */
import { axisBase, Backdrop } from "./backdrop";
import { type RunsBySlot, runAt, runsBySlot } from "./collectives";
import { type ColorMode, hueOf, palette } from "./colors";
import { drawCounters } from "./counters";
import { Critical } from "./critical";
import { anchorShift, emptySlots, sameSlots } from "../model/empty";
import { Front } from "./front";
import { gapsByProcess } from "./gaps";
import { type Hook, note } from "./hook";
import { pen } from "./pen";
import { type Hover, hoverAt } from "./hover";
import { lanesOf } from "../model/lanes";
import { type Arrangement, arrange, emptyArrangement, type Layout } from "../model/layout";
import { Minimap, type MinimapState } from "./minimap";
import type { Source } from "../model/net";
import { pickRenderer, type Wanted } from "./renderer";
import { type Renderer, type Scene, visibleSlots } from "./scene";
import { markHits, Search } from "./search";
import type { Area } from "./selection";
import { TileStore } from "../model/store";
import type { Listener, Surfaces } from "./surfaces";
import { readTheme, type Theme } from "./theme";
import type { Part } from "../model/tiles";
import type { Category, EventDetails, Evidence, Span, Timeline } from "../model/types";
import { approach, clamp, levelFor, opening, pan, spanOf, tilesOf, timeAt, xAt, zoom } from "../model/view";

export const AXIS_HEIGHT = 36;
export const MINIMAP_HEIGHT = 44;
const CACHE_BYTES = 192 * 1024 * 1024;
/** Minimum time between two checks for missing tiles while the view moves, in ms. */
const ASK_EVERY = 60;
/** How long the view must rest before empty tracks are folded away, in ms: rows must not jump under a moving hand. */
const REST = 250;

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
  readonly critical: Critical;
  window: Span;
  layout: Layout;
  arrangement: Arrangement = emptyArrangement();
  mode: ColorMode = "category";
  selected: EventDetails | null = null;
  area: Area | null = null;
  marks: Span[] = [];
  place: Evidence | null = null;
  hover: Hover | null = null;
  theme: Theme;
  /** What several ranks did together. */
  collectives: RunsBySlot = new Map();
  scroll = 0;
  /** Called every frame while it returns true: held keys. */
  motion: (dt: number) => boolean = () => false;
  readonly hook: Hook;

  private renderer: Renderer;
  private readonly store: TileStore;
  private readonly backdrop: Backdrop;
  private readonly minimap: Minimap | null;
  private readonly front: Front;
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
  private restTimer = 0;
  /** Tracks that are folded away because nothing of them is in view. */
  private hidden: ReadonlySet<number> = new Set();
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
    this.critical = new Critical(timeline, source, (paths) => {
      listener.critical(paths);
      this.invalidate(true);
    });
    this.theme = readTheme(surfaces.root);
    this.layout = arrange(timeline, this.arrangement);
    this.backdrop = new Backdrop(timeline);
    this.contexts = { back: pen(surfaces.back), front: pen(surfaces.front), axis: pen(surfaces.axis) };
    this.front = new Front(this.contexts.front, timeline, this.slotOf);
    this.minimap = surfaces.minimap ? new Minimap(surfaces.minimap, categories) : null;
    this.renderer = pickRenderer(surfaces.spans, wanted, () => {
      this.hook.renderer = this.renderer.kind;
      this.invalidate();
    });
    this.store = new TileStore({
      maxBytes: CACHE_BYTES,
      maxRequests: 4,
      trackIds: timeline.tracks.map((t) => t.id),
      hueOf,
      fetch: (level, tile, tracks, signal) => source.tile(level, tile, tracks, signal),
      onTile: () => this.invalidate(),
      onError: (error) => listener.problem(error),
      onForget: (chunk) => this.renderer.forget(chunk),
    });
    this.scene = {
      width: 0,
      height: 0,
      ratio: 1,
      window: this.window,
      level: 0,
      first: 0,
      last: -1,
      layout: this.layout,
      scroll: 0,
      slots: [],
      store: this.store,
      palette: palette(this.mode, categories, this.theme.dark),
      mode: this.mode,
      dim: false,
    };
    this.hook = {
      ready: false,
      renderer: this.renderer.kind,
      frames: [],
      tileTimes: this.store.times,
      spans: 0,
      complete: () => this.complete(),
      view: () => this.window,
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
    clearTimeout(this.restTimer);
    this.critical.close();
    this.store.close();
    this.renderer.dispose();
  }

  // ---- changes ----

  resize(width: number, height: number): void {
    const { scene } = this;
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    if (scene.width === width && scene.height === height && scene.ratio === ratio) return;
    [scene.width, scene.height, scene.ratio] = [width, height, ratio];
    for (const [canvas, h] of [
      [this.surfaces.back, height],
      [this.surfaces.front, height],
      [this.surfaces.axis, AXIS_HEIGHT],
    ] as const) {
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
    if (!arrangement.hideEmpty) this.hidden = new Set();
    this.relayout();
  }

  private relayout(): void {
    this.layout = arrange(this.timeline, this.arrangement, this.hidden);
    this.listener.layout(this.layout);
    this.invalidate();
  }

  /** Number of tracks that are folded away because they are empty. */
  get hiddenTracks(): number {
    return this.hidden.size;
  }

  /** Shows a track that was folded away as empty: something on it was chosen. */
  unhide(slot: number): void {
    if (!this.hidden.has(slot)) return;
    this.hidden = new Set([...this.hidden].filter((other) => other !== slot));
    this.relayout();
  }

  /** Folds empty tracks away, once the view rests and everything in it is loaded. */
  private foldEmpty(): void {
    if (this.closed || !this.arrangement.hideEmpty || this.keptLevel < 0 || !this.complete()) return;
    const { level, first, last } = this.scene;
    const hidden = emptySlots(
      this.timeline,
      this.window,
      (slot) => this.parts(level, first, last, slot) ?? this.keptParts(slot),
    );
    if (sameSlots(hidden, this.hidden)) return;
    this.hidden = hidden;
    const before = this.layout;
    this.relayout();
    this.listener.scrolled(anchorShift(before, this.layout, this.scroll));
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
    const hover = hoverAt(this.scene, this.timeline, x, y, this.backdrop.gaps);
    const run = hover?.count === 1 ? runAt(this.collectives, hover.slot, hover.row, this.timeAt(x)) : undefined;
    return hover && run ? { ...hover, run } : hover;
  }

  timeAt(x: number): number {
    return timeAt(this.window, x, this.scene.width);
  }

  /** The minimap's state, for drawing and for dragging on it. */
  overview(): MinimapState {
    const { selected } = this;
    return {
      bounds: this.bounds,
      window: this.window,
      marks: this.marks,
      place: this.place,
      density: this.search.density,
      selected: selected && spanOf(selected),
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
      this.critical.look(this.goal);
      if (!this.hook.ready && this.store.complete()) {
        this.hook.ready = true;
        this.keepOverview();
        this.fetchAnalyses();
      }
      this.fillLanes();
      clearTimeout(this.restTimer);
      if (this.arrangement.hideEmpty) this.restTimer = setTimeout(() => this.foldEmpty(), REST) as unknown as number;
    }
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
    visibleSlots(scene, this.timeline.tracks.length);
    if (this.search.active) markHits(scene, this.search);
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

  /** Idle times of devices and collectives of ranks; after the first picture, because these are analyses, not slices of the trace. */
  private fetchAnalyses(): void {
    const devices = this.timeline.processes.filter((process) => process.kind === "device").length;
    // The tracks show both as well, and the Devices page says what went wrong.
    const fetched = <T>(answer: Promise<T>, use: (got: T) => void) =>
      answer.then(use).then(
        () => this.invalidate(),
        () => undefined,
      );
    if (devices > 0)
      void fetched(
        this.source.gaps(),
        (gaps) => (this.backdrop.gaps = gapsByProcess(this.timeline, gaps, this.categories)),
      );
    // Without devices, processes and replicas may be ranks.
    if (devices !== 1)
      void fetched(this.source.collectives(), (runs) => (this.collectives = runsBySlot(runs, this.slotOf)));
  }

  /** The minimap's lanes, as soon as the required tiles are loaded. */
  private fillLanes(): void {
    const { minimap } = this;
    if (!minimap || this.laned || this.keptLevel < 0) return;
    const found = lanesOf(this.timeline, this.categories, this.bounds, minimap.bare, (slot) => this.keptParts(slot));
    if (!found) return;
    minimap.setLanes(found.lanes, found.other);
    this.laned = true;
    this.listener.lanes(found.caption);
  }

  /** A track's parts of the whole trace, or null while some are loading. */
  private keptParts(slot: number): Part[] | null {
    const { first, last } = tilesOf(this.bounds, this.keptLevel, this.bounds);
    return this.parts(this.keptLevel, first, last, slot);
  }

  /** A track's parts in some tiles, or null while one of them is missing. */
  private parts(level: number, first: number, last: number, slot: number): Part[] | null {
    const parts: Part[] = [];
    for (let tile = first; tile <= last; tile += 1) {
      const part = this.store.part(level, tile, slot);
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
    const before = this.hover;
    this.hover = this.pointer ? this.at(this.pointer.x, this.pointer.y) : null;
    if (before !== this.hover) this.listener.hover(this.hover);
    this.scaled("front");
    this.hook.spans = this.front.draw(this.scene, this.theme, this, this.pointer);
  }

  /** x of a moment on the plot, in CSS pixels. */
  xOf(ns: number): number {
    return xAt(this.window, ns, this.scene.width);
  }
}
