/** Draws curves on a canvas. Knows nothing of the page: lines, scales and colours in, pixels out. */
import type { Line } from "./frame";
import { figure, logTicks, place, share, ticks, xs, type Axis, type Scale } from "./scale";

/** Room around the curves, in pixels. */
export const EDGE = { left: 58, right: 10, top: 10, bottom: 24 };

export interface Look {
  ink: string;
  muted: string;
  line: string;
  accent: string;
  surface: string;
  color: (run: number) => string;
}

export interface Plot {
  width: number;
  height: number;
  axis: Axis;
  x: Scale;
  y: Scale;
  lines: readonly Line[];
  /** Is the smoothed line shown, with the raw one behind it? */
  smooth: boolean;
}

export const toX = (plot: Plot, value: number): number =>
  EDGE.left + share(plot.x, value) * (plot.width - EDGE.left - EDGE.right);
export const toY = (plot: Plot, value: number): number =>
  plot.height - EDGE.bottom - share(plot.y, value) * (plot.height - EDGE.top - EDGE.bottom);

/** The value at a pixel of the x-axis. */
export function fromX(plot: Plot, pixel: number): number {
  const part = (pixel - EDGE.left) / (plot.width - EDGE.left - EDGE.right);
  return plot.x.from + part * (plot.x.to - plot.x.from);
}

export interface Mark {
  x: number;
  color: string;
}

/** Draws axes, marks and lines. */
export function draw(canvas: HTMLCanvasElement, plot: Plot, look: Look, marks: readonly Mark[]): void {
  const context = prepare(canvas, plot);
  if (!context) return;
  axes(context, plot, look);
  context.save();
  context.beginPath();
  context.rect(EDGE.left, 0, plot.width - EDGE.left - EDGE.right, plot.height - EDGE.bottom);
  context.clip();
  for (const mark of marks) flag(context, plot, mark);
  context.lineJoin = "round";
  if (plot.smooth) {
    context.globalAlpha = plot.lines.length > 20 ? 0.12 : 0.28;
    for (const line of plot.lines) stroke(context, plot, line, line.values, look.color(line.run), 1);
    context.globalAlpha = 1;
  }
  const width = plot.lines.length > 40 ? 1 : 1.6;
  for (const line of plot.lines)
    stroke(context, plot, line, plot.smooth ? line.smoothed : line.values, look.color(line.run), width);
  for (const line of plot.lines) odd(context, plot, line, look.color(line.run));
  context.restore();
}

function prepare(canvas: HTMLCanvasElement, plot: { width: number; height: number }): CanvasRenderingContext2D | null {
  const dense = devicePixelRatio || 1;
  const [width, height] = [Math.round(plot.width * dense), Math.round(plot.height * dense)];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  context?.setTransform(dense, 0, 0, dense, 0, 0);
  context?.clearRect(0, 0, plot.width, plot.height);
  return context;
}

function axes(context: CanvasRenderingContext2D, plot: Plot, look: Look): void {
  context.font = "11px system-ui, sans-serif";
  context.strokeStyle = look.line;
  context.fillStyle = look.muted;
  context.lineWidth = 1;
  const bottom = plot.height - EDGE.bottom;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of plot.y.log ? logTicks(plot.y.from, plot.y.to) : ticks(plot.y.from, plot.y.to, 5)) {
    const y = Math.round(toY(plot, value)) + 0.5;
    if (y < EDGE.top - 2 || y > bottom + 2) continue;
    rule(context, EDGE.left, y, plot.width - EDGE.right, y);
    context.fillText(figure(value), EDGE.left - 6, y);
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const value of ticks(
    plot.x.from,
    plot.x.to,
    Math.max(2, Math.floor(plot.width / 110)),
    plot.axis === "step" ? 1 : 0,
  )) {
    const x = Math.round(toX(plot, value)) + 0.5;
    rule(context, x, EDGE.top, x, bottom);
    context.fillText(place(value, plot.axis), x, bottom + 6);
  }
}

