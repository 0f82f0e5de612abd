/** User actions on a timeline: select, step, search, mark, arrange. Holds the state of the panels; the engine draws. */
import { prove } from "./prove";
import { problemOf } from "../../server/ask";
import { dropOn, foldAll, pin, shift, showing, toggle } from "../model/arrangement";
import type { ColorMode } from "../draw/colors";
import { type LinkState, read, write, type Query } from "../input/deeplink";
import type { Engine } from "../draw/engine";
import { Finder } from "./finder.svelte";
import type { Hover } from "../draw/hover";
import type { Commands } from "../input/input";
import {
  type Arrangement,
  emptyArrangement,
  type Item,
  type Layout,
  rowOf,
  shownTracks,
  threadsBeside,
} from "../model/layout";
import { beside, firstOn } from "../input/keyboard";
import type { Source } from "../model/net";
import type { Page } from "./page";
import { type Area, tracksBetween } from "../draw/selection";
import type { AreaAnswer, EventDetails, EventRef, Flow, Hit, Span, StepPath } from "../model/types";
import { fit, reveal, spanOf, within } from "../model/view";

/** Minimum width on the screen (px) of a selected event; below it the view zooms in. */
const SMALL_PX = 3;

/** More tracks than this do not fit into an address. */
const MOST_TRACKS = 1000;

export class Controller implements Commands {
  selected = $state.raw<EventDetails | null>(null);
  area = $state.raw<Area | null>(null);
  areaAnswer = $state.raw<AreaAnswer | null>(null);
  marks = $state.raw<Span[]>([]);
  mode = $state.raw<ColorMode>("category");
  hover = $state.raw<Hover | null>(null);
  layout = $state.raw<Layout | null>(null);
  filter = $state.raw("");
  hideEmpty = $state.raw(false);
  critical = $state.raw(false);
  paths = $state.raw<readonly StepPath[]>([]);
  problem = $state.raw("");
  readonly finder: Finder;
  engine!: Engine;
  private asked = 0;
  private areaAbort: AbortController | null = null;

  constructor(
    private readonly source: Source,
    private readonly page: Page,
  ) {
    this.finder = new Finder({
      engine: () => this.engine,
      select: (hit) => this.select(hit),
      changed: () => page.changed(),
      say: (text) => page.say(text),
      fail: (error) => this.fail(error),
    });
  }

  // ---- the address ----

  link(): LinkState {
    const { engine } = this;
    const { start, end } = engine.goal;
    const opened = start === engine.opening.start && end === engine.opening.end;
    return {
      window: opened ? null : { start, end },
      selected: this.selected,
      area: this.area,
      marks: this.marks,
      arrangement: engine.arrangement,
      mode: this.mode,
      critical: this.critical,
      search: this.finder.text,
      listed: this.finder.listed,
      place: engine.place,
    };
  }

  query(): Query {
    return write(this.link());
  }

  /** Applies the state of a URL. */
  apply(query: Query): void {
    const state = read(query);
    const { engine } = this;
    engine.arrangeAs(state.arrangement);
    this.filter = state.arrangement.filter;
    this.hideEmpty = state.arrangement.hideEmpty;
    this.finder.listed = state.listed;
    this.setMode(state.mode);
    this.critical = state.critical;
    engine.place = state.place;
    this.marks = engine.marks = state.marks;
    if (state.window) engine.show(state.window);
    else if (state.place) engine.show(fit(state.place, 0.6));
    else engine.show(engine.opening);
    void prove(engine, this.source.evidence, state.place, !state.window);
    engine.critical.show(state.critical, engine.goal);
    if (state.selected) void this.select(state.selected, "scroll");
    else this.deselect();
    if (state.area) void this.selectArea(state.area);
    else this.dropArea();
    if (state.search !== this.finder.text)
      void this.finder.search(state.search, !state.window && !state.selected && !state.place);
    engine.invalidate();
  }

  // ---- events ----

