/**
 * Layout of the tracks: hosts → processes → tracks → rows, with folding, pinning, filtering and reordering. Pure.
 *
 * A track's *slot* is its position in the server's list; drawing works with slots, people and links with ids. A folded
 * process keeps a summary: the outermost row of its busiest tracks as thin lines. A folded track shows all its rows
 * squeezed, so that the shape of a call stack stays visible.
 */
import { distinct } from "./names";
import type { Timeline, Track } from "./types";

export const ROW = 18;
export const HEADER = 24;
export const COUNTER = 40;
const PAD = 4;
const SQUEEZED = 26;
const STRIP = 3;
const STRIPS = 8;
/** Deeper tracks start folded; more processes than this and the later ones do. */
const DEEP = 40;
/** So do deeper tracks that only repeat, by name, what stands above them: devices stay in sight of each other. */
const DEEP_DERIVED = 3;
const MANY_PROCESSES = 12;
const OPEN_PROCESSES = 6;

/** The user's changes. Folding is stored as a difference from the default, so that links stay short. */
export interface Arrangement {
  /** `p3` or `t7`: folded if open by default and the other way round. */
  toggled: Set<string>;
  pinned: number[];
  filter: string;
  /** Tracks without an event in view are folded away. */
  hideEmpty: boolean;
  /** Track ids per process in the user's order; missing ones follow in the server's order. */
  order: Map<number, number[]>;
}

export interface Item {
  kind: "host" | "process" | "track";
  id: number;
  /** Position in the list of tracks; -1 for headings. */
  slot: number;
  host: number;
  label: string;
  y: number;
  height: number;
  folded: boolean;
  pinned: boolean;
  foldable: boolean;
  /** Tracks below a heading. */
  tracks: number;
}

export interface Layout {
  items: Item[];
  /** Four numbers a slot: y of the first row, height of a row, number of rows shown, place (0 scrolls, 1 pinned, -1 nowhere). */
  slots: Float32Array;
  /** Height of what scrolls, and of the pinned part above it. */
  height: number;
  pinnedHeight: number;
  /** From a host's first to its last pixel in the scrolling part: for step bands. */
  hosts: { host: number; y: number; end: number }[];
  shown: number;
}

export function emptyArrangement(): Arrangement {
  return { toggled: new Set(), pinned: [], filter: "", hideEmpty: false, order: new Map() };
}

export function isFolded(key: string, byDefault: boolean, arrangement: Arrangement): boolean {
  return arrangement.toggled.has(key) !== byDefault;
}

/** Which processes start folded: the later ones of many, and empty ones. */
export function foldedByDefault(timeline: Timeline): Set<number> {
  const folded = new Set<number>();
  if (timeline.processes.length <= MANY_PROCESSES) return folded;
  let open = 0;
  for (const id of processOrder(timeline)) {
    if (open >= OPEN_PROCESSES) folded.add(id);
    open += 1;
  }
  return folded;
}

/** Processes by the first of their tracks in the server's order, host by host. */
export function processOrder(timeline: Timeline): number[] {
  const seen: number[] = [];
  const known = new Set<number>();
  for (const track of timeline.tracks) {
    if (!known.has(track.process)) {
      known.add(track.process);
      seen.push(track.process);
    }
  }
  const host = new Map(timeline.processes.map((p) => [p.id, p.host]));
  return seen
    .map((id, at) => ({ id, at, host: host.get(id) ?? 0 }))
    .sort((a, b) => a.host - b.host || a.at - b.at)
    .map((entry) => entry.id);
}

/** True when every word of the filter occurs in the name of the track, its process or its host; a word with `-` in front must not. */
export function matches(filter: string, ...names: string[]): boolean {
  const text = names.join("\n").toLowerCase();
  for (const word of filter.toLowerCase().split(/\s+/)) {
    if (word === "" || word === "-") continue;
    const not = word.startsWith("-");
    if (text.includes(not ? word.slice(1) : word) === not) return false;
  }
  return true;
}

function ordered(slots: number[], tracks: Track[], wish: number[] | undefined): number[] {
  if (!wish || wish.length === 0) return slots;
  const rank = new Map(wish.map((id, at) => [id, at]));
  const place = (slot: number) => rank.get(tracks[slot]?.id ?? -1) ?? Number.MAX_SAFE_INTEGER;
  return [...slots].sort((a, b) => place(a) - place(b) || a - b);
}

