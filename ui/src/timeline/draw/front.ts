/** What is drawn over the spans: their labels, marks, the selection with its arrows, and the line under the pointer. */
import { spanOf } from "../model/view";
import { drawCollectives, type RunsBySlot } from "./collectives";
import { drawCritical } from "./critical";
import { drawFlows } from "./flows";
import type { Hover } from "./hover";
import { LabelWriter } from "./labels";
import { drawProof } from "./proof";
import type { Scene } from "./scene";
import {
  type Area,
  areaCaption,
  drawArea,
  drawDistances,
  drawMark,
  drawOutline,
  evidenceCaption,
  markCaption,
} from "./selection";
import type { Theme } from "./theme";
import type { EventDetails, Evidence, Span, StepPath, Timeline } from "../model/types";

/** What the user chose or points at. */
export interface Chosen {
  readonly selected: EventDetails | null;
  readonly hover: Hover | null;
  readonly area: Area | null;
  readonly marks: readonly Span[];
  readonly place: Evidence | null;
  readonly collectives: RunsBySlot;
  readonly critical: { readonly paths: readonly StepPath[] };
}

export class Front {
  private readonly writer: LabelWriter;

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly timeline: Timeline,
    private readonly slotOf: ReadonlyMap<number, number>,
  ) {
    this.writer = new LabelWriter(context);
  }

  /** Draws everything; returns the number of spans in the scrolling part. */
  draw(scene: Scene, theme: Theme, chosen: Chosen, pointer: { x: number } | null): number {
    const { context, timeline, slotOf } = this;
    const { marks, place, area, selected } = chosen;
    context.clearRect(0, 0, scene.width, scene.height);
    for (const mark of marks) drawMark(context, scene, mark, theme, false);
    const top = area ? drawArea(context, scene, timeline, area, slotOf, theme) : 0;
    const { pinnedHeight } = scene.layout;
    this.region(scene, theme, chosen, 0, pinnedHeight, 1);
    const spans = this.region(scene, theme, chosen, pinnedHeight, scene.height, 0);
    // Above the labels: they are dimmed with their spans.
    if (place) drawMark(context, scene, place, theme, true);
    const proof = place?.proof;
    if (proof) this.clipped(scene, () => drawProof(context, scene, timeline, slotOf, proof, theme));
    if (chosen.critical.paths.length > 0)
      this.clipped(scene, () => drawCritical(context, scene, timeline, slotOf, chosen.critical.paths, theme));
    if (selected) drawFlows(context, scene, timeline, slotOf, selected, theme);
    if (place) evidenceCaption(context, scene, place, theme);
    marks.forEach((mark, lane) => markCaption(context, scene, mark, theme, lane + (place ? 1 : 0)));
    drawDistances(context, scene, [...marks], theme);
    if (area) areaCaption(context, scene, area, theme, top);
    if (pointer) {
      context.fillStyle = theme.soft;
      context.globalAlpha = 0.5;
      context.fillRect(Math.round(pointer.x), 0, 1, scene.height);
      context.globalAlpha = 1;
    }
    return spans;
  }

  /** Draws below the pinned tracks only. */
  private clipped(scene: Scene, draw: () => void): void {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(0, scene.layout.pinnedHeight, scene.width, scene.height);
    context.clip();
    draw();
    context.restore();
  }

  /** Labels and outlines of the pinned or of the scrolling part. */
  private region(
    scene: Scene,
    theme: Theme,
    { selected, hover, collectives }: Chosen,
    top: number,
    bottom: number,
    place: 0 | 1,
  ): number {
    if (bottom <= top) return 0;
    const { context, timeline } = this;
    context.save();
    context.beginPath();
    context.rect(0, top, scene.width, bottom - top);
    context.clip();
    const spans = this.writer.draw(context, scene, theme, place, top, bottom);
    if (collectives.size > 0) drawCollectives(context, scene, timeline, collectives, theme, place);
    const at = (slot: number) => (scene.layout.slots[slot * 4 + 3] ?? -1) === place;
    if (hover && hover.count > 0 && at(hover.slot)) drawOutline(context, scene, timeline, hover, theme.soft, false);
    const slot = selected && this.slotOf.get(selected.track);
    if (selected && slot !== null && slot !== undefined && at(slot)) {
      const outline = { slot, row: selected.row, ...spanOf(selected) };
      drawOutline(context, scene, timeline, outline, theme.ink, true);
    }
    context.restore();
    return spans;
  }
}
