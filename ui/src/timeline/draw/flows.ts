/** Arrows of cause and effect between events: launch → kernel, producer → consumer. They also reach invisible tracks. */
import { type Scene } from "./scene";
import type { Theme } from "./theme";
import type { EventDetails, Timeline } from "../model/types";
import { xAt } from "../model/view";

/** Position of an event on the plot in CSS pixels; `hidden` if its track is folded (then that of its process's heading). */
export interface Place {
  y: number;
  height: number;
  hidden: boolean;
  pinned: boolean;
}

export function locate(scene: Scene, timeline: Timeline, slot: number, row: number): Place {
  const { layout, scroll } = scene;
  const place = layout.slots[slot * 4 + 3] ?? -1;
  const shift = place === 1 ? 0 : layout.pinnedHeight - scroll;
  if (place >= 0) {
    const height = layout.slots[slot * 4 + 1] as number;
    const shown = Math.min(row, (layout.slots[slot * 4 + 2] as number) - 1);
    return {
      y: (layout.slots[slot * 4] as number) + shift + shown * height,
      height,
      hidden: false,
      pinned: place === 1,
    };
  }
  const process = timeline.tracks[slot]?.process;
  const heading = layout.items.find((item) => item.kind === "process" && item.id === process);
  return { y: (heading?.y ?? 0) + shift, height: heading?.height ?? 0, hidden: true, pinned: false };
}

export function drawFlows(
  context: CanvasRenderingContext2D,
  scene: Scene,
  timeline: Timeline,
  slotOf: ReadonlyMap<number, number>,
  event: EventDetails,
  theme: Theme,
): void {
  const slot = slotOf.get(event.track);
  if (slot === undefined) return;
  const own = locate(scene, timeline, slot, event.row);
  for (const flow of event.flows) {
    const other = slotOf.get(flow.track);
    if (other === undefined) continue;
    const place = locate(scene, timeline, other, flow.row);
    const out = flow.direction === "out";
    const from = out ? event.start_ns + event.dur_ns : flow.start_ns + flow.dur_ns;
    const to = out ? flow.start_ns : event.start_ns;
    const [tail, tip] = out ? [own, place] : [place, own];
    arrow(context, scene, theme, xAt(scene.window, from, scene.width), tail, xAt(scene.window, to, scene.width), tip);
  }
}

function middle(place: Place): number {
  return place.y + place.height / 2;
}

/** A curve with a head. Invisible ends are drawn far outside, so that the direction stays right; the rest is clipped. */
function arrow(
  context: CanvasRenderingContext2D,
  scene: Scene,
  theme: Theme,
  x0: number,
  tail: Place,
  x1: number,
  tip: Place,
): void {
  const [y0, y1] = [middle(tail), middle(tip)];
  const far = 20_000;
  const clampX = (x: number) => Math.max(-far, Math.min(scene.width + far, x));
  [x0, x1] = [clampX(x0), clampX(x1)];
  const bend = Math.max(24, Math.min(160, Math.abs(x1 - x0) / 2));
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
  context.strokeStyle = theme.back;
  context.lineWidth = 4;
  context.stroke();
  context.strokeStyle = theme.accent;
  context.lineWidth = 1.75;
  context.stroke();
  head(context, theme, x1, y1);
  // If the other end is not visible, a small triangle at the edge shows its direction.
  edge(context, scene, theme, x0, tail);
  edge(context, scene, theme, x1, tip);
}

function head(context: CanvasRenderingContext2D, theme: Theme, x: number, y: number): void {
  context.fillStyle = theme.accent;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 8, y - 4.5);
  context.lineTo(x - 8, y + 4.5);
  context.fill();
}

function edge(context: CanvasRenderingContext2D, scene: Scene, theme: Theme, x: number, place: Place): void {
  const y = middle(place);
  const top = place.pinned ? 0 : scene.layout.pinnedHeight;
  if (y >= top && y <= scene.height) return;
  const at = Math.max(8, Math.min(scene.width - 8, x));
  const up = y < top;
  const tip = up ? top + 3 : scene.height - 3;
  context.fillStyle = theme.accent;
  context.beginPath();
  context.moveTo(at, tip);
  context.lineTo(at - 6, tip + (up ? 9 : -9));
  context.lineTo(at + 6, tip + (up ? 9 : -9));
  context.fill();
}
