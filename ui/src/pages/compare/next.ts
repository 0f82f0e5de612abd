/**
 * Which run to compare with, if the address does not say: the next one of the same program. Another model is neither faster
 * nor slower, so without such a run nothing is proposed.
 */
import type { Session } from "../../server/types";

/** What `/api/home` says of a run, as far as it matters here. */
export interface Known {
  id: number;
  summary: { framework: string | null; ops?: string[]; began_ms: number | null } | null;
}

/** Runs of one program share at least this part of the op types that take most time. */
const ALIKE = 0.6;

const words = (name: string) =>
  name
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean);

/** `resnet` and `resnet_fixed`, `run1/before` and `run1/after`: one name with a word more, or another last word. */
export function isNamedAlike(one: string, other: string): boolean {
  const [a, b] = [words(one), words(other)].sort((x, y) => x.length - y.length);
  if (!a || !b || a.length === 0) return false;
  const same = a.every((word, place) => word === b[place]);
  const butLast = a.length > 1 && a.length === b.length && a.slice(0, -1).every((word, place) => word === b[place]);
  return same || (butLast && isTurn(a.at(-1) ?? "") && isTurn(b.at(-1) ?? ""));
}

/** A word that counts runs of one thing. */
const isTurn = (word: string) => /^(v?\d+|before|after|old|new|base|baseline|fixed|slow|fast|a|b)$/.test(word);

/** Recordings of one log directory: profilers write each into a folder of its own below `plugins/profile`. */
function isBeside(one: Session, other: Session): boolean {
  const logs = ({ path }: Session) => (path.includes("/plugins/profile/") ? path.split("/plugins/profile/")[0] : null);
  return logs(one) !== null && logs(one) === logs(other);
}

/** The share of op types that two runs have in common; null if that is unknown. */
export function overlap(one: Known | undefined, other: Known | undefined): number | null {
  const [a, b] = [one?.summary, other?.summary];
  if (!a?.ops?.length || !b?.ops?.length) return null;
  if (a.framework !== b.framework) return 0;
  const common = a.ops.filter((op) => b.ops?.includes(op)).length;
  return common / new Set([...a.ops, ...b.ops]).size;
}

/** The run to compare with. Two that were given on the command line are a pair already. */
export function nextOf(
  shown: Session,
  sessions: readonly Session[],
  nameOf: (session: Session) => string,
  known: ReadonlyMap<number, Known>,
): Session | undefined {
  const others = sessions.filter((one) => one.id !== shown.id);
  const [only] = others;
  if (only && others.length === 1 && only.place !== shown.place) return only;
  const when = (one: Session) => known.get(one.id)?.summary?.began_ms ?? null;
  const own = when(shown);
  const rank = (one: Session): number => {
    const named = isNamedAlike(nameOf(shown), nameOf(one)) || isBeside(shown, one);
    const alike = overlap(known.get(shown.id), known.get(one.id));
    if (alike !== null && alike < ALIKE && !named) return -1;
    return (named ? 2 : 0) + (alike !== null && alike >= ALIKE ? 1 + alike : 0);
  };
  // After the one that is shown comes before what was recorded earlier; the nearest first.
  const distance = (one: Session): number => {
    const at = when(one);
    if (own === null || at === null) return Number.MAX_SAFE_INTEGER;
    return at >= own ? at - own : (own - at) * 2;
  };
  return others
    .map((one) => ({ one, rank: rank(one), distance: distance(one) }))
    .filter(({ rank }) => rank > 0)
    .sort((a, b) => b.rank - a.rank || a.distance - b.distance)[0]?.one;
}
