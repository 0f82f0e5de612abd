/** Search over the whole trace: how many hits, stepping through them page by page, and which names match. */
import type { Source } from "../model/net";
import type { Scene } from "./scene";
import type { Chunk } from "../model/tiles";
import type { Hit, SearchAnswer } from "../model/types";

const PAGE = 500;

/** Matches names that are already loaded as the server would: `/…/` is a regular expression, case is ignored. */
export function matcher(text: string): ((name: string) => boolean) | null {
  const pattern = /^\/(.+)\/$/.exec(text)?.[1];
  if (pattern !== undefined) {
    try {
      const regex = new RegExp(pattern, "i");
      return (name) => regex.test(name);
    } catch {
      return null;
    }
  }
  const wanted = text.toLowerCase();
  return wanted === "" ? null : (name) => name.toLowerCase().includes(wanted);
}

/** The number of the first hit at or after a share (0 to 1) of the session, estimated from the counts. */
export function firstFrom(density: readonly number[], share: number): number {
  const until = Math.floor(Math.max(0, Math.min(1, share)) * density.length);
  let n = 0;
  for (let i = 0; i < until; i += 1) n += density[i] ?? 0;
  return n;
}

export class Search {
  text = "";
  total = 0;
  names = 0;
  /** Number of the hit that was stepped to; -1 before the first step. */
  at = -1;
  density: number[] = [];
  /** The names that match, as tiles number them; null until the server has said, or if there are too many. */
  ids: ReadonlySet<number> | null = null;
  /** Grows with every new text and with its answer; chunks compare it with theirs. */
  version = 0;
  private readonly pages = new Map<number, Hit[]>();
  private readonly asked = new Map<number, Promise<SearchAnswer>>();
  private running: AbortController | null = null;

  constructor(private readonly source: Source) {}

  get active(): boolean {
    return this.text !== "";
  }

  /** Starts a new search; true if it completed (and was not replaced by another). */
  async start(text: string): Promise<boolean> {
    this.running?.abort();
    this.text = text;
    this.version += 1;
    this.at = -1;
    this.total = 0;
    this.names = 0;
    this.density = [];
    this.ids = null;
    this.pages.clear();
    this.asked.clear();
    if (text === "") return true;
    const running = new AbortController();
    this.running = running;
    try {
      const answer = await this.source.search(text, 0, PAGE, running.signal);
      if (running.signal.aborted) return false;
      this.total = answer.total;
      this.names = answer.names;
      this.density = answer.density;
      this.ids = answer.name_ids && new Set(answer.name_ids);
      this.version += 1;
      this.pages.set(0, answer.hits);
      return true;
    } catch (error) {
      if (running.signal.aborted) return false;
      throw error;
    }
  }

  /** The next (or previous) hit; the first one is the one after `share` of the session. */
  async step(by: 1 | -1, share: number): Promise<Hit | null> {
    if (this.total === 0) return null;
    const from = this.at < 0 ? firstFrom(this.density, share) + (by === 1 ? 0 : -1) : this.at + by;
    return this.hit(((from % this.total) + this.total) % this.total);
  }

  /** The first hit that is called like the text and does not only contain it; else the first. */
  async first(): Promise<Hit | null> {
    const named = this.pages.get(0)?.findIndex((hit) => hit.whole) ?? 0;
    return this.total === 0 ? null : this.hit(Math.max(0, named));
  }

  /** Goes to a hit by its number. */
  async hit(at: number): Promise<Hit | null> {
    const version = this.version;
    this.at = at;
    await this.load(Math.floor(at / PAGE));
    return version === this.version ? (this.loaded(at) ?? null) : null;
  }

  /** A hit by its number, if it is there already. */
  loaded(at: number): Hit | undefined {
    return this.pages.get(Math.floor(at / PAGE))?.[at % PAGE];
  }

  /** Pages of hits from one number to another that nobody asked for yet. */
  missing(from: number, to: number): number[] {
    const pages: number[] = [];
    for (let page = Math.floor(from / PAGE); page * PAGE < to; page += 1) {
      if (!this.pages.has(page) && !this.asked.has(page)) pages.push(page);
    }
    return pages;
  }

  /** Fetches a page of hits, once. */
  async load(page: number): Promise<void> {
    if (this.pages.has(page)) return;
    const version = this.version;
    const asked = this.asked.get(page) ?? this.source.search(this.text, page * PAGE, PAGE);
    this.asked.set(page, asked);
    try {
      const { hits } = await asked;
      if (version === this.version) this.pages.set(page, hits);
    } finally {
      if (version === this.version) this.asked.delete(page);
    }
  }
}

/** Marks the spans that match the search, in visible chunks that are not up to date. */
export function markHits(scene: Scene, search: Search): void {
  let matches: ((name: string) => boolean) | null | undefined;
  for (let tile = scene.first; tile <= scene.last; tile += 1) {
    for (const chunk of scene.store.place(scene.level, tile)?.chunks ?? []) {
      if (chunk.hitVersion === search.version) continue;
      if (matches === undefined) matches = matcher(search.text);
      const { ids } = search;
      if (ids) setHits(chunk, (id) => ids.has(id));
      else if (matches) setHits(chunk, (_, name) => matches?.(name) ?? false);
      chunk.hitVersion = search.version;
    }
  }
}

function setHits(chunk: Chunk, matches: (id: number, name: string) => boolean): void {
  const hits = new Map<number, number>();
  for (const [id, name] of chunk.names) hits.set(id, matches(id, name) ? 1 : 0);
  chunk.hit = new Uint8Array(chunk.spans);
  for (let i = 0; i < chunk.spans; i += 1) chunk.hit[i] = hits.get(chunk.name[i] as number) ?? 0;
}
