/** The hosts' clocks: how far each was moved to where collectives end together, in words. */
import { count, duration } from "./format";
import type { HostClock, Timeline } from "./types";

/** Can any host be moved? */
export function canAlign(timeline: Timeline): boolean {
  return (timeline.clocks ?? []).some((clock) => !clock.reference && clock.shift_ns !== null);
}

/** Why clocks stay as they were recorded; null if they can be aligned, or if there is only one. */
export function whyNot(timeline: Timeline): string | null {
  if (!timeline.clocks || canAlign(timeline)) return null;
  const why = timeline.clocks.find((clock) => !clock.reference && clock.unknown !== null)?.unknown;
  return `Clocks cannot be aligned at collectives: ${why ?? "nothing is known about them"}`;
}

/** A host's shift, as short as its heading needs it; empty if there is nothing to say. */
export function shiftLabel(timeline: Timeline, host: number): string {
  const clock = timeline.clocks?.[host];
  if (!clock || timeline.clock !== "aligned") return "";
  if (clock.reference) return "reference clock";
  if (clock.shift_ns === null) return "clock unknown";
  return `${signed(clock.shift_ns)} ±${duration(clock.uncertainty_ns ?? 0)}`;
}

/** The same in a sentence, also for clocks that are drawn as recorded. */
export function shiftSentence(timeline: Timeline, host: number): string {
  const clock = timeline.clocks?.[host];
  if (!clock) return "";
  if (clock.reference) return "The other hosts’ clocks are compared with this one.";
  if (clock.shift_ns === null)
    return `The clock’s difference is unknown: ${clock.unknown ?? "nothing to compare"}. It is drawn as recorded.`;
  const by = `by ${signed(clock.shift_ns)} (±${duration(clock.uncertainty_ns ?? 0)}, from the ends of ${count(clock.collectives ?? 0)} common collectives)`;
  return timeline.clock === "aligned"
    ? `Its times are moved ${by}.`
    : `Drawn as recorded. Aligned at collectives, its times would move ${by}.`;
}

function signed(ns: number): string {
  return `${ns < 0 ? "−" : "+"}${duration(Math.abs(ns))}`;
}

/** What to add to the times of a link when it is to show the same on another clock: as much as the reference moves. */
export function difference(from: Timeline, to: Timeline): number {
  const reference = Math.max(
    0,
    (from.clocks ?? []).findIndex((clock: HostClock) => clock.reference),
  );
  return (to.shifts_ns?.[reference] ?? 0) - (from.shifts_ns?.[reference] ?? 0);
}