/** The current order of a process's tracks; the basis for reordering. */
export function trackOrder(timeline: Timeline, arrangement: Arrangement, process: number): number[] {
  const slots = timeline.tracks.flatMap((t, slot) => (t.process === process ? [slot] : []));
  return ordered(slots, timeline.tracks, arrangement.order.get(process)).map((slot) => timeline.tracks[slot]?.id ?? -1);
}

/** Moves a track within its process to where `before` stands, or to the end. */
export function move(timeline: Timeline, arrangement: Arrangement, track: number, before: number | null): Arrangement {
  const process = timeline.tracks.find((t) => t.id === track)?.process;
  if (process === undefined) return arrangement;
  const rest = trackOrder(timeline, arrangement, process).filter((id) => id !== track);
  const at = before === null ? rest.length : rest.indexOf(before);
  if (at < 0) return arrangement;
  rest.splice(at, 0, track);
  return { ...arrangement, order: new Map(arrangement.order).set(process, rest) };
}

class Placer {
  readonly items: Item[] = [];
  readonly slots: Float32Array;
  y = 0;
  shown = 0;

  constructor(
    readonly timeline: Timeline,
    readonly arrangement: Arrangement,
  ) {
    this.slots = new Float32Array(Math.max(1, timeline.tracks.length) * 4);
    for (let i = 3; i < this.slots.length; i += 4) this.slots[i] = -1;
  }

  heading(kind: "host" | "process", id: number, host: number, label: string, folded: boolean, tracks: number): Item {
    const item: Item = {
      kind,
      id,
      slot: -1,
      host,
      label,
      y: this.y,
      height: HEADER,
      folded,
      pinned: false,
      foldable: kind === "process",
      tracks,
    };
    this.items.push(item);
    this.y += HEADER;
    return item;
  }

  track(slot: number, host: number, pinned: boolean, label: string): void {
    const track = this.timeline.tracks[slot];
    if (!track) return;
    const counter = track.kind === "counter";
    const rows = Math.max(1, track.rows);
    const folded =
      !counter &&
      rows > 1 &&
      isFolded(`t${track.id}`, rows > (track.kind === "derived" ? DEEP_DERIVED : DEEP), this.arrangement);
    const rowHeight = counter ? COUNTER - PAD : folded ? Math.max(2, Math.min(6, Math.floor(SQUEEZED / rows))) : ROW;
    const rowsShown = counter ? 1 : folded ? Math.min(rows, Math.floor(SQUEEZED / rowHeight)) : rows;
    const height = Math.max(ROW, rowHeight * rowsShown) + PAD;
    this.place(slot, this.y + PAD / 2, rowHeight, rowsShown, pinned);
    this.items.push({
      kind: "track",
      id: track.id,
      slot,
      host,
      label,
      y: this.y,
      height,
      folded,
      pinned,
      foldable: !counter && rows > 1,
      tracks: 0,
    });
    this.y += height;
    this.shown += 1;
  }

  /** The outermost rows of a folded process, one thin line per track. */
  strips(slots: number[], heading: Item): void {
    const busiest = slots
      .filter((slot) => this.timeline.tracks[slot]?.kind !== "counter")
      .sort((a, b) => (this.timeline.tracks[b]?.busy_ns ?? 0) - (this.timeline.tracks[a]?.busy_ns ?? 0))
      .slice(0, STRIPS)
      .sort((a, b) => a - b);
    const height = Math.max(HEADER, busiest.length * STRIP + PAD);
    busiest.forEach((slot, at) => this.place(slot, heading.y + PAD / 2 + at * STRIP, STRIP, 1, false));
    heading.height = height;
    this.y = heading.y + height;
  }

  private place(slot: number, y: number, rowHeight: number, rows: number, pinned: boolean): void {
    this.slots.set([y, rowHeight, rows, pinned ? 1 : 0], slot * 4);
  }
}

