/**
 * Names of runs as people know them. Profilers name recordings by their time of day and hide them in `plugins/profile`; the folder
 * above is what the user chose. A name has the folders that tell runs apart, without those that all runs beside it share, and
 * the time only where a folder holds several.
 */
import type { Session } from "../server/types";

export interface RunName {
  /** Tells the run apart from all others. */
  name: string;
  /** The folder that it is in, below the folder that all runs share; "." for that one. */
  folder: string;
  /** The time that the profiler wrote into the name, in milliseconds since 1970; local time. */
  stamp: number | null;
}

const PROFILES = "/plugins/profile/";
const STAMP = /^(\d{4})_(\d{2})_(\d{2})_(\d{2})_(\d{2})_(\d{2})/;
/** Endings that name the format, not the run. */
const ENDINGS =
  /(\.(pt\.)?trace|\.xplane)?\.(json|pb|sqlite|nsys-rep|ncu-rep|csv|log|arrows?|parquet)(\.gz|\.zst)?$|_pqtdir$/;
/** PyTorch appends the time of day. */
const TIME = /\.\d{12,19}$/;
/** `host_4711.1623143089861.pt.trace.json`: PyTorch names files after machine, process and time, so that none of it was chosen. */
const MADE_UP = /^[\w.-]*_\d+\.\d{12,19}\.pt\.trace\.json(\.gz)?$/;

interface Parts {
  folder: string[];
  own: string;
  /** Nobody chose the name of the file. */
  madeUp: boolean;
  stamp: number | null;
}

/** The names of all runs, by session. */
export function runNames(sessions: readonly Session[]): Map<number, RunName> {
  const parts = sessions.map((session) => partsOf(session));
  const shared = sharedLength(parts.map((part) => part.folder));
  // Without a folder of their own, runs are named by the last folder that they share.
  const alone = parts[0]?.folder[shared - 1] ?? "";
  const folders = telling(
    parts.map((part) => part.folder),
    shared,
  );
  const short = parts.map(({ own, stamp, madeUp }, place) => ({ folder: folders[place] ?? "", own, stamp, madeUp }));
  const rivals = counted(short.map((one) => one.folder));
  const names = short.map((one) => {
    const several = (rivals.get(one.folder) ?? 0) > 1;
    if (one.stamp === null && one.madeUp && !several && one.folder) return one.folder;
    if (one.stamp === null) return [one.folder, one.own].filter(Boolean).join("/");
    const time = one.own.replace(STAMP, "$1-$2-$3 $4:$5:$6");
    if (!several) return one.folder || alone || time;
    return [one.folder, time].filter(Boolean).join(" · ");
  });
  const same = counted(names);
  return new Map(
    sessions.map((session, place) => {
      const name = names[place] ?? "";
      const one = short[place];
      return [
        session.id,
        {
          // The same name twice says nothing: the file does.
          name:
            name === ""
              ? session.name
              : (same.get(name) ?? 0) > 1
                ? `${name} (${session.path.split("/").at(-1)})`
                : name,
          folder: one?.folder || ".",
          stamp: one?.stamp ?? null,
        },
      ];
    }),
  );
}

/** How many characters at the end of each name must stay where it is cut: those behind what it shares with the name most
 * like it. */
export function endings(names: readonly string[]): Map<string, number> {
  const sorted = [...new Set(names)].sort();
  const common = (one: string, other: string | undefined): number => {
    let length = 0;
    while (length < one.length && one[length] === other?.[length]) length += 1;
    return length;
  };
  return new Map(
    sorted.map((name, place) => {
      const [before, after] = [sorted[place - 1], sorted[place + 1]];
      return [name, name.length - Math.max(common(name, before), common(name, after))];
    }),
  );
}

/** Labels of runs with curves. Those of several paths are named by their whole path: what tells them apart is behind the folders that all share. */
export function labelsOf(runs: readonly { id: number; name: string }[]): Map<number, string> {
  const parts = runs.map((run) => run.name.split("/"));
  const whole = parts.every(([first]) => first === "" || first?.endsWith(":"));
  const shared = whole ? sharedLength(parts.map((one) => one.slice(0, -1))) : 0;
  return new Map(runs.map((run, place) => [run.id, parts[place]?.slice(shared).join("/") ?? run.name]));
}

function partsOf(session: Session): Parts {
  const at = session.path.lastIndexOf(PROFILES);
  if (at >= 0) {
    const own = session.path.slice(at + PROFILES.length).split("/")[0] ?? "";
    return { folder: session.path.slice(0, at).split("/"), own, madeUp: false, stamp: timeOf(own) };
  }
  const all = session.path.split("/");
  const own = all.pop() ?? "";
  const bare = own.replace(ENDINGS, "").replace(TIME, "") || own;
  return { folder: all, own: bare, madeUp: MADE_UP.test(own), stamp: null };
}

function timeOf(name: string): number | null {
  const found = STAMP.exec(name);
  if (!found) return null;
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = found.slice(1).map(Number);
  return new Date(year, month - 1, day, hour, minute, second).getTime();
}

/** Below which folders runs are in different ones. */
function forksOf(folders: readonly string[][]): Set<string> {
  const below = new Map<string, string | undefined>();
  const forks = new Set<string>();
  for (const folder of folders) {
    let path = "";
    for (let depth = 0; depth <= folder.length; depth += 1) {
      const next = folder[depth];
      if (!below.has(path)) below.set(path, next);
      else if (below.get(path) !== next) forks.add(path);
      path += `${next}/`;
    }
  }
  return forks;
}

/** Folders of a run from the shortest to all that are not shared. Between two forks, one folder stands for all: the last
 * is what people chose, the first is where runs differ. */
function candidates(folder: readonly string[], shared: number, forks: ReadonlySet<string>): string[] {
  const [first, last]: [string[], string[]] = [[], []];
  let path = "";
  folder.forEach((part, depth) => {
    const before = forks.has(path);
    path += `${part}/`;
    if (depth < shared || part === "") return;
    const end = depth === folder.length - 1;
    if (before || end) first.push(part);
    if (end || forks.has(path)) last.push(part);
  });
  return [last, first, folder.slice(shared)].map((parts) => parts.join("/"));
}

/** The shortest folders of each run that are not those of another folder. */
function telling(folders: readonly string[][], shared: number): string[] {
  const forks = forksOf(folders);
  const all = folders.map((folder) => candidates(folder, shared, forks));
  const owners = new Map<string, Set<string>>();
  all.forEach((texts, place) =>
    texts.forEach((text) => owners.set(text, (owners.get(text) ?? new Set()).add(folders[place]?.join("/") ?? ""))),
  );
  return all.map((texts) => texts.find((text) => owners.get(text)?.size === 1) ?? texts.at(-1) ?? "");
}

/** How many leading folders all have in common. */
function sharedLength(folders: readonly string[][]): number {
  const [first, ...others] = folders;
  if (!first) return 0;
  let length = 0;
  while (length < first.length && others.every((other) => other[length] === first[length])) length++;
  return length;
}

function counted(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}
