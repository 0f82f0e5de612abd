/** What an input pipeline does to be fast, in a few words each. */

import type { Habits } from "../../server/views";

export interface Habit {
  key: keyof Habits;
  text: string;
  title: string;
  tone: "good" | "warning" | "";
}

const ALL: { key: keyof Habits; has: string; lacks: string; title: string; good: boolean }[] = [
  {
    key: "has_prefetch_by_user",
    has: "prefetch",
    lacks: "no prefetch",
    title: "Batches are prepared while the model computes",
    good: true,
  },
  {
    key: "has_parallel_map",
    has: "parallel map",
    lacks: "no parallel map",
    title: "Several elements are prepared in parallel",
    good: true,
  },
  {
    key: "has_cache",
    has: "cache",
    lacks: "no cache",
    title: "Prepared elements are kept for the next epoch",
    good: true,
  },
  {
    key: "has_interleave",
    has: "interleave",
    lacks: "no interleave",
    title: "Several files are read in parallel",
    good: true,
  },
  {
    key: "runs_python",
    has: "runs Python",
    lacks: "no Python inside",
    title: "Python holds its global lock, so parallel calls do not help",
    good: false,
  },
];

/** `written` says of each stage who wrote it. What TensorFlow adds by itself is no habit of the program, but it is there. */
export function habitsOf(members: Habits, written: readonly unknown[]): Habit[] {
  return ALL.map(({ key, has, lacks, title, good }) => {
    const does = members[key] === true;
    const added = !does && key === "has_parallel_map" && written.includes("parallelised");
    const tone = added || does === good ? "good" : does ? "warning" : "";
    return { key, title, tone, text: added ? `${has} (added by TensorFlow)` : does ? has : lacks };
  });
}
