/**
 * Loaded tiles, pending tiles, and what to draw in the meantime.
 *
 * Tiles are requested in bundles: one request per (level, tile) for all visible tracks that lack it. Requests that are no
 * longer visible are aborted. The cache is bounded by bytes and drops the least recently drawn tiles, but never those of
 * the last frame. While a tile is pending, `substitute` returns the nearest loaded level, coarser ones first because they
 * cover the whole area; the level on which the whole trace fits is fetched first and kept, so that there is always
 * something to show.
 */
import { decode, type Chunk, type Part } from "./tiles";

export interface Wish {
  level: number;
  first: number;
  last: number;
  /** Slots of the visible tracks. */
  slots: readonly number[];
}

interface Place {
  parts: (Part | undefined)[];
  chunks: Chunk[];
}

interface Request {
  level: number;
  tile: number;
  slots: number[];
  abort: AbortController;
  prefetch: boolean;
}

export interface StoreOptions {
  maxBytes: number;
  maxRequests: number;
  fetch(level: number, tile: number, tracks: number[], signal: AbortSignal): Promise<ArrayBuffer>;
  trackIds: readonly number[];
  hueOf(name: string): number;
  /** Something new can be drawn. */
  onTile(): void;
  onError(error: unknown): void;
  /** Frees the renderer's copy of a chunk. */
  onForget(chunk: Chunk): void;
}

/** Maximum number of tracks per request; keeps URLs short and the first answer fast. */
const MAX_TRACKS = 256;
/** Levels searched for a substitute. */
const COARSER = 14;
const FINER = 3;
/** A failed tile is requested again after at least this many milliseconds. */
const RETRY_MS = 2000;

export class TileStore {
  bytes = 0;
  /** How long each of the last answers took, in ms. */
  readonly times: number[] = [];
  private readonly places = new Map<number, Map<number, Place>>();
  private readonly running = new Set<Request>();
  private readonly slotOf: Map<number, number>;
  private readonly failed = new Map<string, number>();
  private wish: Wish = { level: -1, first: 0, last: -1, slots: [] };
  private queue: Request[] = [];
  /** Fetched when nothing else is needed; survives changes of the view. */
  private background: Request[] = [];
  private kept = -1;
  private frame = 0;

  constructor(private readonly options: StoreOptions) {
    this.slotOf = new Map(options.trackIds.map((id, slot) => [id, slot]));
  }

  /** The level that is never dropped: the whole trace at a glance. */
  keepLevel(level: number): void {
    this.kept = level;
  }

  get busy(): boolean {
    for (const request of this.running) if (!request.prefetch) return true;
    return false;
  }

  place(level: number, tile: number): Place | undefined {
    return this.places.get(level)?.get(tile);
  }

  part(level: number, tile: number, slot: number): Part | undefined {
    return this.places.get(level)?.get(tile)?.parts[slot];
  }

  /** Marks a chunk as drawn in this frame. */
  touch(chunk: Chunk): void {
    chunk.used = this.frame;
  }

  nextFrame(): void {
    this.frame += 1;
  }

  /** True if every visible tile is loaded. */
  complete(): boolean {
    const { level, first, last, slots } = this.wish;
    if (level < 0) return false;
    for (let tile = first; tile <= last; tile += 1) {
      const place = this.place(level, tile);
      for (const slot of slots) if (!place?.parts[slot]) return false;
    }
    return true;
  }

  /**
   * What to draw in place of a missing tile: calls `draw` with each part that covers some of it. Parts of a coarser
   * level cover more than the tile; the caller clips.
   */
  substitute(level: number, tile: number, slot: number, draw: (part: Part) => void): void {
    for (let up = 1; up <= COARSER; up += 1) {
      const part = this.part(level + up, Math.floor(tile / 2 ** up), slot);
      if (part) {
        draw(part);
        return;
      }
    }
    const kept = this.kept;
    if (kept > level + COARSER) {
      const part = this.part(kept, Math.floor(tile / 2 ** (kept - level)), slot);
      if (part) {
        draw(part);
        return;
      }
    }
    for (let down = 1; down <= FINER; down += 1) {
      const tiles = this.places.get(level - down);
      if (!tiles) continue;
      let any = false;
      for (let i = 0; i < 2 ** down; i += 1) {
        const part = tiles.get(tile * 2 ** down + i)?.parts[slot];
        if (part) {
          any = true;
          draw(part);
        }
      }
      if (any) return;
    }
  }

  /** Sets what is visible now: requests missing tiles and their neighbours, aborts requests that are no longer visible. */
  want(wish: Wish, lastTile: number): void {
    this.wish = wish;
    for (const request of this.running) {
      if (!this.stillWanted(request, wish)) this.drop(request);
    }
    this.queue = [];
    // From the middle outwards: that is where people look.
    const middle = (wish.first + wish.last) / 2;
    const tiles: number[] = [];
    for (let tile = wish.first; tile <= wish.last; tile += 1) tiles.push(tile);
    tiles.sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
    for (const tile of tiles) this.enqueue(wish.level, tile, wish.slots, false);
    if (this.complete()) {
      for (const tile of [wish.last + 1, wish.first - 1]) {
        if (tile >= 0 && tile <= lastTile) this.enqueue(wish.level, tile, wish.slots, true);
      }
      const up = wish.level + 1;
      const end = Math.floor(Math.min(wish.last, lastTile) / 2);
      for (let tile = Math.floor(wish.first / 2); tile <= end; tile += 1) this.enqueue(up, tile, wish.slots, true);
    }
    this.pump();
  }

