/** Where segments and blocks are drawn: time to the right, addresses upwards, ranges one above the other. Framework-free. */
import type { Addresses } from "./calls";

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
  /** Position in `blocks` or `segments`. */
  index: number;
}

/** Free pixels between two ranges of addresses. */
const GAP = 3;

/** From and to in nanoseconds. */
export function extent(map: Addresses): [number, number] {
  let [from, to] = [Infinity, -Infinity];
  for (const [, , , start, end] of [...map.segments, ...map.blocks]) {
    for (const time of [start, end]) {
      if (time === null) continue;
      from = Math.min(from, time);
      to = Math.max(to, time);
    }
  }
  return from < to ? [from, to] : [0, 1];
}

/** The lowest pixel and the pixels per byte of each range. Every range can be seen; the rest of the height goes by bytes. */
export function bands(map: Addresses, height: number): { bottom: number; scale: number }[] {
  const most = Math.max(1, Math.floor(height / (GAP + 2)));
  const shown = map.ranges.slice(0, most);
  const least = 2;
  const room = Math.max(0, height - shown.length * (GAP + least));
  const all = shown.reduce((sum, range) => sum + range.bytes, 0) || 1;
  let bottom = height;
  return shown.map((range) => {
    const size = least + (range.bytes / all) * room;
    const band = { bottom, scale: size / (range.bytes || 1) };
    bottom -= size + GAP;
    return band;
  });
}

/** Rectangles of segments or blocks. */
export function place(
  items: readonly (readonly [number, number, number, number | null, number | null, ...unknown[]])[],
  bands: { bottom: number; scale: number }[],
  [from, to]: [number, number],
  width: number,
): Rect[] {
  const across = width / (to - from);
  const at = (time: number) => (time - from) * across;
  return items.flatMap(([range, offset, bytes, start, end], index) => {
    const band = bands[range];
    if (!band) return [];
    const [x, right] = [start === null ? 0 : at(start), end === null ? width : at(end)];
    const size = Math.max(bytes * band.scale, 0.5);
    return [{ x, y: band.bottom - offset * band.scale - size, width: Math.max(right - x, 0.5), height: size, index }];
  });
}

/** What lies under a point, the smallest first. */
export function under(rects: Rect[], x: number, y: number): Rect | undefined {
  const hits = rects.filter((r) => x >= r.x && x <= r.x + r.width && y >= r.y && y <= r.y + r.height);
  return hits.sort((a, b) => a.width * a.height - b.width * b.height)[0];
}
