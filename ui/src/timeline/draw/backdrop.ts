/** The background: step bands, grid lines, headings and the lines between tracks; and the axis above them. */
import { axisText, moment, tickLabel, ticks, tickStep, type AxisText } from "../model/axis";
import { drawGaps, type Gap } from "./gaps";
import type { Scene } from "./scene";
import type { Theme } from "./theme";
import type { Span, Step, Timeline } from "../model/types";
import { xAt } from "../model/view";

const TICK_PX = 110;
const times = new Float64Array(256);

export class Backdrop {
  private readonly steps = new Map<number, Step[]>();
  private hatch: CanvasPattern | null = null;
  private hatchOf = "";
  /** Gaps of devices, by process. */
  gaps: ReadonlyMap<number, readonly Gap[]> = new Map();

  constructor(timeline: Timeline) {
    for (const step of timeline.steps) {
      const list = this.steps.get(step.host);
      if (list) list.push(step);
      else this.steps.set(step.host, [step]);
    }
    for (const list of this.steps.values()) list.sort((a, b) => a.start_ns - b.start_ns);
  }

  draw(context: CanvasRenderingContext2D, scene: Scene, theme: Theme): void {
    const { width, height, layout, scroll } = scene;
    context.fillStyle = theme.back;
    context.fillRect(0, 0, width, height);
    for (const band of layout.hosts) {
      const top = Math.max(layout.pinnedHeight, band.y - scroll + layout.pinnedHeight);
      this.bands(context, scene, theme, band.host, top, Math.min(height, band.end - scroll + layout.pinnedHeight));
    }
    if (layout.pinnedHeight > 0 && layout.hosts[0])
      this.bands(context, scene, theme, layout.hosts[0].host, 0, layout.pinnedHeight);
    this.grid(context, scene, theme);
    this.lines(context, scene, theme);
  }