/** Places everything; `hidden` slots only if they are pinned. */
export function arrange(timeline: Timeline, arrangement: Arrangement, hidden: ReadonlySet<number> = new Set()): Layout {
  const placer = new Placer(timeline, arrangement);
  const slotOf = new Map(timeline.tracks.map((t, slot) => [t.id, slot]));
  const processOf = new Map(timeline.processes.map((p) => [p.id, p]));
  const pinned = new Set(arrangement.pinned);
  for (const id of arrangement.pinned) {
    const slot = slotOf.get(id);
    const track = slot === undefined ? undefined : timeline.tracks[slot];
    if (slot === undefined || !track) continue;
    const process = processOf.get(track.process);
    placer.track(slot, process?.host ?? 0, true, track.name || process?.name || "");
  }
  const pinnedHeight = placer.y;
  placer.y = 0;
  const hosts: Layout["hosts"] = [];
  const labels = distinct(timeline.hosts);
  const closed = foldedByDefault(timeline);
  const groups = new Map<number, number[]>();
  timeline.tracks.forEach((track, slot) => {
    if (pinned.has(track.id) || hidden.has(slot)) return;
    const process = processOf.get(track.process);
    if (!matches(arrangement.filter, track.name, process?.name ?? "", timeline.hosts[process?.host ?? 0] ?? "")) return;
    const group = groups.get(track.process);
    if (group) group.push(slot);
    else groups.set(track.process, [slot]);
  });
  for (const id of processOrder(timeline)) {
    const group = groups.get(id);
    if (!group) continue;
    const process = processOf.get(id);
    const host = process?.host ?? 0;
    if (hosts.at(-1)?.host !== host) {
      const start = placer.y;
      if (timeline.hosts.length > 1) placer.heading("host", host, host, labels[host] || `host ${host}`, false, 0);
      hosts.push({ host, y: start, end: start });
    }
    const folded = isFolded(`p${id}`, closed.has(id), arrangement);
    const heading = placer.heading(
      "process",
      id,
      host,
      process?.name || process?.kind || `process ${id}`,
      folded,
      group.length,
    );
    if (folded) placer.strips(group, heading);
    else
      for (const slot of ordered(group, timeline.tracks, arrangement.order.get(id)))
        placer.track(slot, host, false, timeline.tracks[slot]?.name || timeline.tracks[slot]?.kind || "");
    const band = hosts.at(-1);
    if (band) band.end = placer.y;
  }
  return { items: placer.items, slots: placer.slots, height: placer.y, pinnedHeight, hosts, shown: placer.shown };
}

/** The item under a height of the scrolling (or pinned) part, or undefined. */
export function itemAt(layout: Layout, y: number, pinned: boolean): Item | undefined {
  return layout.items.find((item) => item.pinned === pinned && y >= item.y && y < item.y + item.height);
}

/** The row of an item's track at a height, clamped to the rows that are there. */
export function rowAt(layout: Layout, slot: number, y: number): number {
  const top = layout.slots[slot * 4] ?? 0;
  const height = layout.slots[slot * 4 + 1] ?? 1;
  const rows = layout.slots[slot * 4 + 2] ?? 1;
  return Math.max(0, Math.min(rows - 1, Math.floor((y - top) / height)));
}

/** Tracks with events that are not folded away, from top to bottom; their ids. */
export function shownTracks(timeline: Timeline, layout: Layout): number[] {
  const { slots } = layout;
  const top = (slot: number) => (slots[slot * 4 + 3] === 1 ? -1e9 : 0) + (slots[slot * 4] ?? 0);
  const shown = timeline.tracks.flatMap((track, slot) =>
    (slots[slot * 4 + 3] ?? -1) >= 0 && track.kind !== "counter" ? [slot] : [],
  );
  return shown.sort((a, b) => top(a) - top(b)).flatMap((slot) => timeline.tracks[slot]?.id ?? []);
}

/** What a host did beside one of its devices: everything that is neither on a device nor a counter. */
export function threadsBeside(timeline: Timeline, device: number): Track[] {
  const processOf = (id: number) => timeline.processes.find((one) => one.id === id);
  const host = processOf(device)?.host;
  return timeline.tracks.filter((track) => {
    const process = processOf(track.process);
    return process?.kind !== "device" && process?.host === host && track.kind !== "counter";
  });
}

/** Where an event's row is in the scrolling part; null if its track is pinned or not shown. */
export function rowOf(
  layout: Layout,
  slotOf: ReadonlyMap<number, number>,
  event: { track: number; row: number },
): { y: number; height: number } | null {
  const slot = slotOf.get(event.track);
  const item = layout.items.find((i) => i.kind === "track" && i.slot === slot);
  if (!item || item.pinned) return null;
  const height = layout.slots[item.slot * 4 + 1] ?? item.height;
  return { y: (layout.slots[item.slot * 4] ?? item.y) + event.row * height, height };
}
