/**
 * Labels of spans. An event that spans several tiles comes in pieces; it gets one label over its visible part. Placing is
 * pure and reuses its lists; drawing is one `fillText` per label.
 */
import { BEGINS_BEFORE, ENDS_BEHIND, type Part } from "../model/tiles";

/** Narrower pieces (in CSS pixels) have no text. */
export const MIN_LABEL = 22;
const ROOM = 4096;

/** Labels of one track. Extents are CSS pixels of the plot. */
export class Labels {
  n = 0;
  readonly left = new Float32Array(ROOM);
  readonly right = new Float32Array(ROOM);
  readonly row = new Uint16Array(ROOM);
  readonly category = new Uint8Array(ROOM);
  readonly hue = new Uint8Array(ROOM);
  readonly hit = new Uint8Array(ROOM);
  readonly name: string[] = [];
  private readonly event = new Uint32Array(ROOM);
  /** For each row the label whose event continues after the tile, or -1. */
  private readonly open = new Int32Array(65536).fill(-1);
  private readonly opened = new Uint16Array(ROOM);
  private openCount = 0;

  clear(): void {
    for (let i = 0; i < this.openCount; i += 1) this.open[this.opened[i] as number] = -1;
    this.openCount = 0;
    this.n = 0;
  }

  /**
   * Adds the labels of a part; parts come from left to right. `origin` is the x of its tile, `scale` the width of a
   * bucket, `from` and `to` the pixels it may fill, `rows` how many rows are shown.
   */
  add(part: Part, origin: number, scale: number, from: number, to: number, rows: number): void {
    const { start, end, row, flags, event, count, name, names, category, hue, hit } = part.chunk;
    for (const i of part.wide) {
      const r = row[i] as number;
      if (r >= rows) break;
      if ((count[i] as number) > 1) continue;
      const left = Math.max(from, origin + (start[i] as number) * scale);
      const right = Math.min(to, origin + (end[i] as number) * scale);
      if (right <= left) continue;
      const flag = flags[i] as number;
      const before = this.open[r] as number;
      let at = -1;
      if (before >= 0) {
        if (flag & BEGINS_BEFORE && this.event[before] === event[i]) at = before;
        else this.open[r] = -1;
      }
      if (at >= 0) this.right[at] = right;
      else {
        // Only events that continue may still grow; the rest must be wide enough now.
        const goesOn = (flag & ENDS_BEHIND) !== 0 || right >= to - 0.5;
        if ((right - left < MIN_LABEL && !goesOn) || this.n >= ROOM) continue;
        at = this.n;
        this.n += 1;
        this.left[at] = left;
        this.right[at] = right;
        this.row[at] = r;
        this.category[at] = category[i] as number;
        this.hue[at] = hue[i] as number;
        this.hit[at] = hit.length > 0 ? (hit[i] as number) : 1;
        this.event[at] = event[i] as number;
        this.name[at] = names.get(name[i] as number) ?? "";
      }
      if (flag & ENDS_BEHIND || right >= to - 0.5) {
        this.open[r] = at;
        if (this.openCount < ROOM) {
          this.opened[this.openCount] = r;
          this.openCount += 1;
        }
      } else this.open[r] = -1;
    }
  }
}

/**
 * Cuts names to a width, by a table of character widths: measuring the text itself each time costs ten times as much while
 * zooming, when every label changes its width in every frame. Remembers the last cut of each name.
 */
export class Cutter {
  private readonly known = new Map<string, { chars: number; text: string }>();
  private readonly widths = new Map<number, number>();
  private readonly ellipsis: number;

  constructor(private readonly measure: (text: string) => number) {
    this.ellipsis = measure("…");
  }

  cut(name: string, width: number): string {
    let used = 0;
    let fits = 0;
    for (let i = 0; i < name.length; i += 1) {
      used += this.width(name.charCodeAt(i));
      if (used + this.ellipsis <= width) fits = i + 1;
      else if (used > width) return this.shorten(name, fits);
    }
    return name;
  }

  private width(code: number): number {
    let width = this.widths.get(code);
    if (width === undefined) this.widths.set(code, (width = this.measure(String.fromCharCode(code))));
    return width;
  }

  private shorten(name: string, chars: number): string {
    if (chars < 1) return "";
    let entry = this.known.get(name);
    if (!entry) {
      if (this.known.size > 20_000) this.known.clear();
      this.known.set(name, (entry = { chars: -1, text: "" }));
    }
    if (entry.chars !== chars) {
      entry.chars = chars;
      entry.text = `${name.slice(0, chars)}…`;
    }
    return entry.text;
  }
}