  /** Selects an event; by default the view moves so that it is visible (`scroll`: to its track, not to its time). */
  async select(event: { track: number; event: number }, move: "there" | "scroll" | "stay" = "there"): Promise<void> {
    this.asked += 1;
    const asked = this.asked;
    try {
      const details = await this.source.event(event.track, event.event);
      if (asked !== this.asked) return;
      this.selected = this.engine.selected = details;
      this.dropArea();
      if (move !== "stay") this.scrollTo(details);
      if (move === "there") this.bring(details);
      this.engine.invalidate(true);
      this.page.say(`${details.name}, ${details.thread}, ${details.process}`);
      this.page.changed();
    } catch (error) {
      this.fail(error);
    }
  }

  selectRef(ref: EventRef): void {
    void this.select(ref);
  }

  /** Unfolds and scrolls until an event's row is visible. */
  private scrollTo(event: { track: number; row: number }): void {
    this.unfold(event.track);
    const row = rowOf(this.engine.layout, this.engine.slotOf, event);
    if (row) this.page.scrollTo(row.y, row.height);
  }

  /** Moves to an event's time; zooms in if it would be too narrow to see. */
  private bring(event: EventDetails): void {
    const { engine } = this;
    const span = spanOf(event);
    const px = engine.xOf(span.end) - engine.xOf(span.start);
    const window = px < SMALL_PX && span.end > span.start ? fit(span, 0.05) : reveal(engine.goal, span);
    if (window !== engine.goal) this.glide(window);
  }

  private glide(window: Span): void {
    this.engine.show(window, !this.page.calm());
    this.page.changed();
  }

  private unfold(track: number): void {
    const { engine } = this;
    const found = engine.timeline.tracks.find((t) => t.id === track);
    if (!found) return;
    engine.unhide(engine.slotOf.get(track) ?? -1);
    const shown = showing(engine.timeline, engine.arrangement, engine.layout, found);
    if (!shown) return;
    this.filter = shown.filter;
    this.rearrange(shown);
  }

  private deselect(): void {
    this.asked += 1;
    this.selected = this.engine.selected = null;
  }

  neighbour(dir: "next" | "previous", same: "name" | "row"): void {
    const { selected } = this;
    if (!selected) return;
    this.source.neighbour(selected.track, selected.event, dir, same).then(
      (hit) => {
        if (hit) void this.select(hit);
        else this.page.say(dir === "next" ? "No later event" : "No earlier event");
      },
      (error) => this.fail(error),
    );
  }

  /** Selects an event in view; with a selection, shows it. */
  pick(): void {
    if (this.selected) this.fit();
    else this.take(firstOn(this.source, shownTracks(this.engine.timeline, this.engine.layout), this.engine.goal));
  }

  /** Moves the selection to what is beside, around or inside it. */
  step(way: "left" | "right" | "up" | "down"): void {
    const { selected, engine } = this;
    if (!selected) this.pick();
    else if (way === "left" || way === "right") this.neighbour(way === "right" ? "next" : "previous", "row");
    else if (way === "up" && selected.parents[0]) this.selectRef(selected.parents[0]);
    else this.take(beside(this.source, selected, way, shownTracks(engine.timeline, engine.layout), engine.goal));
  }

  private take(found: Promise<Hit | null>): void {
    found.then(
      (hit) => {
        if (hit) void this.select(hit);
        else this.page.say("No event in view");
      },
      (error) => this.fail(error),
    );
  }

  flow(direction: "in" | "out"): boolean {
    const flow = this.selected?.flows.find((f) => f.direction === direction);
    if (flow) void this.select(flow);
    return flow !== undefined;
  }

  both(): boolean {
    const flow = this.selected?.flows[0];
    if (flow) this.showBoth(flow);
    return flow !== undefined;
  }

