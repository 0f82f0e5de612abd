/** Draws distributions over steps: a column per step, a cell per bin, darker the more values it holds. */
import type { HeatMap } from "./types";
import { EDGE } from "./draw";
import { figure, place, ticks } from "./scale";

export interface HeatLook {
  color: string;
  line: string;
  muted: string;
}

/** The edges of each step's column, in pixels: halfway to its neighbours. */
export function edges(steps: readonly number[], width: number): number[] {
  const [first, last] = [steps[0] ?? 0, steps.at(-1) ?? 0];
  const inner = width - EDGE.left - EDGE.right;
  if (steps.length < 2 || last === first) return [EDGE.left, EDGE.left + inner];
  const gap = (last - first) / (steps.length - 1);
  const at = (step: number) => EDGE.left + ((step - first + gap / 2) / (last - first + gap)) * inner;
  const middles = steps.slice(1).map((step, index) => (step + (steps[index] ?? step)) / 2);
  return [at(first - gap / 2), ...middles.map(at), at(last + gap / 2)];
}

/** How dark a cell is, from 0 to 1: by its share of the fullest cell of its step, so that no step hides another. */
export function shades(row: readonly number[]): number[] {
  const most = Math.max(...row, 0);
  return row.map((count) => (most > 0 ? Math.sqrt(count / most) : 0));
}

export function drawHeat(
  canvas: HTMLCanvasElement,
  map: HeatMap,
  size: { width: number; height: number },
  look: HeatLook,
): void {
  const dense = devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(size.width * dense), Math.round(size.height * dense)];
  const context = canvas.getContext("2d");
  if (!context || map.low === null || map.high === null) return;
  context.setTransform(dense, 0, 0, dense, 0, 0);
  const bottom = size.height - EDGE.bottom;
  const columns = edges(map.steps, size.width);
  context.fillStyle = look.color;
  map.rows.forEach((row, number) => {
    const [from, to] = [columns[number] ?? 0, columns[number + 1] ?? 0];
    const cell = (bottom - EDGE.top) / row.length;
    shades(row).forEach((shade, bin) => {
      if (shade === 0) return;
      context.globalAlpha = shade;
      context.fillRect(from, bottom - (bin + 1) * cell, Math.max(1, to - from), cell + 0.5);
    });
  });
  context.globalAlpha = 1;
  scales(context, map, size, look);
}

function scales(
  context: CanvasRenderingContext2D,
  map: HeatMap,
  size: { width: number; height: number },
  look: HeatLook,
): void {
  const [low, high] = [map.low ?? 0, map.high ?? 1];
  const bottom = size.height - EDGE.bottom;
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = look.muted;
  context.strokeStyle = look.line;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of ticks(low, high, 5)) {
    const y = bottom - ((value - low) / (high - low)) * (bottom - EDGE.top);
    context.fillText(figure(value), EDGE.left - 6, y);
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  const columns = edges(map.steps, size.width);
  let free = EDGE.left;
  map.steps.forEach((step, number) => {
    const x = ((columns[number] ?? 0) + (columns[number + 1] ?? 0)) / 2;
    const text = place(step, "step");
    const half = context.measureText(text).width / 2;
    if (x - half < free || x + half > size.width) return;
    context.fillText(text, x, bottom + 6);
    free = x + half + 40;
  });
  context.strokeRect(EDGE.left + 0.5, EDGE.top + 0.5, size.width - EDGE.left - EDGE.right - 1, bottom - EDGE.top - 1);
}

/** The step and the bin under a pixel; null outside. */
export function underPointer(
  map: HeatMap,
  size: { width: number; height: number },
  x: number,
  y: number,
): { step: number; from: number; to: number; count: number } | null {
  const bottom = size.height - EDGE.bottom;
  const columns = edges(map.steps, size.width);
  const number = columns.findIndex((edge, index) => x >= edge && x < (columns[index + 1] ?? -Infinity));
  const row = map.rows[number];
  if (!row || map.low === null || map.high === null || y < EDGE.top || y >= bottom) return null;
  // The topmost pixel belongs to the highest bin.
  const bin = Math.min(row.length - 1, Math.floor(((bottom - y) / (bottom - EDGE.top)) * row.length));
  const width = (map.high - map.low) / row.length;
  return {
    step: map.steps[number] ?? 0,
    from: map.low + bin * width,
    to: map.low + (bin + 1) * width,
    count: row[bin] ?? 0,
  };
}
