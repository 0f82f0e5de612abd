/** Points of a chart as the server sends them: a JSON header, then columns of numbers (`crates/serve/API.md`). */

/** The points of one run. */
export interface Line {
  run: number;
  version: number;
  /** Points that there are; the columns hold those that a chart needs. */
  total: number;
  /** When the first point was written, in seconds since 1970. */
  firstS: number;
  steps: Float64Array;
  walls: Float64Array;
  values: Float64Array;
  smoothed: Float64Array;
}

export interface Frame {
  tag: string;
  version: number;
  lines: Line[];
}

interface Header {
  tag: string;
  version: number;
  lines: { run: number; version: number; count: number; total: number; first_s: number }[];
}

/** Reads a frame; throws if it is none. */
export function decode(bytes: ArrayBuffer): Frame {
  const view = new DataView(bytes);
  const magic = String.fromCharCode(...new Uint8Array(bytes, 0, Math.min(4, bytes.byteLength)));
  if (magic !== "SSC1") throw new Error("not a frame of points");
  const length = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, length))) as Header;
  const points = header.lines.reduce((sum, line) => sum + line.count, 0);
  const column = (place: number) => new Float64Array(bytes, 8 + length + place * points * 8, points);
  const [steps, walls, values, smoothed] = [column(0), column(1), column(2), column(3)];
  let at = 0;
  const lines = header.lines.map(({ run, version, count, total, first_s }) => {
    const part = (all: Float64Array) => all.subarray(at, at + count);
    const line = {
      run,
      version,
      total,
      firstS: first_s,
      steps: part(steps),
      walls: part(walls),
      values: part(values),
      smoothed: part(smoothed),
    };
    at += count;
    return line;
  });
  return { tag: header.tag, version: header.version, lines };
}
