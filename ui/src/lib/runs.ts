/**
 * Names of runs as people know them. Profilers name recordings by their time of day and hide them in `plugins/profile`; the folder
 * above is what the user chose. A name is the part of the path that tells runs apart, with the time only where a folder holds
 * several.
 */
import type { Session } from "./types";

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
const ENDINGS = /(\.(pt\.)?trace|\.xplane)?\.(json|pb|sqlite|nsys-rep|ncu-rep|csv|log|arrows?|parquet)(\.gz|\.zst)?$|_pqtdir$/;
/** PyTorch appends the time of day. */
const TIME = /\.\d{12,19}$/;

interface Parts {
  folder: string[];
  own: string;
  stamp: number | null;
}

/** The names of all runs, by session. */
export function runNames(sessions: readonly Session[]): Map<number, RunName> {
  const parts = sessions.map((session) => partsOf(session));
  const shared = sharedLength(parts.map((part) => part.folder));
  // Without a folder of their own, runs are named by the last folder that they share.
  const alone = parts[0]?.folder[shared - 1] ?? "";
  const short = parts.map((part) => {
    const folder = part.folder.slice(shared).join("/");
    return { folder, own: part.own, stamp: part.stamp };
  });
  const rivals = counted(short.map((one) => one.folder));
  const names = short.map((one) => {
    const several = (rivals.get(one.folder) ?? 0) > 1;
    if (one.stamp === null) return [one.folder, one.own].filter(Boolean).join("/");
    const time = one.own.replace(STAMP, "$1-$2-$3 $4:$5:$6");
    if (!several) return one.folder || alone || time;
    return [one.folder, time].filter(Boolean).join(" · ");
  });
  const same = counted(names);
  return new Map(sessions.map((session, place) => {
    const name = names[place] ?? "";
    const one = short[place];
    return [session.id, {
      // The same name twice says nothing: the path does.
      name: name === "" ? session.name : (same.get(name) ?? 0) > 1 ? `${name} (${session.path.split("/").at(-1)})` : name,
      folder: one?.folder || ".",
      stamp: one?.stamp ?? null,
    }];
  }));
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
    return { folder: session.path.slice(0, at).split("/"), own, stamp: timeOf(own) };
  }
  const all = session.path.split("/");
  const own = all.pop() ?? "";
  return { folder: all, own: own.replace(ENDINGS, "").replace(TIME, "") || own, stamp: null };
}

function timeOf(name: string): number | null {
  const found = STAMP.exec(name);
  if (!found) return null;
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = found.slice(1).map(Number);
  return new Date(year, month - 1, day, hour, minute, second).getTime();
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
