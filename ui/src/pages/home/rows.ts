/** The list of runs: what it shows of each, and which rows it has after search, order and grouping. Knows nothing about drawing. */
import type { RunName } from "../../state/runs";
import type { Session, Severity } from "../../server/types";

/** One run in short, as `/api/home` gives it. */
export interface Summary {
  headline: string;
  severity: Severity;
  finding: string | null;
  doubts: string[];
  /** The median. */
  step_ms: number | null;
  /** The mean, which the verdict and the breakdown are about. */
  mean_ms?: number | null;
  steps: number;
  breakdown: [category: string, fraction: number][];
  devices: [name: string, count: number][];
  framework: string | null;
  began_ms: number | null;
  events: number;
  damaged: boolean;
  problem: string | null;
}

export interface HomeRun {
  id: number;
  modified_ms: number | null;
  /** Its files changed a moment ago. */
  writing: boolean;
  /** Too large to be read for a list. */
  skipped: boolean;
  summary: Summary | null;
}

export interface HomeAnswer {
  version: number;
  total: number;
  done: number;
  /** Those that changed since the version that was asked for. */
  runs: HomeRun[];
}

/** A run with everything that the list shows. */
export interface Run {
  session: Session;
  name: string;
  folder: string;
  /** When it was recorded, as well as that is known; milliseconds since 1970. */
  when: number | null;
  home: HomeRun | undefined;
  summary: Summary | null;
}

export type Item = { kind: "run"; run: Run } | { kind: "folder"; folder: string; count: number };

export function runsOf(
  sessions: readonly Session[],
  names: ReadonlyMap<number, RunName>,
  home: ReadonlyMap<number, HomeRun>,
): Run[] {
  return sessions.map((session) => {
    const [name, known] = [names.get(session.id), home.get(session.id)];
    const summary = known?.summary ?? null;
    return {
      session,
      summary,
      home: known,
      name: name?.name ?? session.name,
      folder: name?.folder ?? ".",
      // File times come last: copying changes them.
      when: summary?.began_ms ?? name?.stamp ?? known?.modified_ms ?? null,
    };
  });
}

export type Key = "name" | "when" | "device" | "step" | "verdict" | "bytes" | "state";

/** The state in a word; empty if all is well. */
export function stateOf(run: Run): string {
  if (run.home?.writing) return "being written";
  if (run.session.state === "failed" || run.summary?.problem) return "cannot be read";
  if (run.summary?.damaged) return "damaged";
  if (run.home?.skipped) return "large: open it to see";
  if (run.session.state === "loading") return "opening";
  return run.summary ? "" : "waiting";
}

export function deviceOf(run: Run): string {
  return (run.summary?.devices ?? []).map(([name, count]) => (count > 1 ? `${count} × ${name}` : name)).join(", ");
}

const SEVERITY: Record<Severity, number> = { critical: 2, warning: 1, info: 0 };

function valueOf(run: Run, key: Key): string | number | null {
  switch (key) {
    case "name":
      return run.name;
    case "when":
      return run.when;
    case "device":
      return deviceOf(run) || null;
    case "step":
      return stepOf(run.summary).ms;
    case "verdict":
      return run.summary?.headline ? (SEVERITY[run.summary.severity] ?? 0) : null;
    case "bytes":
      return run.session.bytes;
    case "state":
      return stateOf(run) || null;
  }
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** Runs that contain all words of the search, sorted; with a heading before each folder if they are grouped. */
export function itemsOf(
  runs: readonly Run[],
  wish: { text: string; key: Key | null; descending: boolean; grouped: boolean; closed: ReadonlySet<string> },
): Item[] {
  const words = wish.text.toLowerCase().split(/\s+/).filter(Boolean);
  const found =
    words.length === 0
      ? [...runs]
      : runs.filter((run) => {
          const text = textOf(run);
          return words.every((word) => text.includes(word));
        });
  const { key } = wish;
  if (key !== null) {
    const values = new Map(found.map((run) => [run, valueOf(run, key)]));
    const sign = wish.descending ? -1 : 1;
    found.sort((a, b) => {
      const [left, right] = [values.get(a) ?? null, values.get(b) ?? null];
      // Unknown values come last in either direction.
      if (left === null || right === null) return (left === null ? 1 : 0) - (right === null ? 1 : 0);
      return (
        sign *
        (typeof left === "number" && typeof right === "number"
          ? left - right
          : collator.compare(String(left), String(right)))
      );
    });
  }
  if (!wish.grouped) return found.map((run) => ({ kind: "run", run }));
  const folders = new Map<string, Run[]>();
  for (const run of found) folders.set(run.folder, [...(folders.get(run.folder) ?? []), run]);
  const heading = (folder: string, count: number): Item => ({ kind: "folder", folder, count });
  return [...folders].flatMap(([folder, inside]): Item[] => [
    heading(folder, inside.length),
    ...(wish.closed.has(folder) ? [] : inside.map((run): Item => ({ kind: "run", run }))),
  ]);
}

function textOf(run: Run): string {
  const { summary, session } = run;
  return [
    run.name,
    session.path,
    session.hosts.join(" "),
    deviceOf(run),
    summary?.headline,
    summary?.finding,
    summary?.framework,
    stateOf(run),
  ]
    .join("\n")
    .toLowerCase();
}

/** The step time to show: the mean, as in every report. Older caches have only the median. */
export function stepOf(summary: Summary | null): { ms: number | null; is: "mean" | "median" } {
  const [median, mean] = [summary?.step_ms ?? null, summary?.mean_ms ?? null];
  return mean === null ? { ms: median, is: "median" } : { ms: mean, is: "mean" };
}

/** The step time relative to the baseline's, for instance 1.15 for 15 % slower. */
export function against(run: Run, baseline: Run | undefined): number | null {
  const [own, base] = [stepOf(run.summary).ms, stepOf(baseline?.summary ?? null).ms];
  return own && base && run !== baseline ? own / base : null;
}