  /** Sets what is visible without requesting it yet. */
  look(wish: Wish): void {
    this.wish = wish;
  }

  /** Requests tiles besides the visible ones, e.g. the overview of all tracks. */
  fetchAlso(level: number, tile: number, slots: readonly number[]): void {
    this.enqueue(level, tile, slots, true, this.background);
    this.pump();
  }

  /** All loaded chunks; for changes that affect each, e.g. a new search. */
  *chunks(): Generator<Chunk> {
    for (const tiles of this.places.values()) for (const place of tiles.values()) yield* place.chunks;
  }

  /** Adds an answer. Also used by tests. */
  add(chunk: Chunk): void {
    let tiles = this.places.get(chunk.level);
    if (!tiles) this.places.set(chunk.level, (tiles = new Map()));
    let place = tiles.get(chunk.tile);
    if (!place) tiles.set(chunk.tile, (place = { parts: [], chunks: [] }));
    for (const part of chunk.parts) place.parts[part.slot] = part;
    place.chunks.push(chunk);
    chunk.used = this.frame;
    this.bytes += chunk.bytes;
    this.evict();
  }

  close(): void {
    for (const request of [...this.running]) this.drop(request);
    this.queue = [];
    this.background = [];
    for (const chunk of this.chunks()) this.options.onForget(chunk);
    this.places.clear();
    this.bytes = 0;
  }

  private stillWanted(request: Request, wish: Wish): boolean {
    if (request.level === this.kept) return true;
    if (request.level === wish.level + 1) return request.prefetch;
    if (request.level !== wish.level || request.tile < wish.first - 1 || request.tile > wish.last + 1) return false;
    return request.slots.some((slot) => wish.slots.includes(slot));
  }

  private drop(request: Request): void {
    this.running.delete(request);
    request.abort.abort();
  }

  private enqueue(level: number, tile: number, slots: readonly number[], prefetch: boolean, queue = this.queue): void {
    const place = this.place(level, tile);
    const now = performance.now();
    const failedAt = this.failed.get(`${level}/${tile}`);
    if (failedAt !== undefined && now - failedAt < RETRY_MS) return;
    const missing = slots.filter((slot) => !place?.parts[slot] && !this.underway(level, tile, slot, prefetch));
    for (let at = 0; at < missing.length; at += MAX_TRACKS) {
      queue.push({ level, tile, slots: missing.slice(at, at + MAX_TRACKS), abort: new AbortController(), prefetch });
    }
  }

  /** A speculative request becomes a real one when its tiles are needed. */
  private underway(level: number, tile: number, slot: number, prefetch: boolean): boolean {
    for (const request of this.running) {
      if (request.level === level && request.tile === tile && request.slots.includes(slot)) {
        if (!prefetch) request.prefetch = false;
        return true;
      }
    }
    return false;
  }

  private pump(): void {
    while (this.running.size < this.options.maxRequests) {
      const request = this.queue.shift() ?? this.background.shift();
      if (!request) return;
      this.running.add(request);
      void this.run(request);
    }
  }

  private async run(request: Request): Promise<void> {
    const began = performance.now();
    try {
      const tracks = request.slots.map((slot) => this.options.trackIds[slot] ?? -1);
      const buffer = await this.options.fetch(request.level, request.tile, tracks, request.abort.signal);
      if (!this.running.delete(request)) return;
      this.add(decode(buffer, (id) => this.slotOf.get(id) ?? -1, this.options.hueOf));
      this.failed.delete(`${request.level}/${request.tile}`);
      this.times.push(performance.now() - began);
      if (this.times.length > 1000) this.times.splice(0, 500);
      this.options.onTile();
    } catch (error) {
      if (!this.running.delete(request) || request.abort.signal.aborted) return;
      this.failed.set(`${request.level}/${request.tile}`, performance.now());
      this.options.onError(error);
    }
    this.pump();
  }

  private evict(): void {
    if (this.bytes <= this.options.maxBytes) return;
    const old = [...this.chunks()]
      .filter((c) => c.used < this.frame && c.level !== this.kept)
      .sort((a, b) => a.used - b.used);
    for (const chunk of old) {
      if (this.bytes <= this.options.maxBytes) return;
      this.forget(chunk);
    }
  }

  private forget(chunk: Chunk): void {
    const tiles = this.places.get(chunk.level);
    const place = tiles?.get(chunk.tile);
    if (!tiles || !place) return;
    place.chunks = place.chunks.filter((c) => c !== chunk);
    for (const part of chunk.parts) if (place.parts[part.slot] === part) place.parts[part.slot] = undefined;
    if (place.chunks.length === 0) tiles.delete(chunk.tile);
    this.bytes -= chunk.bytes;
    this.options.onForget(chunk);
  }
}
