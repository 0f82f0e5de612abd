/** Where the keyboard takes the selection: an event in view, the one inside, or one on the next track. */
import type { Source } from "../model/net";
import type { EventDetails, Hit, Span } from "../model/types";

/** Tracks that one key press asks for an event. */
const MOST_ASKED = 20;

/** The longest event in view on the first track that has one. */
export async function firstOn(
  source: Pick<Source, "at">,
  tracks: readonly number[],
  window: Span,
): Promise<Hit | null> {
  const [middle, reach] = [(window.start + window.end) / 2, (window.end - window.start) / 2];
  for (const track of tracks.slice(0, MOST_ASKED)) {
    const hit = await source.at(track, 0, middle, reach);
    if (hit) return hit;
  }
  return null;
}

/** Downwards the longest event inside the selected one, else one on the tracks below; upwards one on the tracks above. */
export async function beside(
  source: Pick<Source, "at">,
  selected: EventDetails,
  way: "up" | "down",
  shown: readonly number[],
  window: Span,
): Promise<Hit | null> {
  const place = shown.indexOf(selected.track);
  if (way === "up") return firstOn(source, shown.slice(0, Math.max(0, place)).reverse(), window);
  const end = selected.start_ns + selected.dur_ns;
  const inside = await source.at(
    selected.track,
    selected.row + 1,
    selected.start_ns + selected.dur_ns / 2,
    selected.dur_ns / 2,
  );
  if (inside && inside.start_ns >= selected.start_ns && inside.start_ns + inside.dur_ns <= end) return inside;
  return firstOn(source, shown.slice(place + 1), window);
}
