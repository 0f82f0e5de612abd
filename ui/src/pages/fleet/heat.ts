/** The map of hosts and steps: where each cell is, how it looks, and what it says. Pure but for the drawing. */
import { ms } from "../../words/format";
import type { FleetSteps } from "../../server/schema";

/** From this share on, a cell has the full colour. */
const FULL = 0.5;
/** Smaller differences are no more than the map's own rounding. */
const EVEN = 0.02;
/** Smaller differences look even: steps of healthy hosts differ by as much. */
const FAINT = 0.05;
/** The scale of the map ends here. */
const MOST = 2.9;
/** Space for the numbers of steps below the cells. */
const FOOT = 20;

export interface Layout {
  /** Space for the names of hosts. */
  left: number;
  cellWidth: number;
  cellHeight: number;
  width: number;
  height: number;
  columns: number;
  rows: number;
}

/** Sizes in pixels: columns share the width, but stay wide enough to point at; the map then scrolls sideways. */
export function layoutOf(map: FleetSteps, available: number): Layout {
  const [rows, columns] = [map.hosts.length, map.first.length];
  const longest = Math.max(0, ...map.hosts.map((host) => host.length));
  const left = Math.min(available < 500 ? 76 : 170, 14 + 7 * longest);
  const cellWidth = Math.min(40, Math.max(4, (available - left) / Math.max(1, columns)));
  const cellHeight = Math.min(22, Math.max(12, 420 / Math.max(1, rows)));
  return {
    left,
    cellWidth,
    cellHeight,
    width: left + cellWidth * columns,
    height: cellHeight * rows + FOOT,
    columns,
    rows,
  };
}

/** The rows in the order of the names, or the slowest first. */
export function orderOf(map: FleetSteps, slowestFirst: boolean): number[] {
  const rows = map.hosts.map((_, row) => row);
  return slowestFirst ? rows.sort((a, b) => usualOf(map, b) - usualOf(map, a)) : rows;
}

/** How slow a host usually was: at its median step. */
export function usualOf(map: FleetSteps, row: number): number {
  const known = (map.slow[row] ?? []).filter((value) => value !== null).sort((a, b) => a - b);
  const half = known.length >> 1;
  return known.length % 2 === 1 ? (known[half] ?? 0) : ((known[half - 1] ?? 0) + (known[half] ?? 0)) / 2;
}

/** The slowest column of a host in words; null if none differs. */
export function worstIn(map: FleetSteps, row: number): string | null {
  const column = worstOf(map, row);
  const slow = map.slow[row]?.[column] ?? 0;
  return slow < FAINT ? null : `${stepsIn(map, column)} (+${whole(slow)}${slow > MOST ? " or more" : ""})`;
}

/** The column in which a host was slowest; -1 if it has no steps. */
export function worstOf(map: FleetSteps, row: number): number {
  let worst = -1;
  const cells = map.slow[row] ?? [];
  cells.forEach((value, column) => {
    if (value !== null && (worst < 0 || value > (cells[worst] ?? 0))) worst = column;
  });
  return worst;
}

/** How strong a cell's colour is, from 0 to 1, and of which side. */
export function shadeOf(slow: number): { slower: boolean; strength: number } {
  const size = Math.abs(slow);
  return { slower: slow > 0, strength: size < FAINT ? 0 : Math.min(1, size / FULL) ** 0.7 };
}

/** The row on screen and the column under a pixel; null outside. */
export function cellAt(layout: Layout, x: number, y: number): { row: number; column: number } | null {
  const [column, row] = [Math.floor((x - layout.left) / layout.cellWidth), Math.floor(y / layout.cellHeight)];
  return column >= 0 && column < layout.columns && row >= 0 && row < layout.rows ? { row, column } : null;
}

/** The steps of a column in words. */
export function stepsIn(map: FleetSteps, column: number): string {
  const [first, last] = [map.first[column] ?? 0, map.last[column] ?? 0];
  return first === last ? `step ${first}` : `steps ${first} to ${last}`;
}

/** A share in whole percent: the map has no finer steps. */
const whole = (share: number): string => `${Math.round(share * 100)} %`;

/** A share against the median host in words. */
export function slowness(slow: number | null | undefined): string {
  if (slow === null || slow === undefined) return "no such step";
  if (Math.abs(slow) < EVEN) return "as long as the median host";
  const full = slow > MOST ? "at least " : "";
  return `${full}${whole(Math.abs(slow))} ${slow > 0 ? "longer" : "shorter"} than the median host`;
}

/** A cell in words. */
export function describe(map: FleetSteps, row: number, column: number): string {
  const usual = map.usual_ms[column];
  return `${map.hosts[row] ?? ""}, ${stepsIn(map, column)}: ${slowness(map.slow[row]?.[column])}${usual === undefined ? "" : ` (${ms(usual)} there)`}`;
}

