/** Readable numbers: three significant digits, a suitable unit, a dash for unknown values. */
import type { Format, Value } from "../server/views";

/** Placeholder for unknown values. */
export const UNKNOWN = "–";

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A whole number with thousands separators: `12,345`. */
export function count(value: number | null | undefined): string {
  return known(value) ? grouped.format(value) : UNKNOWN;
}

/** About three significant digits, never scientific where it can be read otherwise. */
export function short(value: number | null | undefined): string {
  if (!known(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size < 1000 && Number.isInteger(value)) return String(value);
  if (size >= 1e15) return value.toExponential(2);
  if (size >= 1e12) return `${digits(value / 1e12)} T`;
  if (size >= 1e9) return `${digits(value / 1e9)} G`;
  if (size >= 1e6) return `${digits(value / 1e6)} M`;
  if (size >= 1000) return grouped.format(value);
  if (size < 0.001) return value.toExponential(1);
  return digits(value);
}

/** A rate with its unit: `1.23 TFLOP/s`, `12 FLOP/s`. */
export function rate(value: number | null | undefined, unit: string): string {
  const text = short(value);
  return /[A-Z]$/.test(text) ? `${text}${unit}` : `${text} ${unit}`;
}

/** Three significant digits of a number between 0.001 and 1,000. */
function digits(value: number): string {
  const size = Math.abs(value);
  const places = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  const text = places === 0 ? grouped.format(value) : value.toFixed(places);
  return text.replace("-", "−");
}

const TIMES: [number, string][] = [
  [1e-6, "ns"],
  [1e-3, "µs"],
  [1, "ms"],
  [1000, "s"],
];

/** A duration given in milliseconds: `340 ns`, `12.3 µs`, `35.1 ms`, `2.50 s`, `4 min 10 s`. */
export function ms(value: number | null | undefined): string {
  if (!known(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size === 0) return "0 ms";
  if (size >= 119_500) return minutes(value);
  const [unit, name] = TIMES.findLast(([from]) => size >= from * 0.9995) ?? [1e-6, "ns"];
  return `${digits(value / unit)} ${name}`;
}

/** A round duration on an axis: `40 ms`. */
export function tick(value: number): string {
  return ms(value).replace(/\.0+(?= )|(\.\d*?[1-9])0+(?= )/, "$1");
}

/** Labels of an axis in milliseconds: as short as they can be while no two are the same. */
export function tickLabels(marks: readonly number[]): string[] {
  const short = marks.map(tick);
  if (new Set(short).size === short.length) return short;
  const step = Math.min(...marks.slice(1).map((mark, at) => mark - (marks[at] ?? 0)));
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step || 1))));
  return marks.map((mark) => `${mark.toFixed(digits)} ms`);
}

function minutes(value: number): string {
  const seconds = Math.round(Math.abs(value) / 1000);
  const sign = value < 0 ? "−" : "";
  const [hours, rest] = [Math.floor(seconds / 3600), seconds % 3600];
  return hours > 0
    ? `${sign}${hours} h ${Math.round(rest / 60)} min`
    : `${sign}${Math.floor(rest / 60)} min ${rest % 60} s`;
}

/** A difference in milliseconds, with its sign. */
export function signedMs(value: number | null | undefined): string {
  if (!known(value)) return UNKNOWN;
  return value > 0 ? `+${ms(value)}` : ms(value);
}

const SIZES: [number, string][] = [
  [1, "B"],
  [1e3, "kB"],
  [1e6, "MB"],
  [1e9, "GB"],
  [1e12, "TB"],
];

/** Bytes in decimal units: `3.69 MB`. */
export function bytes(value: number | null | undefined): string {
  if (!known(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size < 1000) return `${Math.round(value)} B`;
  const [unit, name] = SIZES.findLast(([from]) => size >= from * 0.9995) ?? [1, "B"];
  return `${digits(value / unit)} ${name}`;
}

/** A fraction as a percentage: `87.8 %`; tiny values are never shown as 0. */
export function percent(value: number | null | undefined): string {
  if (!known(value)) return UNKNOWN;
  const share = value * 100;
  if (share === 0) return "0 %";
  if (share > 0 && share < 0.05) return "< 0.1 %";
  if (share >= 99.95 && share < 100) return "> 99.9 %";
  return `${share.toFixed(1)} %`;
}

/** How many times as long: `3.52×`. */
export function ratio(value: number | null | undefined): string {
  return known(value) ? `${value >= 10 ? value.toFixed(1) : value.toFixed(2)}×` : UNKNOWN;
}

/** `1 step`, `14 steps`. */
export function plural(number: number, one: string, many: string): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** A finding's id as a title: `input-bound` → `Input-bound`, `small-kernels` → `Small kernels`. */
export function title(id: string): string {
  const words = id.endsWith("-bound") ? id : id.replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Text as a sentence, with a capital first letter; a path or another name at its start stays as it is. */
export function sentence(text: string): string {
  if (/^[^\s]*[./\\_][^\s]/.test(text)) return text;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function known(value: number | null | undefined): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

/** How all values of a column are formatted: in one unit, so that they are easy to compare. */
export interface Writer {
  /** The unit for the column header; empty if each value has its own. */
  unit: string;
  write(value: Value): string;
}

/** The writer for a column. */
export function writer(format: Format, values: readonly Value[]): Writer {
  const numeric =
    (write: (value: number) => string): Writer["write"] =>
    (value) =>
      typeof value === "number" ? write(value) : plain(value);
  switch (format) {
    case "ms":
      return msWriter(values);
    case "bytes":
      return { unit: "", write: numeric(bytes) };
    case "percent":
      return { unit: "", write: numeric(percent) };
    case "count":
      return { unit: "", write: numeric(count) };
    case "short":
      return { unit: "", write: numeric(short) };
    case "id":
      return { unit: "", write: numeric(String) };
    default:
      return { unit: "", write: plain };
  }
}

function plain(value: Value): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object") {
    return Object.entries(value)
      .map(([key, part]) => `${key} ${part === null ? UNKNOWN : short(part)}`)
      .join(", ");
  }
  return String(value);
}

function msWriter(values: readonly Value[]): Writer {
  let most = 0;
  for (const value of values) if (typeof value === "number") most = Math.max(most, Math.abs(value));
  // Milliseconds are most familiar; other units are used only if milliseconds would have many digits or none.
  const [size, unit] =
    most >= 60_000 ? [1000, "s"] : most >= 1 || most === 0 ? [1, "ms"] : most >= 1e-3 ? [1e-3, "µs"] : [1e-6, "ns"];
  const places = unit === "s" ? 3 : most / size >= 1000 ? 1 : most / size >= 100 ? 2 : 3;
  const form = new Intl.NumberFormat("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
  const least = 0.5 * 10 ** -places;
  return {
    unit,
    write(value) {
      if (typeof value !== "number") return plain(value);
      const scaled = value / size;
      return value > 0 && scaled < least ? `< ${(10 ** -places).toFixed(places)}` : form.format(scaled);
    },
  };
}
