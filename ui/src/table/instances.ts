/** The events behind a row: their durations, and what is known of where one comes from. */
import type { View } from "../server/views";
import { text, values } from "./view";
import type { EventDetails, EventRef, Flow, Hit } from "../server/events";

export interface Found {
  total: number;
  hits: Hit[];
}

/** A search for events of exactly this name. */
export function exactly(name: string): string {
  return `/^${name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}$/`;
}

/** Milliseconds in ascending order, and the events with the longest first. */
export function instancesOf({ hits }: Found): {
  durations: number[];
  slowest: Hit[];
  median: number | undefined;
  fastest: number | undefined;
} {
  // Where some are called like the row, others only contain its name.
  const own = hits.some((hit) => hit.whole) ? hits.filter((hit) => hit.whole) : hits;
  const slowest = [...own].sort((a, b) => b.dur_ns - a.dur_ns);
  const durations = slowest.map((hit) => hit.dur_ns / 1e6).reverse();
  return { durations, slowest, median: durations[Math.floor(durations.length / 2)], fastest: durations[0] };
}

/** Arguments that say what an event worked on and which line asked for it. */
const TELLING =
  /shape|dims|dtype|type$|^(call )?stack|source|file|line|module|op_name|tf_op|hlo|grid|block|registers|occupancy|bytes|flops/i;
const MOST = 8;
const LONGEST = 300;

/** The event that started this one from another track, such as the launch of a kernel. */
export function starterOf(event: EventDetails): EventRef | null {
  return event.flows.find((flow) => flow.direction === "in") ?? null;
}

/** What started an event, what it is part of, and what it worked on. */
export function originOf(event: Pick<EventDetails, "flows" | "parents" | "args">): {
  flows: (Flow & { words: string })[];
  parents: EventRef[];
  args: [string, string][];
} {
  const words = (flow: Flow) =>
    flow.kind === "launch" || /launch/i.test(flow.name)
      ? flow.direction === "in"
        ? "Launched by"
        : "Launches"
      : flow.direction === "in"
        ? "Arrow from"
        : "Arrow to";
  const args = event.args.filter((arg) => TELLING.test(arg.key)).slice(0, MOST);
  return {
    flows: event.flows.slice(0, 4).map((flow) => ({ ...flow, words: words(flow) })),
    parents: event.parents.slice(0, 4),
    args: args.map(({ key, value }) => [key, String(value).slice(0, LONGEST)]),
  };
}

/** The line of source of an instruction, by the table of all instructions; empty if it is not known. */
export function sourceOf(view: View, ...names: string[]): string {
  const bare = (name: string) => name.replace(/^%/, "").replace(/ = .*/s, "");
  const wanted = new Set(names.map(bare));
  const row = values(view, "op").findIndex((name) => typeof name === "string" && wanted.has(bare(name)));
  return row < 0 ? "" : text(view, "source", row);
}