function rule(context: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

function stroke(
  context: CanvasRenderingContext2D,
  plot: Plot,
  line: Line,
  values: Float64Array,
  color: string,
  width: number,
): void {
  const places = xs(line, plot.axis);
  context.strokeStyle = color;
  context.lineWidth = width;
  context.beginPath();
  let open = false;
  let drawn = 0;
  for (let at = 0; at < values.length; at++) {
    const value = values[at] ?? NaN;
    // What is not finite interrupts the line.
    if (!Number.isFinite(value) || (plot.y.log && value <= 0)) {
      open = false;
      continue;
    }
    const [x, y] = [toX(plot, places[at] ?? 0), toY(plot, value)];
    if (open) context.lineTo(x, y);
    else context.moveTo(x, y);
    open = true;
    drawn++;
  }
  context.stroke();
  if (drawn === 1 || values.length <= 2) dots(context, plot, places, values, color);
}

function dots(
  context: CanvasRenderingContext2D,
  plot: Plot,
  places: Float64Array,
  values: Float64Array,
  color: string,
): void {
  context.fillStyle = color;
  values.forEach((value, at) => {
    if (!Number.isFinite(value)) return;
    context.beginPath();
    context.arc(toX(plot, places[at] ?? 0), toY(plot, value), 2.5, 0, 7);
    context.fill();
  });
}

/** A triangle at the upper edge for each value that is not finite. */
function odd(context: CanvasRenderingContext2D, plot: Plot, line: Line, color: string): void {
  const places = xs(line, plot.axis);
  context.fillStyle = color;
  let last = -Infinity;
  for (let at = 0; at < line.values.length; at++) {
    if (Number.isFinite(line.values[at] ?? NaN)) continue;
    const x = toX(plot, places[at] ?? 0);
    if (x - last < 5) continue;
    last = x;
    context.beginPath();
    context.moveTo(x - 4, EDGE.top);
    context.lineTo(x + 4, EDGE.top);
    context.lineTo(x, EDGE.top + 7);
    context.fill();
  }
}

/** A dashed line with a flag, where a profile was recorded. */
function flag(context: CanvasRenderingContext2D, plot: Plot, mark: Mark): void {
  const x = Math.round(toX(plot, mark.x)) + 0.5;
  context.strokeStyle = context.fillStyle = mark.color;
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  rule(context, x, 0, x, plot.height - EDGE.bottom);
  context.setLineDash([]);
  context.fillRect(x, 0, 9, 7);
}

export interface Cursor {
  /** Where on the x-axis; null for none. */
  x: number | null;
  range: [number, number] | null;
  points: { x: number; y: number; color: string }[];
}

/** Draws what follows the pointer, on a canvas of its own: the curves below stay as they are. */
export function drawCursor(canvas: HTMLCanvasElement, plot: Plot, look: Look, cursor: Cursor): void {
  const context = prepare(canvas, plot);
  if (!context) return;
  const bottom = plot.height - EDGE.bottom;
  if (cursor.range) {
    const clamp = (x: number) => Math.min(plot.width - EDGE.right, Math.max(EDGE.left, toX(plot, x)));
    const [from, to] = [clamp(cursor.range[0]), clamp(cursor.range[1])];
    context.globalAlpha = 0.14;
    context.fillStyle = look.accent;
    context.fillRect(from, EDGE.top, to - from, bottom - EDGE.top);
    context.globalAlpha = 1;
  }
  if (cursor.x === null) return;
  const x = Math.round(toX(plot, cursor.x)) + 0.5;
  if (x < EDGE.left || x > plot.width - EDGE.right) return;
  context.strokeStyle = look.muted;
  context.lineWidth = 1;
  rule(context, x, EDGE.top, x, bottom);
  for (const point of cursor.points) {
    context.fillStyle = point.color;
    context.strokeStyle = look.surface;
    context.beginPath();
    context.arc(toX(plot, point.x), toY(plot, point.y), 3.5, 0, 7);
    context.fill();
    context.stroke();
  }
}