  /** Zooms and scrolls until both ends of an arrow are visible. If they are too far apart, the other end is pinned to the top. */
  showBoth(flow: Flow): void {
    const { selected, engine } = this;
    if (!selected) return;
    for (const end of [flow, selected]) this.unfold(end.track);
    const rows = [selected, flow].map((end) => rowOf(engine.layout, engine.slotOf, end)).filter((row) => row !== null);
    const top = Math.min(...rows.map((row) => row.y));
    const height = Math.max(...rows.map((row) => row.y + row.height)) - top;
    if (rows.length === 2 && height > this.page.room()) {
      this.rearrange(pin(engine.arrangement, flow.track));
      this.scrollTo(selected);
    } else if (rows.length > 0) this.page.scrollTo(top, height);
    const ends = [selected.start_ns, flow.start_ns, selected.start_ns + selected.dur_ns, flow.start_ns + flow.dur_ns];
    this.glide(fit({ start: Math.min(...ends), end: Math.max(...ends) }, 0.8));
  }

  // ---- pointer ----

  click(x: number, y: number): void {
    const found = this.engine.at(x, y);
    if (found?.idle !== undefined) {
      this.selectIdle(found);
      return;
    }
    if (!found || found.count === 0) {
      this.clear();
      return;
    }
    if (found.count === 1) {
      void this.select({ track: found.track.id, event: found.event }, "stay");
      return;
    }
    const tolerance = (this.engine.timeAt(1) - this.engine.timeAt(0)) * 2;
    this.source.at(found.track.id, found.row, this.engine.timeAt(x), tolerance).then(
      (hit) => {
        if (hit) void this.select(hit, "stay");
      },
      (error) => this.fail(error),
    );
  }

  /** An idle time of a device: what its host did meanwhile. */
  private selectIdle(gap: Hover): void {
    const beside = threadsBeside(this.engine.timeline, gap.track.process);
    this.glide(fit(gap, 0.6));
    void this.selectArea({
      start: gap.start,
      end: gap.end,
      tracks: beside.slice(0, MOST_TRACKS).map((track) => track.id),
    });
  }

  drag(x0: number, y0: number, x1: number, y1: number, done: boolean): void {
    const { engine } = this;
    const [left, right] = x0 < x1 ? [x0, x1] : [x1, x0];
    const tracks = tracksBetween(engine.timeline, engine.layout, engine.scroll, y0, y1);
    if (tracks.length < engine.timeline.tracks.length) tracks.splice(MOST_TRACKS);
    const area = { ...within({ start: engine.timeAt(left), end: engine.timeAt(right) }, engine.bounds), tracks };
    engine.area = area;
    engine.point(x1, y1);
    if (done) void this.selectArea(area);
  }

  cancelDrag(): void {
    this.engine.area = this.area;
    this.engine.invalidate(true);
  }

  hoverAt(hover: Hover | null): void {
    this.hover = hover;
  }

  hoverMove(x: number, y: number): void {
    this.engine.point(x, y);
  }

  leave(): void {
    this.engine.unpoint();
  }

  // ---- area ----

  async selectArea(area: Area): Promise<void> {
    this.areaAbort?.abort();
    const abort = (this.areaAbort = new AbortController());
    this.deselect();
    this.area = this.engine.area = area;
    this.areaAnswer = null;
    this.engine.invalidate(true);
    this.page.changed();
    if (area.tracks.length === 0) {
      this.areaAnswer = { rows: [], events: 0, flame: [], span_ns: area.end - area.start };
      return;
    }
    try {
      const all = area.tracks.length === this.engine.timeline.tracks.length;
      const answer = await this.source.area(area.start, area.end, all ? null : area.tracks, abort.signal);
      if (abort.signal.aborted) return;
      this.areaAnswer = answer;
      this.page.say(`Selection with ${answer.events} events`);
    } catch (error) {
      if (!abort.signal.aborted) this.fail(error);
    }
  }

  private dropArea(): void {
    this.areaAbort?.abort();
    this.area = this.engine.area = null;
    this.areaAnswer = null;
  }

  // ---- view ----

  zoomBy(factor: number, x: number | null): void {
    this.engine.zoomBy(factor, x);
    this.page.changed();
  }

  panBy(share: number): void {
    this.engine.panBy(share);
    this.page.changed();
  }

  panPx(px: number): void {
    this.engine.panPx(px);
    this.page.changed();
  }

  scrollBy(px: number): void {
    this.page.scrollBy(px);
  }

