/** What the page "Curves" knows: runs and tags, which of them are shown, how charts are drawn, and what changed since. */
import { untrack } from "svelte";
import { calls } from "./calls";
import { app, isDark } from "../../state/app.svelte";
import type { Query } from "../../state/route";
import { labelsOf } from "../../state/runs";
import type { CurveFinding, CurveListing, CurveRun, ProfileMark } from "./types";
import type { Axis } from "./scale";

/** How often to ask what changed, in milliseconds. */
const POLL_MS = 1000;
/** Tags that the server makes of the times of points. */
export const SPEED = ["@step_time", "@steps_per_second"];
/** How much a chart is smoothed until somebody moves the slider, as in TensorBoard. */
const SMOOTH = 0.6;

const PALETTE = [
  "#1f77b4",
  "#e07b16",
  "#2a9d4e",
  "#c43d3d",
  "#8b62c4",
  "#8c5a4a",
  "#d45fa8",
  "#6b7280",
  "#9a9a1c",
  "#149fb0",
];
const PALETTE_DARK = [
  "#5aa9e6",
  "#f2a154",
  "#5ecb83",
  "#f07c7c",
  "#b79bea",
  "#c79a8a",
  "#f09ad0",
  "#a8b0bc",
  "#d0d04e",
  "#57cfdd",
];

/** The colour of a run: of the first ten as they come, then around the circle. */
export function colorOf(run: number): string {
  const dark = isDark();
  const listed = (dark ? PALETTE_DARK : PALETTE)[run];
  return listed ?? `hsl(${Math.round((run * 137.508) % 360)} 60% ${dark ? 65 : 42}%)`;
}

/** A regular expression, or the text itself where it is none; null for nothing. */
export function pattern(text: string): RegExp | null {
  if (text === "") return null;
  try {
    return new RegExp(text, "i");
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  }
}

/** Is it a regular expression? */
export function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}

/** Tags under their first part, as TensorBoard groups them; tags without parts first. */
export function groupsOf(tags: readonly string[]): { name: string; tags: string[] }[] {
  const groups = new Map<string, string[]>();
  for (const tag of tags) {
    const cut = tag.indexOf("/");
    const name = cut < 0 ? tag : tag.slice(0, cut);
    groups.set(name, [...(groups.get(name) ?? []), tag]);
  }
  return [...groups].map(([name, tags]) => ({ name, tags })).sort((a, b) => (a.name < b.name ? -1 : 1));
}

export class Curves {
  listing = $state.raw<CurveListing | null>(null);
  /** How often anything changed, and when each run did last: charts ask for those alone that grew since they asked. */
  times = $state(0);
  readonly grown = new Map<number, number>();
  reading = $state.raw<{ done: number; total: number } | null>(null);
  findings = $state.raw<CurveFinding[]>([]);
  timed = $state.raw<ReadonlySet<number>>(new Set());
  marks = $state.raw<ProfileMark[]>([]);
  /** Where the pointer is on the x-axis of any chart, for all that are linked. */
  hover = $state.raw<{ tag: string; x: number } | null>(null);
  lost = $state(false);
  #version = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  query = $derived(app.route.query);
  axis = $derived.by((): Axis => (this.query.x === "relative" || this.query.x === "wall" ? this.query.x : "step"));
  smooth = $derived.by(() => {
    const weight = Number(this.query.smooth ?? SMOOTH);
    return Number.isFinite(weight) ? Math.min(0.999, Math.max(0, weight)) : SMOOTH;
  });
  log = $derived(this.query.log === "1");
  outliers = $derived(this.query.outliers === "1");
  linked = $derived(this.query.link !== "0");
  runText = $derived(this.query.run ?? "");
  tagText = $derived(this.query.tag ?? "");
  pins = $derived(list(this.query.pins));
  hidden = $derived(new Set(list(this.query.off)));
  zoom = $derived(range(this.query.zoom));
  selected = $derived(range(this.query.range));

