/**
 * Reads the server's binary tiles (`SST1`, see `crates/serve/API.md`). Columns are views into the answer, never copies;
 * additional data for drawing and hit testing (where a row starts, which spans can have a label) is computed in one pass.
 */

export class BadTile extends Error {}

/** A track's share of an answer. */
export interface Part {
  chunk: Chunk;
  track: number;
  slot: number;
  first: number;
  count: number;
  sampleFirst: number;
  sampleCount: number;
  /** Index of the first span of each row, one more than there are rows. */
  rowStart: Uint32Array;
  /** Spans wide enough for a label, and all that cross the tile's borders; by row and start. */
  wide: Uint32Array;
}

/** One answer: a tile of one level, for the tracks that were asked for. */
export interface Chunk {
  level: number;
  tile: number;
  bytes: number;
  spans: number;
  parts: Part[];
  names: Map<number, string>;
  start: Float32Array;
  end: Float32Array;
  busy: Float32Array;
  name: Uint32Array;
  event: Uint32Array;
  count: Uint32Array;
  row: Uint16Array;
  category: Uint8Array;
  flags: Uint8Array;
  minimum: Float64Array;
  maximum: Float64Array;
  at: Float32Array;
  /** Colour of each span by its name, index into the palette of names. */
  hue: Uint8Array;
  /** 1 where the span's name matches the search; empty while nothing is searched. */
  hit: Uint8Array;
  hitVersion: number;
  /** The renderer's own copy, if it keeps one. */
  gpu: unknown;
  gpuVersion: number;
  /** Number of the last frame that drew it; the cache forgets the oldest. */
  used: number;
}

export const BEGINS_BEFORE = 1;
export const ENDS_BEHIND = 2;
/** Narrower spans (in buckets) never have a label, not even two levels finer. */
const WIDE = 6;

interface Header {
  level: number;
  tile: number;
  spans: number;
  samples: number;
  tracks: { id: number; first: number; count: number; sample_first: number; sample_count: number }[];
  names: Record<string, string>;
}

class Columns {
  constructor(
    readonly buffer: ArrayBuffer,
    public at: number,
  ) {}

  take<T>(
    type: { new (buffer: ArrayBuffer, at: number, length: number): T; BYTES_PER_ELEMENT: number },
    length: number,
  ): T {
    const start = Math.ceil(this.at / 8) * 8;
    const end = start + length * type.BYTES_PER_ELEMENT;
    if (end > this.buffer.byteLength) throw new BadTile("the tile is truncated in a column");
    this.at = end;
    return new type(this.buffer, start, length);
  }
}

function header(buffer: ArrayBuffer): { header: Header; end: number } {
  const bytes = new DataView(buffer);
  if (buffer.byteLength < 8 || bytes.getUint32(0, true) !== 0x31545353) throw new BadTile("not a tile");
  const end = 8 + bytes.getUint32(4, true);
  if (end > buffer.byteLength) throw new BadTile("the tile is truncated in its header");
  const text = new TextDecoder().decode(new Uint8Array(buffer, 8, end - 8));
  return { header: JSON.parse(text) as Header, end };
}

/** `slotOf` returns the position of a track in the session's list; `hueOf` the colour of a name. */
export function decode(buffer: ArrayBuffer, slotOf: (track: number) => number, hueOf: (name: string) => number): Chunk {
  const { header: head, end } = header(buffer);
  const n = head.spans;
  const columns = new Columns(buffer, end);
  const names = new Map<number, string>();
  const hues = new Map<number, number>();
  for (const [id, name] of Object.entries(head.names)) {
    names.set(Number(id), name);
    hues.set(Number(id), hueOf(name));
  }
  const chunk: Chunk = {
    level: head.level,
    tile: head.tile,
    bytes: buffer.byteLength,
    spans: n,
    parts: [],
    names,
    start: columns.take(Float32Array, n),
    end: columns.take(Float32Array, n),
    busy: columns.take(Float32Array, n),
    name: columns.take(Uint32Array, n),
    event: columns.take(Uint32Array, n),
    count: columns.take(Uint32Array, n),
    row: columns.take(Uint16Array, n),
    category: columns.take(Uint8Array, n),
    flags: columns.take(Uint8Array, n),
    minimum: columns.take(Float64Array, head.samples),
    maximum: columns.take(Float64Array, head.samples),
    at: columns.take(Float32Array, head.samples),
    hue: new Uint8Array(n),
    hit: new Uint8Array(0),
    hitVersion: 0,
    gpu: null,
    gpuVersion: -1,
    used: 0,
  };
  for (let i = 0; i < n; i += 1) chunk.hue[i] = hues.get(chunk.name[i] as number) ?? 0;
  for (const track of head.tracks) {
    const slot = slotOf(track.id);
    if (slot < 0) continue;
    if (track.first + track.count > n || track.sample_first + track.sample_count > head.samples)
      throw new BadTile("a track's spans lie outside the tile");
    chunk.parts.push(part(chunk, track, slot));
  }
  return chunk;
}

function part(chunk: Chunk, track: Header["tracks"][number], slot: number): Part {
  const last = track.first + track.count;
  const rows = track.count > 0 ? (chunk.row[last - 1] as number) + 1 : 0;
  const rowStart = new Uint32Array(rows + 1).fill(last);
  const wide: number[] = [];
  let row = -1;
  for (let i = track.first; i < last; i += 1) {
    const r = chunk.row[i] as number;
    while (row < r && row + 1 < rowStart.length) {
      row += 1;
      rowStart[row] = i;
    }
    if ((chunk.end[i] as number) - (chunk.start[i] as number) >= WIDE || chunk.flags[i] !== 0) wide.push(i);
  }
  return {
    chunk,
    track: track.id,
    slot,
    first: track.first,
    count: track.count,
    sampleFirst: track.sample_first,
    sampleCount: track.sample_count,
    rowStart,
    wide: Uint32Array.from(wide),
  };
}

/** The span of a row at a bucket, or the nearest within `tolerance` buckets; -1 for none. */
export function spanAt(part: Part, row: number, bucket: number, tolerance: number): number {
  const { start, end } = part.chunk;
  let low = part.rowStart[row] ?? 0;
  const first = low;
  const last = part.rowStart[row + 1] ?? first;
  let high = last;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((start[middle] as number) <= bucket) low = middle + 1;
    else high = middle;
  }
  if (low > first && (end[low - 1] as number) >= bucket) return low - 1;
  let best = -1;
  let distance = tolerance;
  if (low > first && bucket - (end[low - 1] as number) <= distance) {
    best = low - 1;
    distance = bucket - (end[low - 1] as number);
  }
  if (low < last && (start[low] as number) - bucket <= distance) best = low;
  return best;
}
