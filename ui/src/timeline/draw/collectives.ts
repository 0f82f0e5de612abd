/**
 * Collectives of several ranks: the part in which a rank waits for the last one and the part in which data moves, in
 * different colours, and a mark on the rank that the others waited for.
 */
import { locate } from "./flows";
import type { Scene } from "./scene";
import type { Theme } from "./theme";
import type { RankRun, Timeline } from "../model/types";
import { xAt } from "../model/view";

/** Runs of one slot, by start. */
export type RunsBySlot = ReadonlyMap<number, readonly RankRun[]>;

export function runsBySlot(runs: readonly RankRun[], slotOf: ReadonlyMap<number, number>): RunsBySlot {
  const found = new Map<number, RankRun[]>();
  for (const run of runs) {
    const slot = slotOf.get(run.track);
    if (slot === undefined) continue;
    const list = found.get(slot);
    if (list) list.push(run);
    else found.set(slot, [run]);
  }
  for (const list of found.values()) list.sort((a, b) => a.start_ns - b.start_ns);
  return found;
}

/** The run of a row at a moment. */
export function runAt(runs: RunsBySlot, slot: number, row: number, ns: number): RankRun | undefined {
  return runs.get(slot)?.find((run) => run.row === row && run.start_ns <= ns && ns < run.end_ns);
}

/** Narrower spans (px) show no parts. */
const NARROW = 4;
/** Height of the strip below a span that shows its parts. */
const STRIP = 3;

/** Draws the parts of what is visible of one region: a strip along the lower edge of each collective. */
export function drawCollectives(
  context: CanvasRenderingContext2D,
  scene: Scene,
  timeline: Timeline,
  runs: RunsBySlot,
  theme: Theme,
  place: 0 | 1,
): void {
  for (const slot of scene.slots) {
    if ((scene.layout.slots[slot * 4 + 3] ?? -1) !== place) continue;
    for (const run of runs.get(slot) ?? []) {
      if (run.end_ns < scene.window.start) continue;
      if (run.start_ns > scene.window.end) break;
      const { y, height, hidden } = locate(scene, timeline, slot, run.row);
      if (hidden || height < STRIP) continue;
      const x = (ns: number) => Math.max(-2, Math.min(scene.width + 2, xAt(scene.window, ns, scene.width)));
      const [left, met, right] = [x(run.start_ns), x(run.start_ns + run.waited_ns), x(run.end_ns)];
      if (right - left < NARROW) continue;
      const strip = Math.min(STRIP, height / 3);
      context.fillStyle = theme.mark;
      context.fillRect(left, y + height - strip, met - left, strip);
      context.fillStyle = theme.transfer;
      context.fillRect(met, y + height - strip, right - met, strip);
      if (run.last) triangle(context, theme, left, y);
    }
  }
}

function triangle(context: CanvasRenderingContext2D, theme: Theme, x: number, y: number): void {
  context.fillStyle = theme.mark;
  context.strokeStyle = theme.back;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, y + 8);
  context.lineTo(x - 5, y - 1);
  context.lineTo(x + 5, y - 1);
  context.closePath();
  context.fill();
  context.stroke();
}
