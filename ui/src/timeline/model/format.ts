/** Readable durations and counts. */

const UNITS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

/** A duration with three to four significant digits: `1.234 ms`, `17.5 µs`, `350 ps`. */
export function duration(ns: number): string {
  if (!Number.isFinite(ns)) return "–";
  const size = Math.abs(ns);
  if (size === 0) return "0 ns";
  if (size < 1) return `${round(ns * 1000)} ps`;
  if (size >= 120e9) return minutes(ns);
  for (const [scale, unit] of UNITS) {
    if (size >= scale) return `${round(ns / scale)} ${unit}`;
  }
  return `${round(ns)} ns`;
}

/** `3 min 20 s`, `34 h 43 min`. */
function minutes(ns: number): string {
  const seconds = Math.round(ns / 1e9);
  if (Math.abs(seconds) >= 7200)
    return `${Math.trunc(seconds / 3600)} h ${Math.round((Math.abs(seconds) % 3600) / 60)} min`;
  return `${Math.trunc(seconds / 60)} min ${Math.abs(seconds) % 60} s`;
}

function round(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  return String(Number(value.toFixed(digits)));
}

export function count(n: number): string {
  return Math.round(n).toLocaleString("en-GB");
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** A counter's value with a short scale: `12.3 G`, `512`. */
export function quantity(value: number): string {
  const size = Math.abs(value);
  for (const [scale, unit] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ] as const) {
    if (size >= scale) return `${round(value / (scale === 1e4 ? 1e3 : scale))} ${unit}`;
  }
  return round(value);
}
