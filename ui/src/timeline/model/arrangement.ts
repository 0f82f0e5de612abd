/** The user's changes of the arrangement: folding, pinning and reordering tracks. Pure: each gives a new arrangement. */
import { type Arrangement, foldedByDefault, isFolded, type Item, type Layout, move, trackOrder } from "./layout";
import type { Timeline, Track } from "./types";

/** Folds what is open, opens what is folded. */
export function toggle(arrangement: Arrangement, item: Pick<Item, "kind" | "id">): Arrangement {
  const toggled = new Set(arrangement.toggled);
  const key = `${item.kind === "process" ? "p" : "t"}${item.id}`;
  if (!toggled.delete(key)) toggled.add(key);
  return { ...arrangement, toggled };
}

/** Folds or opens all processes. */
export function foldAll(timeline: Timeline, arrangement: Arrangement, folded: boolean): Arrangement {
  const toggled = new Set([...arrangement.toggled].filter((key) => key.startsWith("t")));
  const byDefault = foldedByDefault(timeline);
  for (const process of timeline.processes) if (byDefault.has(process.id) !== folded) toggled.add(`p${process.id}`);
  return { ...arrangement, toggled };
}

/** Pins a track to the top, or takes it back to its place. */
export function pin(arrangement: Arrangement, track: number): Arrangement {
  const { pinned } = arrangement;
  return { ...arrangement, pinned: pinned.includes(track) ? pinned.filter((id) => id !== track) : [...pinned, track] };
}

/** Moves one position up or down among the tracks that are shown (`shown`: their ids), within its process or among the pinned. */
export function shift(
  timeline: Timeline,
  arrangement: Arrangement,
  item: Pick<Item, "id" | "slot" | "pinned">,
  by: -1 | 1,
  shown: ReadonlySet<number>,
): Arrangement {
  const process = timeline.tracks[item.slot]?.process;
  if (process === undefined) return arrangement;
  const list = item.pinned ? arrangement.pinned : trackOrder(timeline, arrangement, process);
  const visible = list.filter((id) => shown.has(id) && (item.pinned || !arrangement.pinned.includes(id)));
  const other = visible[visible.indexOf(item.id) + by];
  if (other === undefined || !visible.includes(item.id)) return arrangement;
  const moved = list.filter((id) => id !== item.id);
  moved.splice(moved.indexOf(other) + (by === 1 ? 1 : 0), 0, item.id);
  return item.pinned
    ? { ...arrangement, pinned: moved }
    : { ...arrangement, order: new Map(arrangement.order).set(process, moved) };
}

/** A track was dropped on another. */
export function dropOn(timeline: Timeline, arrangement: Arrangement, track: number, before: number): Arrangement {
  const { pinned } = arrangement;
  if (!pinned.includes(track) || !pinned.includes(before)) return move(timeline, arrangement, track, before);
  const rest = pinned.filter((id) => id !== track);
  rest.splice(rest.indexOf(before), 0, track);
  return { ...arrangement, pinned: rest };
}

/** The arrangement that shows a track: its process unfolded, or no filter. Null if it is shown already. */
export function showing(
  timeline: Timeline,
  arrangement: Arrangement,
  layout: Layout,
  track: Track,
): Arrangement | null {
  const key = `p${track.process}`;
  const folded = isFolded(key, foldedByDefault(timeline).has(track.process), arrangement);
  const filtered = !folded && (layout.slots[timeline.tracks.indexOf(track) * 4 + 3] ?? -1) < 0;
  if (!folded && !filtered) return null;
  const toggled = new Set(arrangement.toggled);
  if (folded && !toggled.delete(key)) toggled.add(key);
  return { ...arrangement, toggled, filter: filtered ? "" : arrangement.filter };
}