  /** The steps of a host that overlap a window, as a range of its list. */
  private visible(host: number, window: Span): { list: Step[]; from: number; to: number } {
    const list = this.steps.get(host) ?? [];
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((list[middle] as Step).end_ns < window.start) low = middle + 1;
      else high = middle;
    }
    let to = low;
    while (to < list.length && (list[to] as Step).start_ns <= window.end) to += 1;
    return { list, from: low, to };
  }

  private bands(
    context: CanvasRenderingContext2D,
    scene: Scene,
    theme: Theme,
    host: number,
    top: number,
    bottom: number,
  ): void {
    if (bottom <= top) return;
    const { list, from, to } = this.visible(host, scene.window);
    // More than one band per three pixels would be a grey blur.
    if (to - from > scene.width / 3) return;
    for (let i = from; i < to; i += 1) {
      const step = list[i] as Step;
      const left = Math.round(Math.max(-2, xAt(scene.window, step.start_ns, scene.width)));
      const right = Math.round(Math.min(scene.width + 2, xAt(scene.window, step.end_ns, scene.width)));
      if (i % 2 === 0) {
        context.fillStyle = theme.band;
        context.fillRect(left, top, Math.max(1, right - left), bottom - top);
      }
      if (!step.counted) {
        context.fillStyle = this.hatching(context, theme);
        context.fillRect(left, top, Math.max(1, right - left), bottom - top);
      }
    }
  }

  private hatching(context: CanvasRenderingContext2D, theme: Theme): CanvasPattern | string {
    if (this.hatch && this.hatchOf === theme.hatch) return this.hatch;
    const cell = document.createElement("canvas");
    cell.width = cell.height = 8;
    const pen = cell.getContext("2d");
    if (!pen) return theme.band;
    pen.strokeStyle = theme.hatch;
    pen.beginPath();
    for (const shift of [-4, 0, 4, 8]) {
      pen.moveTo(shift, 8);
      pen.lineTo(shift + 8, 0);
    }
    pen.stroke();
    this.hatch = context.createPattern(cell, "repeat");
    this.hatchOf = theme.hatch;
    return this.hatch ?? theme.band;
  }

  private grid(context: CanvasRenderingContext2D, scene: Scene, theme: Theme): void {
    const n = ticks(scene.window, stepOf(scene), times);
    context.fillStyle = theme.line;
    context.globalAlpha = 0.6;
    for (let i = 0; i < n; i += 1)
      context.fillRect(Math.round(xAt(scene.window, times[i] as number, scene.width)), 0, 1, scene.height);
    context.globalAlpha = 1;
  }

  private lines(context: CanvasRenderingContext2D, scene: Scene, theme: Theme): void {
    const { layout, width, height, scroll } = scene;
    for (const item of layout.items) {
      const y = item.pinned ? item.y : item.y - scroll + layout.pinnedHeight;
      if (y > height || y + item.height < (item.pinned ? 0 : layout.pinnedHeight)) continue;
      const top = Math.max(y, item.pinned ? 0 : layout.pinnedHeight);
      if (item.kind !== "track") {
        context.fillStyle = theme.head;
        context.fillRect(0, top, width, y + item.height - top);
        // A folded process shows its tracks there.
        const gaps = item.kind === "process" && !item.folded ? this.gaps.get(item.id) : undefined;
        if (gaps) drawGaps(context, scene, theme, gaps, y, y + item.height, this.hatching(context, theme));
      }
      context.fillStyle = theme.line;
      context.fillRect(0, Math.round(y + item.height) - 1, width, 1);
    }
    if (layout.pinnedHeight > 0) {
      context.fillStyle = theme.accent;
      context.fillRect(0, layout.pinnedHeight - 1, width, 2);
    }
  }

  /** The axis: ticks above, steps of the first visible host below. */
  axis(context: CanvasRenderingContext2D, scene: Scene, theme: Theme, height: number): void {
    const { width, window } = scene;
    context.fillStyle = theme.head;
    context.fillRect(0, 0, width, height);
    const text = textOf(scene);
    const n = ticks(window, text.step, times);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (let i = 0; i < n; i += 1) {
      const x = Math.round(xAt(window, times[i] as number, width));
      context.fillStyle = theme.line;
      context.fillRect(x, 0, 1, height);
      context.fillStyle = theme.soft;
      const label = tickLabel(times[i] as number, text);
      // Half a number at the right edge would be a wrong number.
      if (x + 4 + context.measureText(label).width <= width) context.fillText(label, x + 4, 9);
    }
    this.stepNames(context, scene, theme, 17, height - 18);
    context.fillStyle = theme.line;
    context.fillRect(0, height - 1, width, 1);
  }

  private stepNames(context: CanvasRenderingContext2D, scene: Scene, theme: Theme, top: number, height: number): void {
    const host = scene.layout.hosts.find((band) => band.end > scene.scroll)?.host ?? 0;
    const { list, from, to } = this.visible(host, scene.window);
    if (to - from > scene.width / 3) return;
    let free = -1e9;
    for (let i = from; i < to; i += 1) {
      const step = list[i] as Step;
      const left = Math.max(0, xAt(scene.window, step.start_ns, scene.width));
      const right = Math.min(scene.width, xAt(scene.window, step.end_ns, scene.width));
      context.fillStyle = theme.accent;
      context.globalAlpha = step.counted ? 0.22 : 0.08;
      context.fillRect(Math.round(left), top, Math.max(1, Math.round(right) - Math.round(left) - 1), height);
      context.globalAlpha = 1;
      const room = right - left;
      const name = room > 90 ? `step ${step.index}${step.counted ? "" : " (not counted)"}` : String(step.index);
      const wide = name.length * 6.2 + 8;
      if (left < free || (room < wide && to - from < 60 && room < 14)) continue;
      if (room < wide && (i - from) % Math.max(1, Math.ceil(wide / Math.max(1, room))) !== 0) continue;
      context.fillStyle = step.counted ? theme.ink : theme.soft;
      context.fillText(name, left + 4, top + height / 2 + 0.5);
      free = left + wide;
    }
  }
}

function stepOf(scene: Scene): number {
  return tickStep(((scene.window.end - scene.window.start) / Math.max(1, scene.width)) * TICK_PX);
}

function textOf(scene: Scene): AxisText {
  return axisText(scene.window, stepOf(scene));
}

/** The label at the left end of the axis: the base of the ticks. */
export function axisBase(scene: Scene): string {
  const text = textOf(scene);
  return text.base === 0 ? "" : moment(text.base);
}
