/**
 * Draws spans without a graphics card: one line of pixels per row is computed in memory, copied to the row's height and
 * passed to a 2D canvas in one piece. On machines with software GL this is several times faster than WebGL, and its cost
 * hardly depends on how many spans there are (60,000 take about 3 ms).
 */
import { COLORS, colorIndex } from "./colors";
import { bucketPx, DIM_ALPHA, eachPart, FLOOR_ALPHA, type Renderer, type Scene, slotTop, tileX } from "./scene";
import { type Chunk, ENDS_BEHIND, type Part } from "../model/tiles";

const ALPHAS = 32;

export class CanvasRenderer implements Renderer {
  readonly kind = "canvas";
  private readonly context: CanvasRenderingContext2D;
  private image: ImageData;
  private pixels: Uint32Array;
  private line = new Uint32Array(0);
  /** Colours as pixels, for each strength. */
  private readonly table = new Uint32Array(COLORS * ALPHAS);
  private tablePalette: unknown = null;

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d", { willReadFrequently: true });
    if (!context) throw new Error("no 2D canvas");
    this.context = context;
    this.image = new ImageData(1, 1);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  draw(scene: Scene): void {
    const width = Math.max(1, Math.round(scene.width * scene.ratio));
    const height = Math.max(1, Math.round(scene.height * scene.ratio));
    if (this.image.width !== width || this.image.height !== height) this.resize(width, height);
    if (this.tablePalette !== scene.palette) this.fillTable(scene);
    this.pixels.fill(0);
    for (const slot of scene.slots) this.track(scene, slot);
    this.context.putImageData(this.image, 0, 0);
  }

  forget(_chunk: Chunk): void {
    // Nothing is stored besides the chunk itself.
  }

  dispose(): void {
    this.resize(1, 1);
  }

  private resize(width: number, height: number): void {
    this.canvas.width = width;
    this.canvas.height = height;
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.line = new Uint32Array(width);
  }

  private fillTable(scene: Scene): void {
    scene.palette.rgb.forEach(([r, g, b], color) => {
      for (let a = 0; a < ALPHAS; a += 1) {
        const alpha = Math.round((a / (ALPHAS - 1)) * 255);
        this.table[color * ALPHAS + a] = ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
      }
    });
    this.tablePalette = scene.palette;
  }

  private track(scene: Scene, slot: number): void {
    const { ratio, layout } = scene;
    const rowHeight = (layout.slots[slot * 4 + 1] as number) * ratio;
    const rows = layout.slots[slot * 4 + 2] as number;
    const pinned = (layout.slots[slot * 4 + 3] as number) === 1;
    const ceiling = pinned ? 0 : Math.round(layout.pinnedHeight * ratio);
    const floor = pinned ? Math.round(layout.pinnedHeight * ratio) : this.image.height;
    const top = slotTop(scene, slot) * ratio;
    for (let row = 0; row < rows; row += 1) {
      const from = Math.round(top + row * rowHeight);
      const to = Math.round(top + (row + 1) * rowHeight) - (rowHeight > 5 ? 1 : 0);
      if (to <= ceiling || from >= floor) continue;
      this.line.fill(0);
      eachPart(scene, slot, (part, left, right) => this.row(scene, part, row, left * ratio, right * ratio));
      this.copy(Math.max(from, ceiling), Math.min(to, floor));
    }
  }

  private copy(from: number, to: number): void {
    const width = this.image.width;
    for (let y = from; y < to; y += 1) this.pixels.set(this.line, y * width);
  }

  private row(scene: Scene, part: Part, row: number, left: number, right: number): void {
    const chunk = part.chunk;
    scene.store.touch(chunk);
    const { start, end, busy, count, category, hue, hit, flags } = chunk;
    const first = part.rowStart[row];
    const last = part.rowStart[row + 1];
    if (first === undefined || last === undefined) return;
    const origin = tileX(scene, chunk.level, chunk.tile) * scene.ratio;
    const scale = bucketPx(scene, chunk.level) * scene.ratio;
    const clipLeft = Math.max(0, Math.round(left));
    const clipRight = Math.min(this.line.length, Math.round(right));
    const dim = scene.dim && hit.length === chunk.spans;
    for (let i = first; i < last; i += 1) {
      const x0 = origin + (start[i] as number) * scale;
      if (x0 >= clipRight) break;
      const x1 = origin + (end[i] as number) * scale;
      // No search for the first: where events of a row overlap, ends are not in order, and a row has a thousand at most.
      if (x1 < clipLeft) continue;
      let from = Math.floor(x0);
      let to = Math.max(from + 1, Math.round(x1));
      const width = x1 - x0;
      const share =
        (count[i] as number) > 1 ? (busy[i] as number) / Math.max(1e-6, (end[i] as number) - (start[i] as number)) : 1;
      let alpha = Math.max(FLOOR_ALPHA, Math.min(1, share) * Math.min(1, width));
      if (dim && hit[i] === 0) alpha *= DIM_ALPHA;
      const color = colorIndex(scene.mode, category[i] as number, hue[i] as number) * ALPHAS;
      const pixel = this.table[color + ((alpha * (ALPHAS - 1)) | 0)] as number;
      // A gap separates a span from the next one, unless it continues in the next tile.
      const edge = to - from >= 4 && to <= clipRight && ((flags[i] as number) & ENDS_BEHIND) === 0;
      if (from < clipLeft) from = clipLeft;
      if (to > clipRight) to = clipRight;
      if (to - from === 1) {
        // If two share a pixel, the stronger one is shown.
        if ((this.line[from] as number) >>> 24 < pixel >>> 24) this.line[from] = pixel;
        continue;
      }
      for (let x = from; x < to; x += 1) this.line[x] = pixel;
      if (edge) this.line[to - 1] = this.table[color + ((alpha * 0.45 * (ALPHAS - 1)) | 0)] as number;
    }
  }
}
