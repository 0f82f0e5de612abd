/** Histogram: bins of equal width over one or several sets, so that they can be overlaid. */
import { quantile } from "./steps";

export interface Histogram {
  low: number;
  high: number;
  /** Per set, per bin: the share of the set in it. */
  shares: number[][];
  /** Values beyond the last bin are counted in it; this many of all sets. */
  beyond: number;
}

const FEWEST = 16;
const MOST = 48;

/** Bins by the Freedman–Diaconis rule, within limits. Far outliers go into the last bin. */
export function histogram(sets: readonly (readonly number[])[]): Histogram {
  const all = sets.flat().sort((a, b) => a - b);
  const [low, longest] = [all[0] ?? 0, all.at(-1) ?? 0];
  const middle = quantile(all, 0.75) - quantile(all, 0.25);
  const fence = quantile(all, 0.95) + 6 * Math.max(middle, longest * 1e-6);
  const high = Math.max(Math.min(longest, fence), low + Math.max(Math.abs(low) * 0.01, 1e-9));
  const width = (2 * middle) / Math.cbrt(Math.max(1, all.length));
  const bins = Math.round(Math.min(MOST, Math.max(FEWEST, width > 0 ? (high - low) / width : FEWEST)));
  const shares = sets.map((set) => {
    const counts = new Array<number>(bins).fill(0);
    for (const value of set) {
      const bin = Math.min(bins - 1, Math.floor(((value - low) / (high - low)) * bins));
      counts[bin] = (counts[bin] ?? 0) + 1 / set.length;
    }
    return counts;
  });
  return { low, high, shares, beyond: all.filter((value) => value > high).length };
}
