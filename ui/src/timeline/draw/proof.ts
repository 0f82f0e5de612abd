/** What a finding is about where no event shows it: Python between ops, time in which nothing was recorded. Such gaps are labelled
 * below the mark of the step, as idle gaps of devices are labelled in their headings. */
import { duration } from "../model/format";
import type { Proof, Timeline } from "../model/types";
import { xAt } from "../model/view";
import { locate } from "./flows";
import type { Scene } from "./scene";
import type { Theme } from "./theme";

/** Narrower gaps have no room for a word, in pixels. */
const NARROWEST = 4;

export interface Label {
  left: number;
  right: number;
  text: string;
}

/** The gaps that are visible, with what fits into them. `width` measures text. */
export function labelsOf(
  proof: Proof,
  scene: Pick<Scene, "window" | "width">,
  width: (text: string) => number,
): Label[] {
  return proof.pieces
    .filter((piece) => piece.empty)
    .flatMap((piece) => {
      const left = Math.max(0, xAt(scene.window, piece.start_ns, scene.width));
      const right = Math.min(scene.width, xAt(scene.window, piece.end_ns, scene.width));
      if (right - left < NARROWEST) return [];
      const time = duration(piece.end_ns - piece.start_ns);
      const text = [`${piece.title} ${time}`, time, ""].find((words) => width(words) + 8 < right - left) ?? "";
      return [{ left, right, text }];
    });
}

export function drawProof(
  context: CanvasRenderingContext2D,
  scene: Scene,
  timeline: Timeline,
  slotOf: ReadonlyMap<number, number>,
  proof: Proof,
  theme: Theme,
): void {
  const slot = proof.track === null ? undefined : slotOf.get(proof.track);
  if (slot === undefined) return;
  const { y, height, hidden } = locate(scene, timeline, slot, 1);
  if (hidden || y + height < scene.layout.pinnedHeight) return;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  const labels = labelsOf(proof, scene, (text) => context.measureText(text).width);
  for (const { left, right, text } of labels) {
    context.globalAlpha = 0.16;
    context.fillStyle = theme.mark;
    context.fillRect(left, y + 1, right - left, height - 2);
    context.globalAlpha = 1;
    context.strokeStyle = theme.mark;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, y + 1.5, Math.max(1, right - left - 1), height - 3);
    context.fillStyle = theme.ink;
    if (text) context.fillText(text, left + 5, y + height / 2);
  }
}
