/**
 * The part of the URL that belongs to the timeline, so that a link shows other people the same view. Pure: writing and
 * reading gives the same state; invalid parts are ignored, never an error.
 */
import type { ColorMode } from "../draw/colors";
import { emptyArrangement, type Arrangement } from "../model/layout";
import type { Evidence, Span } from "../model/types";

export interface LinkState {
  window: Span | null;
  /** The selected event. */
  selected: { track: number; event: number } | null;
  area: (Span & { tracks: number[] }) | null;
  marks: Span[];
  arrangement: Arrangement;
  mode: ColorMode;
  /** The critical path of the step in view is outlined. */
  critical: boolean;
  search: string;
  /** The list of hits is open. */
  listed: boolean;
  /** The range that a finding refers to: highlighted softly, and shown if no window is given. */
  place: Evidence | null;
}

export type Query = Record<string, string>;

/** The keys that this page writes; it ignores others in the URL. */
export const KEYS = [
  "view",
  "sel",
  "area",
  "marks",
  "fold",
  "pin",
  "filter",
  "empty",
  "order",
  "color",
  "path",
  "q",
  "hits",
  "from",
  "to",
  "finding",
] as const;

export function write(state: LinkState): Query {
  const { arrangement } = state;
  const order = [...arrangement.order].map(([process, ids]) => `${process}:${ids.join(".")}`);
  return {
    view: state.window ? span(state.window) : "",
    sel: state.selected ? `${state.selected.track}.${state.selected.event}` : "",
    area: state.area ? `${span(state.area)}~${state.area.tracks.join(".")}` : "",
    marks: state.marks.map(span).join("!"),
    fold: [...arrangement.toggled].join("."),
    pin: arrangement.pinned.join("."),
    filter: arrangement.filter,
    empty: arrangement.hideEmpty ? "hide" : "",
    order: order.join("!"),
    color: state.mode === "name" ? "name" : "",
    path: state.critical ? "critical" : "",
    q: state.search,
    hits: state.listed && state.search !== "" ? "list" : "",
    from: state.place ? number(state.place.start) : "",
    to: state.place ? number(state.place.end) : "",
    finding: state.place?.finding ?? "",
  };
}

export function read(query: Query): LinkState {
  const arrangement: Arrangement = {
    ...emptyArrangement(),
    toggled: new Set((query.fold ?? "").split(".").filter((key) => /^[pt]\d+$/.test(key))),
    pinned: ids(query.pin ?? ""),
    filter: query.filter ?? "",
    hideEmpty: query.empty === "hide",
  };
  for (const entry of (query.order ?? "").split("!")) {
    const [process, list] = entry.split(":");
    if (process && list && /^\d+$/.test(process)) arrangement.order.set(Number(process), ids(list));
  }
  const selected = /^(\d+)\.(\d+)$/.exec(query.sel ?? "");
  const [from, to, tracks] = (query.area ?? "").split("~");
  const area = readSpan(`${from}~${to}`);
  return {
    window: readSpan(query.view ?? ""),
    selected: selected ? { track: Number(selected[1]), event: Number(selected[2]) } : null,
    area: area ? { ...area, tracks: ids(tracks ?? "") } : null,
    marks: (query.marks ?? "")
      .split("!")
      .map(readSpan)
      .filter((s) => s !== null),
    arrangement,
    mode: query.color === "name" ? "name" : "category",
    critical: query.path === "critical",
    search: query.q ?? "",
    listed: query.hits === "list",
    place: evidence(readSpan(`${query.from ?? ""}~${query.to ?? query.from ?? ""}`), query.finding),
  };
}

function evidence(span: Span | null, finding: string | undefined): Evidence | null {
  return span && finding ? { ...span, finding } : span;
}

/** The same link for a clock that reads this much more; everything else in the address stays. */
export function moveLink(query: Query, by: number): Query {
  const state = read(query);
  const move = <T extends Span | null>(span: T): T =>
    span ? { ...span, start: span.start + by, end: span.end + by } : span;
  const moved = write({
    ...state,
    window: move(state.window),
    area: move(state.area),
    marks: state.marks.map(move),
    place: move(state.place),
  });
  const rest = Object.entries(query).filter(([key]) => !(KEYS as readonly string[]).includes(key));
  return Object.fromEntries([...rest, ...Object.entries(moved).filter(([, value]) => value !== "")]);
}

/** Nanoseconds with at most three decimals: picoseconds. */
function number(ns: number): string {
  return String(Math.round(ns * 1000) / 1000);
}

function span({ start, end }: Span): string {
  return `${number(start)}~${number(end)}`;
}

function readSpan(text: string): Span | null {
  const match = /^(-?[\d.]+(?:e[+-]?\d+)?)~(-?[\d.]+(?:e[+-]?\d+)?)$/i.exec(text);
  if (!match) return null;
  const [start, end] = [Number(match[1]), Number(match[2])];
  return Number.isFinite(start) && Number.isFinite(end) && end >= start ? { start, end } : null;
}

function ids(text: string): number[] {
  return text
    .split(".")
    .filter((id) => /^\d+$/.test(id))
    .map(Number);
}
