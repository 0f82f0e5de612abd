/**
 * Which tracks have nothing in view, so that they can be folded away. Pure.
 *
 * A track is empty only if the loaded tiles prove it. Where the tiles of the current level are not loaded, the level
 * that always is decides; its merged spans may hide a gap, so that it errs on the side of showing a track.
 */
import type { Layout } from "./layout";
import type { Part } from "./tiles";
import type { Span, Timeline } from "./types";
import { bucketNs, tileNs } from "./view";

/** True if a span of a part overlaps the window. */
export function touches(part: Part, window: Span): boolean {
  const { chunk } = part;
  const bucket = bucketNs(chunk.level);
  const from = (window.start - chunk.tile * tileNs(chunk.level)) / bucket;
  const to = (window.end - chunk.tile * tileNs(chunk.level)) / bucket;
  for (let i = part.first; i < part.first + part.count; i += 1) {
    if ((chunk.start[i] as number) <= to && (chunk.end[i] as number) >= from) return true;
  }
  return false;
}

/** Slots of tracks without an event in the window. `partsOf` gives what is loaded of a slot, null if that is nothing complete. */
export function emptySlots(
  timeline: Timeline,
  window: Span,
  partsOf: (slot: number) => readonly Part[] | null,
): Set<number> {
  const empty = new Set<number>();
  timeline.tracks.forEach((track, slot) => {
    // A counter has a value everywhere.
    if (track.kind === "counter") return;
    const outside = track.events === 0 || track.start_ns > window.end || track.end_ns < window.start;
    if (outside || partsOf(slot)?.some((part) => touches(part, window)) === false) empty.add(slot);
  });
  return empty;
}

export function sameSlots(a: ReadonlySet<number>, b: ReadonlySet<number>): boolean {
  return a.size === b.size && [...a].every((slot) => b.has(slot));
}

/** How far the list has to scroll so that the first track in sight stays where it is. */
export function anchorShift(before: Layout, after: Layout, scroll: number): number {
  const places = new Map(after.items.map((item) => [`${item.kind}${item.id}`, item]));
  for (const item of before.items) {
    const now = places.get(`${item.kind}${item.id}`);
    if (!item.pinned && item.y + item.height > scroll && now && !now.pinned) return now.y - item.y;
  }
  return 0;
}