  wake(): void {
    this.engine.invalidate();
  }

  /** The selection fills most of the width; without one, everything is shown. */
  fit(): void {
    const { selected, area, engine } = this;
    if (selected) this.glide(fit(spanOf(selected), 0.6));
    else if (area) this.glide(fit(area, 0.9));
    else if (engine.place) this.glide(fit(engine.place, 0.6));
    else this.fitAll();
  }

  fitAll(): void {
    this.glide(this.engine.bounds);
  }

  goTo(window: Span): void {
    this.glide(window);
  }

  /** Without animation: for dragging on the minimap. */
  showNow(window: Span): void {
    this.engine.show(window);
    this.page.changed();
  }

  // ---- marks ----

  mark(): void {
    const { selected, area } = this;
    const span = selected ? spanOf(selected) : area && { start: area.start, end: area.end };
    if (!span) return;
    const same = (m: Span) => m.start === span.start && m.end === span.end;
    // Marking a marked range removes the mark.
    this.setMarks(this.marks.some(same) ? this.marks.filter((m) => !same(m)) : [...this.marks, span]);
  }

  setMarks(marks: Span[]): void {
    this.marks = this.engine.marks = marks;
    this.engine.invalidate(true);
    this.page.changed();
  }

  clear(): void {
    if (this.engine.place) this.engine.place = null;
    else if (this.finder.text !== "") void this.searchFor("");
    this.dismiss();
  }

  /** Closes the panel of the selection, and keeps the search. */
  dismiss(): void {
    this.deselect();
    this.dropArea();
    this.engine.invalidate();
    this.page.changed();
  }

  // ---- search ----

  search(): void {
    this.page.focusSearch();
  }

  help(): void {
    this.page.showKeys();
  }

  searchFor(text: string): Promise<void> {
    return this.finder.search(text);
  }

  stepHit(by: 1 | -1): Promise<void> {
    return this.finder.step(by);
  }

  // ---- arrangement ----

  setMode(mode: ColorMode): void {
    this.mode = mode;
    this.engine.setMode(mode);
    this.page.changed();
  }

  /** Outlines the critical path of the step in view, or no longer. */
  setCritical(critical: boolean): void {
    this.critical = critical;
    this.engine.critical.show(critical, this.engine.goal);
    this.page.changed();
  }

  setFilter(filter: string): void {
    this.filter = filter;
    this.rearrange({ ...this.engine.arrangement, filter });
  }

  setHideEmpty(hideEmpty: boolean): void {
    this.hideEmpty = hideEmpty;
    this.rearrange({ ...this.engine.arrangement, hideEmpty });
  }

  fold(item: Item): void {
    this.rearrange(toggle(this.engine.arrangement, item));
  }

  foldAll(folded: boolean): void {
    this.rearrange(foldAll(this.engine.timeline, this.engine.arrangement, folded));
  }

  pin(item: Pick<Item, "id">): void {
    this.rearrange(pin(this.engine.arrangement, item.id));
  }

  /** Pins the track of the selected event, or takes it back. */
  pinSelected(): void {
    if (this.selected) this.pin({ id: this.selected.track });
  }

  shift(item: Item, by: -1 | 1): void {
    const shown = new Set(this.engine.layout.items.flatMap((one) => (one.kind === "track" ? one.id : [])));
    this.rearrange(shift(this.engine.timeline, this.engine.arrangement, item, by, shown));
  }

  /** A track was dropped on another. */
  moveTo(track: number, before: number): void {
    this.rearrange(dropOn(this.engine.timeline, this.engine.arrangement, track, before));
  }

  resetArrangement(): void {
    this.filter = "";
    this.hideEmpty = false;
    this.rearrange(emptyArrangement());
  }

  private rearrange(arrangement: Arrangement): void {
    this.engine.arrangeAs(arrangement);
    this.page.changed();
  }

  fail(error: unknown): void {
    const problem = problemOf(error);
    this.problem = problem.found ? `${problem.what}: ${problem.found}` : problem.what;
  }
}
