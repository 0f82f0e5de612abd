/**
 * Routes after the `#`: `#/<session name>/<page>?key=value`, or `#/s/<id>/<page>` if two sessions cannot be
 * distinguished.
 *
 * Links contain the name instead of the server's number, so that they still work after a restart of the server.
 */
import type { Session } from "../server/types";

export type Query = Record<string, string>;

export interface Route {
  /** The session's name, or `s/<id>`; empty for the newest. */
  session: string;
  /** The name of a page; whether there is such a page, the list of pages knows. */
  page: string;
  query: Query;
}

/** Parses a route; one without a page is the overview. */
export function parse(hash: string): Route {
  const [path = "", search = ""] = split(hash.replace(/^#?\/?/, ""), "?");
  const parts = path.split("/").map(decode);
  const byId = parts.length >= 3 && parts[0] === "s" && /^\d+$/.test(parts[1] ?? "");
  const session = byId ? `s/${parts[1]}` : (parts[0] ?? "");
  const page = byId ? parts[2] : parts[1];
  return { session, page: page || "overview", query: Object.fromEntries(new URLSearchParams(search)) };
}

/** Formats a route. */
export function format(route: { session: string; page: string; query?: Query }): string {
  const session = /^s\/\d+$/.test(route.session) ? route.session : encodeURIComponent(route.session);
  const entries = Object.entries(route.query ?? {}).filter(([, value]) => value !== "");
  const search = entries.length === 0 ? "" : `?${new URLSearchParams(entries)}`;
  return `#/${session}/${route.page}${search}`;
}

/** The last part of a session's name; the server uses the full path if names clash. */
const lastPart = (session: Session) => session.name.split("/").at(-1) ?? "";

/** What routes and labels ask about the sessions of one listing. */
interface Index {
  /** Sessions by the last part of their name. */
  rivals: Map<string, Session[]>;
  labels: Map<number, string>;
  /** How many sessions have a label. */
  same: Map<string, number>;
}

const indexes = new WeakMap<readonly Session[], Index>();

/** A list of thousands asks for every row, and all of them may share a name, so everything is found once per listing. */
function indexOf(all: readonly Session[]): Index {
  const known = indexes.get(all);
  if (known) return known;
  const index: Index = { rivals: new Map(), labels: new Map(), same: new Map() };
  for (const session of all) {
    const same = index.rivals.get(lastPart(session));
    if (same) same.push(session);
    else index.rivals.set(lastPart(session), [session]);
  }
  for (const group of index.rivals.values()) {
    for (const [id, label] of labelsOf(group)) {
      index.labels.set(id, label);
      index.same.set(label, (index.same.get(label) ?? 0) + 1);
    }
  }
  indexes.set(all, index);
  return index;
}

/** The labels of sessions with the same last part: that, after what tells their paths apart. */
function labelsOf(group: readonly Session[]): [id: number, label: string][] {
  const paths = group.map(pathOf);
  const [first = []] = paths;
  const shared = (at: (path: string[], index: number) => string | undefined) => {
    let length = 0;
    while (length < first.length && paths.every((path) => at(path, length) === at(first, length))) length++;
    return length;
  };
  const [before, behind] = [shared((path, index) => path[index]), shared((path, index) => path.at(-1 - index))];
  return group.map((session, place) => {
    const own = paths[place] ?? [];
    const apart = group.length < 2 ? [] : own.slice(before, Math.max(before, own.length - behind));
    return [session.id, [...apart, lastPart(session)].join("/")];
  });
}

/** The label of a session: its name, with the distinctive part of its path if several share the name. */
export function labelOf(session: Session, all: readonly Session[]): string {
  return indexOf(all).labels.get(session.id) ?? lastPart(session);
}

function pathOf(session: Session): string[] {
  return (session.name.includes("/") ? session.name : session.path).split("/");
}

/** The name of a session in a route: its label, unless another session has the same one. */
export function keyOf(session: Session, all: readonly Session[]): string {
  const label = labelOf(session, all);
  return label !== "" && indexOf(all).same.get(label) === 1 ? label : `s/${session.id}`;
}

/** The session of a route. If sessions were added or removed since, the last part decides, newest first. */
export function find(key: string, all: readonly Session[]): Session | undefined {
  const last = key.split("/").at(-1) ?? "";
  const rivals = last === "" ? [] : (indexOf(all).rivals.get(last) ?? []);
  const named = rivals.find((session) => session.name === key || keyOf(session, all) === key) ?? rivals[0];
  if (named) return named;
  const id = /^s\/(\d+)$/.exec(key)?.[1];
  return id === undefined ? undefined : all.find((session) => session.id === Number(id));
}

function split(text: string, at: string): [string, string] {
  const place = text.indexOf(at);
  return place < 0 ? [text, ""] : [text.slice(0, place), text.slice(place + 1)];
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
