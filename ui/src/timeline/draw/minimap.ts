/** The whole trace at a glance: what ran when, by category; how busy each device was below that; the window with handles to drag; hits of a search; marks. */
import { parseHex, toCss } from "./colors";
import type { Theme } from "./theme";
import type { Category, Overview, Span } from "../model/types";

const HANDLE = 6;
/** A device's lane, and the line above it. */
const LANE = 5;
const LANE_GAP = 1;

export interface MinimapState {
  bounds: Span;
  window: Span;
  marks: readonly Span[];
  place: Span | null;
  selected: Span | null;
  /** Counts over the session, empty without a search. */
  density: readonly number[];
}

export class Minimap {
  private picture: HTMLCanvasElement | null = null;
  private pictureOf = "";
  private overview: Overview | null = null;
  private lanes: readonly Float32Array[] = [];
  /** Drawn where nothing in the trace has a category: a counter, or a track. */
  private other: Float32Array | null = null;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly categories: readonly Category[],
  ) {}

  setOverview(overview: Overview): void {
    this.overview = overview;
    this.pictureOf = "";
  }

  /** True when nothing that ran has a category. */
  get bare(): boolean {
    const shares = Object.entries(this.overview?.categories ?? {});
    return (
      this.overview !== null &&
      !shares.some(([key, values]) => key !== "idle" && key !== "unknown" && values.some((share) => share > 0))
    );
  }

  /** Shares of equal columns over the whole trace: of each device, and of whatever stands for a trace without categories. */
  setLanes(lanes: readonly Float32Array[], other: Float32Array | null): void {
    this.lanes = lanes;
    this.other = other;
    this.pictureOf = "";
  }

  draw(state: MinimapState, theme: Theme, width: number, height: number, ratio: number): void {
    const { canvas } = this;
    const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
    }
    const context = canvas.getContext("2d");
    if (!context) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.back;
    context.fillRect(0, 0, width, height);
    const below = this.lanes.length * (LANE + LANE_GAP);
    const room = height - 1 - below;
    const picture = this.stacked(w, Math.round(room * ratio), theme, state.bounds);
    if (picture) {
      context.globalAlpha = 0.85;
      context.drawImage(picture, 0, 0, width, room);
      context.globalAlpha = 1;
    }
    if (this.other && this.bare) columns(context, this.other, width, room, theme.counter);
    this.drawLanes(context, theme, width, room);
    this.hits(context, state.density, theme, width, height);
    const x = (t: number) => ((t - state.bounds.start) / (state.bounds.end - state.bounds.start)) * width;
    for (const mark of state.marks) bar(context, theme.mark, x(mark.start), x(mark.end), height, 0.5);
    if (state.place) bar(context, theme.mark, x(state.place.start), x(state.place.end), height, 0.3);
    if (state.selected) bar(context, theme.ink, x(state.selected.start), x(state.selected.end), height, 0.7);
    this.frame(context, theme, Math.max(0, x(state.window.start)), Math.min(width, x(state.window.end)), width, height);
    context.fillStyle = theme.line;
    context.fillRect(0, height - 1, width, 1);
  }

  /** Which part of the window is under the pointer. */
  part(state: MinimapState, px: number, width: number): "left" | "right" | "inside" | "outside" {
    const x = (t: number) => ((t - state.bounds.start) / (state.bounds.end - state.bounds.start)) * width;
    const [left, right] = [x(state.window.start), x(state.window.end)];
    if (Math.abs(px - left) <= HANDLE && px < (left + right) / 2 + 1) return "left";
    if (Math.abs(px - right) <= HANDLE) return "right";
    return px > left && px < right ? "inside" : "outside";
  }

  private drawLanes(context: CanvasRenderingContext2D, theme: Theme, width: number, top: number): void {
    this.lanes.forEach((lane, number) => {
      const y = top + number * (LANE + LANE_GAP);
      context.fillStyle = theme.head;
      context.fillRect(0, y, width, LANE + LANE_GAP);
      context.fillStyle = theme.ink;
      const step = width / lane.length;
      lane.forEach((share, column) => {
        if (share <= 0) return;
        // What is rare stays visible, what is idle stays empty.
        context.globalAlpha = 0.15 + 0.6 * share;
        const x = Math.floor(column * step);
        context.fillRect(x, y + LANE_GAP, Math.max(1, Math.floor((column + 1) * step) - x), LANE);
      });
      context.globalAlpha = 1;
    });
  }

  private frame(
    context: CanvasRenderingContext2D,
    theme: Theme,
    left: number,
    right: number,
    width: number,
    height: number,
  ): void {
    context.fillStyle = theme.back;
    context.globalAlpha = 0.62;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.globalAlpha = 1;
    context.fillStyle = theme.accent;
    context.fillRect(left, 0, Math.max(1, right - left), 2);
    for (const x of [left, right]) {
      context.fillRect(x - 0.75, 0, 1.5, height);
      context.beginPath();
      context.roundRect(x - 3, height / 2 - 8, 6, 16, 3);
      context.fill();
    }
  }

  private hits(
    context: CanvasRenderingContext2D,
    density: readonly number[],
    theme: Theme,
    width: number,
    height: number,
  ): void {
    if (density.length === 0) return;
    const most = Math.max(1, ...density);
    const step = width / density.length;
    context.fillStyle = theme.hit;
    density.forEach((n, i) => {
      if (n === 0) return;
      const tall = 4 + 8 * Math.sqrt(n / most);
      context.fillRect(i * step, height - tall, Math.max(1, step), tall);
    });
  }

  /** The stacked shares, drawn once for a size and a theme. */
  private stacked(width: number, height: number, theme: Theme, bounds: Span): HTMLCanvasElement | null {
    const { overview } = this;
    if (!overview) return null;
    const key = `${width}/${height}/${theme.back}/${bounds.start}/${bounds.end}`;
    if (this.pictureOf === key) return this.picture;
    const picture = this.picture ?? document.createElement("canvas");
    picture.width = width;
    picture.height = height;
    const context = picture.getContext("2d");
    if (!context) return null;
    const span = bounds.end - bounds.start || 1;
    const scale = (overview.end_ns - overview.start_ns) / span / overview.buckets;
    const shift = (overview.start_ns - bounds.start) / span;
    const base = new Float64Array(overview.buckets);
    for (const category of this.categories) {
      const shares = overview.categories[category.key];
      if (!shares || category.key === "idle") continue;
      context.fillStyle = toCss(parseHex(category.color));
      shares.forEach((share, i) => {
        const low = base[i] ?? 0;
        const high = Math.min(1, low + share);
        base[i] = high;
        // Whole pixels: halves of two neighbours would shine through as stripes.
        const x = Math.floor((shift + i * scale) * width);
        const next = Math.max(x + 1, Math.floor((shift + (i + 1) * scale) * width));
        if (high > low) context.fillRect(x, height * (1 - high), next - x, height * (high - low));
      });
    }
    this.picture = picture;
    this.pictureOf = key;
    return picture;
  }
}

/** Columns as high as their shares. */
function columns(
  context: CanvasRenderingContext2D,
  shares: Float32Array,
  width: number,
  height: number,
  color: string,
): void {
  const step = width / shares.length;
  context.fillStyle = color;
  context.globalAlpha = 0.8;
  shares.forEach((share, column) => {
    const x = Math.floor(column * step);
    const tall = share > 0 ? Math.max(1, share * (height - 4)) : 0;
    context.fillRect(x, height - tall, Math.max(1, Math.floor((column + 1) * step) - x), tall);
  });
  context.globalAlpha = 1;
}

function bar(
  context: CanvasRenderingContext2D,
  color: string,
  left: number,
  right: number,
  height: number,
  alpha: number,
): void {
  context.fillStyle = color;
  context.globalAlpha = alpha;
  context.fillRect(left, 0, Math.max(2, right - left), height);
  context.globalAlpha = 1;
}
