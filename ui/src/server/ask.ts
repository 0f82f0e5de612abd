/**
 * How the page talks to the server: requests, errors, and what is remembered.
 *
 * Every request goes through `ask`: it repeats a request while the session is still being opened (202) and updates
 * `progress`, turns every error into a `Problem`, and stops when its signal is aborted. Answers about a session never
 * change, so they are cached for the sessions used last.
 */
import { writable } from "svelte/store";
import type { Progress } from "./types";

/** An error, from the server or from the page itself. */
export class Problem extends Error {
  constructor(
    readonly what: string,
    readonly found = "",
    readonly todo = "",
    readonly hints: string[] = [],
    /** The HTTP status; 0 when the server was not reached. */
    readonly status = 0,
  ) {
    super(what);
  }
}

/** The server cannot be reached. */
export class Unreachable extends Problem {
  constructor() {
    super(
      "The server is not responding",
      "stepscope serve has probably stopped",
      "Start it again; this page reconnects by itself.",
    );
  }
}

/** Progress of the sessions that are being opened, by id. */
export const progress = writable<ReadonlyMap<number, Progress>>(new Map());

/** Number of sessions whose answers are cached. */
const KEPT_SESSIONS = 4;
/** Minimum time between two requests for a session that is still being opened, in milliseconds. */
const REPEAT_MS = 40;

const kept = new Map<number, Map<string, unknown>>();
/** The secret in the address of the page, if the server demands one. */
export const token = new URLSearchParams(globalThis.location?.search ?? "").get("token");

/** Anything thrown, as a problem. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const found = error instanceof Error ? error.message : String(error);
  return new Problem("This part of the page failed", found, "Try again; the other pages are not affected.");
}

/** The headers that every request carries. */
export function headers(): HeadersInit {
  return token === null ? {} : { "x-stepscope-token": token };
}

/** Sends a request; `path` is relative to `/api/`. */
export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  const session = sessionOf(path);
  try {
    for (;;) {
      const response = await reach(`api/${path}`, signal);
      if (response.status !== 202) return (await read(response)) as T;
      const body = (await response.json()) as { loading: Progress };
      if (session !== null) tell(session, body.loading);
      await pause(REPEAT_MS, signal);
    }
  } finally {
    if (session !== null) tell(session, null);
  }
}

/** The same for answers that never change while the session is open. */
export async function askOnce<T>(session: number, path: string, signal?: AbortSignal): Promise<T> {
  const whole = `s/${session}/${path}`;
  const known = kept.get(session)?.get(whole);
  if (known !== undefined) return known as T;
  const answer = await ask<T>(whole, signal);
  keep(session, whole, answer);
  return answer;
}

function keep(session: number, path: string, answer: unknown): void {
  const answers = kept.get(session) ?? new Map<string, unknown>();
  answers.set(path, answer);
  // Re-inserted, so that the session used last comes last.
  kept.delete(session);
  kept.set(session, answers);
  while (kept.size > KEPT_SESSIONS) {
    const oldest = kept.keys().next().value;
    if (oldest !== undefined) kept.delete(oldest);
  }
}

/** Clears the cache of a session, e.g. before a retry. */
export function forget(session: number): void {
  kept.delete(session);
}

function sessionOf(path: string): number | null {
  const match = /^s\/(\d+)\//.exec(path);
  return match ? Number(match[1]) : null;
}

declare global {
  interface Window {
    /** Answers that `public/early.js` requested, by address. */
    __stepscopeEarly?: Map<string, Promise<Response>>;
  }
}

/** An answer that was requested before this script was loaded; each is used once, because the next may differ. */
function early(url: string): Promise<Response> | undefined {
  const answers = globalThis.window?.__stepscopeEarly;
  const answer = answers?.get(url);
  answers?.delete(url);
  return answer;
}

/** Sends one request and returns the bare response. */
export async function reach(url: string, signal?: AbortSignal): Promise<Response> {
  try {
    return await (early(url) ?? fetch(url, { headers: headers(), signal: signal ?? null }));
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable();
  }
}

/** Asks the server to do something; only the page itself may. `path` is relative to `/api/`. */
export async function act<T>(path: string, values: Record<string, string | number | undefined>): Promise<T> {
  let response: Response;
  try {
    const carried = { ...headers(), "x-stepscope-action": "1" };
    response = await fetch(`api/${path}${query(values)}`, { method: "POST", headers: carried });
  } catch {
    throw new Unreachable();
  }
  return (await read(response)) as T;
}

/** The answer in a response; an error of the server is thrown as a problem. */
export async function read(response: Response): Promise<unknown> {
  if (response.ok) return response.json();
  const body = (await response.json().catch(() => null)) as { error?: Partial<Problem> } | null;
  const { what, found, todo, hints } = body?.error ?? {};
  throw new Problem(
    what ?? `The server answered with ${response.status}`,
    found ?? "",
    todo ?? "",
    hints ?? [],
    response.status,
  );
}

function tell(session: number, state: Progress | null): void {
  progress.update((all) => {
    if (state === null && !all.has(session)) return all;
    const next = new Map(all);
    if (state === null) next.delete(session);
    else next.set(session, state);
    return next;
  });
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** A query string of what is set. */
export function query(values: Record<string, string | number | undefined>): string {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== "");
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs.map(([key, value]) => [key, String(value)]))}`;
}
