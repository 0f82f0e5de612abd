/** Idle times of devices: the longest gaps from the server, drawn in the headings of their devices. */
import type { DeviceGap } from "../../server/views";
import { duration } from "../model/format";
import type { Scene } from "./scene";
import type { Theme } from "./theme";
import type { Category, Span, Timeline } from "../model/types";
import { xAt } from "../model/view";

export interface Gap extends Span {
  cause: string;
}

/** Narrower ones look like the lines between events, in pixels. */
const NARROWEST = 3;

/** Gaps by the process that stands for their device, in the session's time. */
export function gapsByProcess(
  timeline: Timeline,
  gaps: readonly DeviceGap[],
  categories: readonly Category[],
): Map<number, Gap[]> {
  const titles = new Map(categories.map((category) => [category.key, category.title]));
  const found = new Map<number, Gap[]>();
  for (const gap of gaps) {
    const host = Math.max(0, timeline.hosts.indexOf(gap.host));
    const devices = timeline.processes.filter((one) => one.kind === "device" && one.host === host);
    // A device without a name in the file is the one that is meant, if there is no other.
    const alone = devices.length === 1 && gaps.every((other) => other.host !== gap.host || other.device === gap.device);
    const process = devices.find((one) => one.name === gap.device) ?? (alone ? devices[0] : undefined);
    if (!process) continue;
    const start = gap.start_ms * 1e6 + (timeline.shifts_ns?.[host] ?? 0);
    const entry = { start, end: start + gap.duration_ms * 1e6, cause: titles.get(gap.cause) ?? gap.cause };
    const list = found.get(process.id);
    if (list) list.push(entry);
    else found.set(process.id, [entry]);
  }
  return found;
}

/** The gap of a device at a moment; gaps that are too narrow to be drawn do not answer. */
export function gapAt(gaps: readonly Gap[], scene: Pick<Scene, "window" | "width">, ns: number): Gap | null {
  const perPixel = (scene.window.end - scene.window.start) / Math.max(1, scene.width);
  return gaps.find((gap) => gap.start <= ns && ns <= gap.end && gap.end - gap.start >= NARROWEST * perPixel) ?? null;
}

/** Draws a device's gaps into its heading, from `top` to `bottom`. */
export function drawGaps(
  context: CanvasRenderingContext2D,
  scene: Scene,
  theme: Theme,
  gaps: readonly Gap[],
  top: number,
  bottom: number,
  hatch: CanvasPattern | string,
): void {
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const gap of gaps) {
    const left = Math.max(0, xAt(scene.window, gap.start, scene.width));
    const right = Math.min(scene.width, xAt(scene.window, gap.end, scene.width));
    if (right - left < NARROWEST) continue;
    context.fillStyle = hatch;
    context.fillRect(left, top + 3, right - left, bottom - top - 7);
    context.fillStyle = theme.mark;
    context.fillRect(left, bottom - 4, right - left, 2);
    const words = [
      `idle ${duration(gap.end - gap.start)} · ${gap.cause}`,
      `idle ${duration(gap.end - gap.start)}`,
      "idle",
    ];
    const fitting = words.find((text) => context.measureText(text).width + 8 < right - left);
    if (!fitting) continue;
    // The text gets the heading's background, so that the hatching does not cross it.
    context.fillStyle = theme.head;
    context.fillRect(left + 2, top + 3, context.measureText(fitting).width + 4, bottom - top - 8);
    context.fillStyle = theme.ink;
    context.fillText(fitting, left + 4, (top + bottom) / 2 - 1);
  }
}