/** The map in one sentence, for those who cannot see it. */
export function summary(map: FleetSteps): string {
  const slow = map.hosts.map((_, row) => row).filter((row) => usualOf(map, row) >= 0.05);
  slow.sort((a, b) => usualOf(map, b) - usualOf(map, a));
  const named = slow.slice(0, 3).map((row) => `${map.hosts[row]} ${whole(usualOf(map, row))}`);
  const said =
    named.length === 0
      ? "all hosts within 5 % of the middle"
      : `slower than the middle: ${named.join(", ")}${slow.length > 3 ? ` and ${slow.length - 3} more` : ""}`;
  return `${map.hosts.length} hosts by ${map.first.length} columns of steps; ${said}`;
}

/** The part of the timeline's answer that says when steps were. */
export interface TimelineSteps {
  hosts: string[];
  steps: { index: number; host: number; start_ns: number; end_ns: number; counted: boolean }[];
}

/** The time of a column on a host; null if the timeline has no such step. */
export function spanOf(
  timeline: TimelineSteps,
  map: FleetSteps,
  host: string,
  column: number,
): { from: number; to: number } | null {
  const number = timeline.hosts.indexOf(host);
  const [first, last] = [map.first[column] ?? 0, map.last[column] ?? 0];
  const own = timeline.steps.filter((step) => step.host === number);
  const meant = map.numbered
    ? own.filter((step) => step.index >= first && step.index <= last)
    : own.filter((step) => step.counted).slice(first, last + 1);
  if (meant.length === 0) return null;
  return { from: Math.min(...meant.map((step) => step.start_ns)), to: Math.max(...meant.map((step) => step.end_ns)) };
}

export interface Look {
  slower: string;
  faster: string;
  even: string;
  text: string;
  mark: string;
}

/** Draws the map. `order` gives the row of the map for each row on screen; `chosen` is a cell on screen. */
export function draw(
  canvas: HTMLCanvasElement,
  map: FleetSteps,
  layout: Layout,
  order: readonly number[],
  chosen: { row: number; column: number } | null,
  look: Look,
): void {
  const dense = devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(layout.width * dense), Math.round(layout.height * dense)];
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(dense, 0, 0, dense, 0, 0);
  // A line between cells, as long as there is room for it.
  const gap = layout.cellWidth >= 8 ? 1 : 0;
  order.forEach((source, row) => {
    const cells = map.slow[source] ?? [];
    cells.forEach((slow, column) => {
      if (slow === null) return;
      const [x, y] = [layout.left + column * layout.cellWidth, row * layout.cellHeight];
      const { slower, strength } = shadeOf(slow);
      context.fillStyle = look.even;
      context.fillRect(x, y, layout.cellWidth - gap, layout.cellHeight - 1);
      if (strength === 0) return;
      context.globalAlpha = strength;
      context.fillStyle = slower ? look.slower : look.faster;
      context.fillRect(x, y, layout.cellWidth - gap, layout.cellHeight - 1);
      context.globalAlpha = 1;
    });
  });
  names(context, map, layout, order, look);
  if (chosen) {
    context.strokeStyle = look.mark;
    context.lineWidth = 2;
    context.strokeRect(
      layout.left + chosen.column * layout.cellWidth,
      chosen.row * layout.cellHeight,
      Math.max(3, layout.cellWidth - gap),
      layout.cellHeight - 1,
    );
  }
}

function names(
  context: CanvasRenderingContext2D,
  map: FleetSteps,
  layout: Layout,
  order: readonly number[],
  look: Look,
): void {
  context.font = `${Math.min(12, layout.cellHeight - 1)}px system-ui, sans-serif`;
  context.fillStyle = look.text;
  context.textBaseline = "middle";
  context.textAlign = "right";
  order.forEach((source, row) => {
    context.fillText(
      fitted(context, map.hosts[source] ?? "", layout.left - 10),
      layout.left - 6,
      (row + 0.5) * layout.cellHeight,
    );
  });
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "left";
  context.textBaseline = "top";
  let free = layout.left;
  map.first.forEach((step, column) => {
    const x = layout.left + column * layout.cellWidth;
    const text = String(step);
    const width = context.measureText(text).width;
    if (x < free || x + width > layout.width) return;
    context.fillText(text, x, layout.rows * layout.cellHeight + 5);
    free = x + width + 24;
  });
}

/** A name cut at its start: the end is what tells hosts apart. */
function fitted(context: CanvasRenderingContext2D, name: string, width: number): string {
  if (context.measureText(name).width <= width) return name;
  let rest = name;
  while (rest.length > 1 && context.measureText(`…${rest}`).width > width) rest = rest.slice(1);
  return `…${rest}`;
}