  runs = $derived((this.listing?.runs ?? []).filter((run) => !run.gone));
  labels = $derived(labelsOf(this.runs));
  matching = $derived.by(() => {
    const wanted = pattern(this.runText);
    return this.runs.filter((run) => wanted === null || wanted.test(run.name));
  });
  active = $derived(this.matching.filter((run) => !this.hidden.has(run.name)));
  tags = $derived.by(() => {
    const wanted = pattern(this.tagText);
    const sets = new Set(this.active.map((run) => run.set));
    const used = new Set([...sets].flatMap((set) => this.listing?.sets[set] ?? []));
    return (this.listing?.tags ?? []).filter((tag, place) => used.has(place) && (wanted === null || wanted.test(tag)));
  });
  groups = $derived(groupsOf(this.tags));
  /** Tags with distributions, each with a run that has it. */
  distributions = $derived.by(() => {
    const wanted = pattern(this.tagText);
    const all = this.active.flatMap((run) => run.histograms.map((tag) => ({ tag, run })));
    return all
      .filter(({ tag }) => wanted === null || wanted.test(tag))
      .sort((a, b) => (a.tag < b.tag ? -1 : a.tag > b.tag ? 1 : a.run.id - b.run.id));
  });
  /** Tags with pictures, each with a run that has it. */
  pictures = $derived.by(() => {
    const wanted = pattern(this.tagText);
    return this.active
      .flatMap((run) => run.images.map((tag) => ({ tag, run })))
      .filter(({ tag }) => wanted === null || wanted.test(tag))
      .sort((a, b) => (a.tag < b.tag ? -1 : a.tag > b.tag ? 1 : a.run.id - b.run.id));
  });
  /** Graphs of the shown runs. */
  graphs = $derived(this.active.flatMap((run) => run.graphs.map((tag) => ({ tag, run }))));
  /** Are there trials with hyperparameters? */
  trials = $derived(this.active.some((run) => run.trial));
  /** The latest texts of the shown runs. */
  texts = $derived.by(() => {
    const wanted = pattern(this.tagText);
    return this.active
      .flatMap((run) => run.texts.map((text) => ({ ...text, run })))
      .filter(({ tag }) => wanted === null || wanted.test(tag));
  });

  /** The shown runs that have a tag. */
  runsOf(tag: string): CurveRun[] {
    if (SPEED.includes(tag)) return this.active.filter((run) => this.timed.has(run.id));
    const place = this.listing?.tags.indexOf(tag) ?? -1;
    const having = new Set((this.listing?.sets ?? []).flatMap((set, number) => (set.includes(place) ? [number] : [])));
    return this.active.filter((run) => having.has(run.set));
  }

  /** Changes parts of the address; what is empty goes. */
  set(changes: Record<string, string | undefined>): void {
    const query: Query = { ...this.query };
    for (const [key, value] of Object.entries(changes)) {
      if (value === undefined || value === "") delete query[key];
      else query[key] = value;
    }
    app.setQuery(query);
  }

  setHidden(names: Iterable<string>): void {
    this.set({ off: pack([...names]) });
  }

  togglePin(tag: string): void {
    const pins = this.pins.includes(tag) ? this.pins.filter((pin) => pin !== tag) : [...this.pins, tag];
    this.set({ pins: pack(pins) });
  }

  /** Follows the server until the page is left. */
  start(): () => void {
    void this.#look();
    return () => {
      this.#stopped = true;
      clearTimeout(this.#timer);
    };
  }

  async #look(): Promise<void> {
    let soon = POLL_MS;
    try {
      if (!document.hidden || this.listing === null) soon = await this.#ask();
      this.lost = false;
    } catch {
      this.lost = true;
    }
    if (!this.#stopped) this.#timer = setTimeout(() => void this.#look(), soon);
  }

  async #ask(): Promise<number> {
    const state = await calls.state(this.#version);
    if (!state.ready) {
      this.reading = { done: state.done, total: state.total };
      return 150;
    }
    this.reading = null;
    if (state.version === this.#version && this.listing !== null) return POLL_MS;
    const first = this.listing === null;
    if (first || this.listing?.listing !== state.listing) this.listing = await calls.runs();
    this.#version = state.version;
    const times = untrack(() => this.times) + 1;
    for (const { run } of state.changed) this.grown.set(run, times);
    const last = new Map(state.changed.map((change) => [change.run, change]));
    const runs = this.listing.runs.map((run) => ({
      ...run,
      last_step: last.get(run.id)?.last_step ?? run.last_step,
      last_s: last.get(run.id)?.last_s ?? run.last_s,
    }));
    this.listing = { ...this.listing, runs };
    this.times = times;
    void this.#judge(first);
    return POLL_MS;
  }

  async #judge(first: boolean): Promise<void> {
    const { findings, timed } = await calls.findings().catch(() => ({ findings: [], timed: [] }));
    this.findings = findings;
    if (timed.length !== this.timed.size) this.timed = new Set(timed);
    if (first || this.marks.length === 0) await this.#place();
  }

  async #place(): Promise<void> {
    for (let times = 0; times < 20 && !this.#stopped; times++) {
      const { marks, complete } = await calls.profiles().catch(() => ({ marks: [], complete: true }));
      if (marks.length !== this.marks.length) this.marks = marks;
      if (complete) return;
    }
  }
}

/** Names in the address: separated by a character that no tag has. */
function pack(names: readonly string[]): string {
  return names.join("\n");
}

function list(text: string | undefined): string[] {
  return text === undefined || text === "" ? [] : text.split("\n");
}

function range(text: string | undefined): [number, number] | null {
  const [from, to] = (text ?? "").split("~").map(Number);
  return text !== undefined &&
    from !== undefined &&
    to !== undefined &&
    Number.isFinite(from) &&
    Number.isFinite(to) &&
    from < to
    ? [from, to]
    : null;
}
