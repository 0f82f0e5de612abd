/**
 * Which of two recordings is the one before: as given on the command line, else by when they were recorded. File times say
 * nothing, because copying changes them.
 */
import { api } from "../../server/api";
import type { Session } from "../../server/types";

/** Nanoseconds since the epoch by session id; without those that do not know. */
export type Times = ReadonlyMap<number, number>;

/** Before and after. Where nothing tells, the list decides: it is newest first. */
export function inOrder(
  one: Session | undefined,
  other: Session | undefined,
  times: Times,
): [before: Session | undefined, after: Session | undefined] {
  if (!one || !other) return [other, one];
  const given = byCommandLine(one, other);
  if (given !== 0) return given < 0 ? [one, other] : [other, one];
  const [first, second] = [times.get(one.id), times.get(other.id)];
  if (first !== undefined && second !== undefined && first !== second)
    return first < second ? [one, other] : [other, one];
  return [other, one];
}

/** Negative if the first was given before the other; 0 if both come from one path. */
function byCommandLine(one: Session, other: Session): number {
  return one.place === null || other.place === null ? 0 : one.place - other.place;
}

/** When both were recorded, if that decides their order. */
export async function recordedTimes(
  one: Session | undefined,
  other: Session | undefined,
  signal: AbortSignal,
): Promise<Times> {
  if (!one || !other || byCommandLine(one, other) !== 0) return new Map();
  const times = await Promise.all([one, other].map(async ({ id }) => [id, await began(id, signal)] as const));
  return new Map(times.flatMap(([id, at]) => (at === null ? [] : [[id, at]])));
}

/** A session that cannot be read has no time; the comparison says why. */
async function began(session: number, signal: AbortSignal): Promise<number | null> {
  const info = await api.info(session, signal).catch(() => null);
  const times = (info?.hosts ?? []).flatMap((host) =>
    host.began_unix_ns === null ? [] : [Number(host.began_unix_ns)],
  );
  return times.length === 0 ? null : Math.min(...times);
}
