/** Trials as axes and rows: scales, order, filters. */
import type { Setting, Study, Trial } from "./types";

/** A column of the table and an axis of the picture. */
export interface Axis {
  key: string;
  name: string;
  kind: "setting" | "metric";
  place: number;
  /** All values are numbers. */
  numeric: boolean;
  low: number;
  high: number;
  /** On a logarithmic scale. */
  log: boolean;
  /** The values of an axis without numbers, in order. */
  words: string[];
}

/** Values that span more than this are drawn on a logarithmic scale: learning rates do. */
const SPAN = 50;

/** The value of a trial on an axis. */
export function valueOf(trial: Trial, { kind, place }: Axis): Setting {
  return (kind === "setting" ? trial.settings[place] : trial.metrics[place]) ?? null;
}

/** All axes; settings that are the same in all trials are left to `common`. */
export function axesOf(study: Study, trials: readonly Trial[]): { axes: Axis[]; common: [string, Setting][] } {
  const common: [string, Setting][] = [];
  const axes: Axis[] = [];
  const add = (kind: Axis["kind"], name: string, place: number) => {
    const key = `${kind}:${name}`;
    const axis: Axis = { key, name, kind, place, numeric: true, low: 0, high: 1, log: false, words: [] };
    const values = trials.map((trial) => valueOf(trial, axis));
    const known = values.filter((value) => value !== null);
    if (kind === "setting" && trials.length > 1 && new Set(values).size === 1) {
      common.push([name, values[0] ?? null]);
      return;
    }
    axis.numeric = known.every((value) => typeof value === "number");
    if (axis.numeric && known.length > 0) {
      axis.low = Math.min(...(known as number[]));
      axis.high = Math.max(...(known as number[]));
      axis.log = kind === "setting" && axis.low > 0 && axis.high / axis.low > SPAN;
    } else axis.words = [...new Set(known.map(String))].sort();
    axes.push(axis);
  };
  study.settings.forEach((name, place) => add("setting", name, place));
  study.metrics.forEach((name, place) => add("metric", name, place));
  return { axes, common };
}

/** Where a value lies on its axis, from 0 at the bottom to 1 at the top; null if there is none. */
export function placeOf(value: Setting, { numeric, low, high, log, words }: Axis): number | null {
  if (value === null) return null;
  if (!numeric) return words.length < 2 ? 0.5 : words.indexOf(String(value)) / (words.length - 1);
  if (typeof value !== "number") return null;
  if (high === low) return 0.5;
  const at = log ? Math.log : (number: number) => number;
  return (at(value) - at(low)) / (at(high) - at(low));
}

/** Ranges on axes, by key: from and to, from 0 to 1. */
export type Ranges = ReadonlyMap<string, readonly [number, number]>;

/** The trials within all ranges. A trial without the value is in none. */
export function within(trials: readonly Trial[], axes: readonly Axis[], ranges: Ranges): Trial[] {
  const asked = axes.flatMap((axis) => {
    const range = ranges.get(axis.key);
    return range ? [{ axis, range }] : [];
  });
  return trials.filter((trial) =>
    asked.every(({ axis, range }) => {
      const at = placeOf(valueOf(trial, axis), axis);
      return at !== null && at >= range[0] - 1e-9 && at <= range[1] + 1e-9;
    }),
  );
}

/** In the order of an axis, or of the names of runs; unknown values last. */
export function sorted(trials: readonly Trial[], axis: Axis | undefined, descending: boolean): Trial[] {
  const turn = descending ? -1 : 1;
  const compare = (a: Setting, b: Setting): number => {
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    if (typeof a === "number" && typeof b === "number") return turn * (a - b);
    return turn * String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  const by = (trial: Trial): Setting => (axis ? valueOf(trial, axis) : trial.run);
  return [...trials].sort((a, b) => compare(by(a), by(b)) || a.run.localeCompare(b.run, undefined, { numeric: true }));
}
