/** Writes tile frames by hand, for tests only: an independent second reading of `crates/serve/API.md`. */

export interface TestSpan {
  track: number;
  row: number;
  start: number;
  end: number;
  name: number;
  event: number;
  busy?: number;
  count?: number;
  category?: number;
  flags?: number;
}

export interface Sample {
  track: number;
  at: number;
  minimum: number;
  maximum: number;
}

/** Spans must come sorted by track (in the order of `tracks`), row and start. */
export function frame(
  level: number,
  tile: number,
  spans: TestSpan[],
  names: Record<number, string>,
  tracks: number[],
  samples: Sample[] = [],
): ArrayBuffer {
  const list = tracks.map((id) => ({
    id,
    first: Math.max(
      0,
      spans.findIndex((s) => s.track === id) < 0 ? spans.length : spans.findIndex((s) => s.track === id),
    ),
    count: spans.filter((s) => s.track === id).length,
    sample_first: Math.max(
      0,
      samples.findIndex((s) => s.track === id),
    ),
    sample_count: samples.filter((s) => s.track === id).length,
  }));
  let text = JSON.stringify({ level, tile, spans: spans.length, samples: samples.length, tracks: list, names });
  while (new TextEncoder().encode(text).length % 8 !== 0) text += " ";
  const head = new TextEncoder().encode(text);
  const columns: [
    width: number,
    values: number[],
    write: "setFloat32" | "setFloat64" | "setUint32" | "setUint16" | "setUint8",
  ][] = [
    [4, spans.map((s) => s.start), "setFloat32"],
    [4, spans.map((s) => s.end), "setFloat32"],
    [4, spans.map((s) => s.busy ?? s.end - s.start), "setFloat32"],
    [4, spans.map((s) => s.name), "setUint32"],
    [4, spans.map((s) => s.event), "setUint32"],
    [4, spans.map((s) => s.count ?? 1), "setUint32"],
    [2, spans.map((s) => s.row), "setUint16"],
    [1, spans.map((s) => s.category ?? 255), "setUint8"],
    [1, spans.map((s) => s.flags ?? 0), "setUint8"],
    [8, samples.map((s) => s.minimum), "setFloat64"],
    [8, samples.map((s) => s.maximum), "setFloat64"],
    [4, samples.map((s) => s.at), "setFloat32"],
  ];
  const pad = (n: number) => Math.ceil(n / 8) * 8;
  const size = columns.reduce((sum, [width, values]) => sum + pad(width * values.length), 8 + head.length);
  const buffer = new ArrayBuffer(size);
  const view = new DataView(buffer);
  new Uint8Array(buffer).set(new TextEncoder().encode("SST1"));
  view.setUint32(4, head.length, true);
  new Uint8Array(buffer).set(head, 8);
  let at = 8 + head.length;
  for (const [width, values, write] of columns) {
    values.forEach((value, i) => view[write](at + i * width, value, true));
    at += pad(width * values.length);
  }
  return buffer;
}
