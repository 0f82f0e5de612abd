/**
 * Addresses behind the `#`: `#/<session name>/<page>?key=value`, or `#/s/<id>/<page>` where two sessions share a name.
 *
 * Links carry the name rather than the server's number, so that they still work after the server was started again.
 */
import type { Session } from "./types";

export const PAGES = [
  "overview", "timeline", "steps", "ops", "kernels", "input", "memory", "scopes", "devices", "functions",
  "inference", "health", "compare",
] as const;

export type Page = (typeof PAGES)[number];
export type Query = Record<string, string>;

export interface Route {
  /** The session's name, or `s/<id>`; empty for whichever is newest. */
  session: string;
  page: Page;
  query: Query;
}

/** Reads an address; what cannot be read is the overview. */
export function parse(hash: string): Route {
  const [path = "", search = ""] = split(hash.replace(/^#?\/?/, ""), "?");
  const parts = path.split("/").map(decode);
  const byId = parts.length >= 3 && parts[0] === "s" && /^\d+$/.test(parts[1] ?? "");
  const session = byId ? `s/${parts[1]}` : (parts[0] ?? "");
  const page = byId ? parts[2] : parts[1];
  return { session, page: isPage(page) ? page : "overview", query: Object.fromEntries(new URLSearchParams(search)) };
}

/** Writes an address. */
export function format(route: { session: string; page: Page; query?: Query }): string {
  const session = /^s\/\d+$/.test(route.session) ? route.session : encodeURIComponent(route.session);
  const entries = Object.entries(route.query ?? {}).filter(([, value]) => value !== "");
  const search = entries.length === 0 ? "" : `?${new URLSearchParams(entries)}`;
  return `#/${session}/${route.page}${search}`;
}

/** What a session is called in an address: its name, unless another has the same. */
export function keyOf(session: Session, all: readonly Session[]): string {
  const alone = all.filter((other) => other.name === session.name).length === 1;
  return alone && session.name !== "" ? session.name : `s/${session.id}`;
}

/** The session that an address means. */
export function find(key: string, all: readonly Session[]): Session | undefined {
  const named = all.find((session) => session.name === key);
  if (named) return named;
  const id = /^s\/(\d+)$/.exec(key)?.[1];
  return id === undefined ? undefined : all.find((session) => session.id === Number(id));
}

function isPage(page: string | undefined): page is Page {
  return (PAGES as readonly string[]).includes(page ?? "");
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
