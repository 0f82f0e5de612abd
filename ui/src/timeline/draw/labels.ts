/** Draws the labels of all visible tracks onto the canvas above the spans. */
import { colorIndex } from "./colors";
import { bucketPx, eachPart, type Scene, slotTop, tileX } from "./scene";
import { Cutter, Labels, MIN_LABEL } from "./text";
import type { Theme } from "./theme";

const FONT = "11px system-ui, sans-serif";
/** Smaller rows have no space for text. */
const LOWEST_ROW = 12;

export class LabelWriter {
  private readonly labels = new Labels();
  private readonly cutter: Cutter;

  constructor(context: CanvasRenderingContext2D) {
    this.cutter = new Cutter((text) => {
      context.font = FONT;
      return context.measureText(text).width;
    });
  }

  /** The labels of the pinned (1) or scrolling part (0). Returns the number of visible spans, for measurements. */
  draw(
    context: CanvasRenderingContext2D,
    scene: Scene,
    theme: Theme,
    place: 0 | 1,
    top: number,
    bottom: number,
  ): number {
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "left";
    let spans = 0;
    for (const slot of scene.slots) {
      if ((scene.layout.slots[slot * 4 + 3] as number) !== place) continue;
      spans += this.collect(scene, slot);
      this.write(context, scene, theme, slot, top, bottom);
    }
    return spans;
  }

  private collect(scene: Scene, slot: number): number {
    const { labels } = this;
    const height = scene.layout.slots[slot * 4 + 1] as number;
    const rows = scene.layout.slots[slot * 4 + 2] as number;
    let spans = 0;
    labels.clear();
    eachPart(scene, slot, (part, left, right) => {
      spans += part.count;
      if (height < LOWEST_ROW) return;
      const { level, tile } = part.chunk;
      labels.add(
        part,
        tileX(scene, level, tile),
        bucketPx(scene, level),
        Math.max(0, left),
        Math.min(scene.width, right),
        rows,
      );
    });
    return spans;
  }

  private write(
    context: CanvasRenderingContext2D,
    scene: Scene,
    theme: Theme,
    slot: number,
    top: number,
    bottom: number,
  ): void {
    const { labels } = this;
    const base = slotTop(scene, slot);
    const height = scene.layout.slots[slot * 4 + 1] as number;
    let ink = "";
    for (let i = 0; i < labels.n; i += 1) {
      const left = labels.left[i] as number;
      const width = (labels.right[i] as number) - left;
      const y = base + (labels.row[i] as number) * height;
      if (width < MIN_LABEL || y + height < top || y > bottom) continue;
      const text = this.cutter.cut(labels.name[i] ?? "", width - 8);
      if (text === "") continue;
      const faded = scene.dim && labels.hit[i] === 0;
      const at = colorIndex(scene.mode, labels.category[i] as number, labels.hue[i] as number);
      const color = faded ? theme.soft : (scene.palette.ink[at] ?? theme.ink);
      if (color !== ink) context.fillStyle = ink = color;
      context.fillText(text, left + 4, y + height / 2);
    }
  }
}
