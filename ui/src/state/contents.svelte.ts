/**
 * Which pages of the session have nothing to show, so that the navigation can say so. Views are asked for one after the
 * other once the page rests; their answers are kept, so that opening one later is instant.
 */
import { api } from "../server/api";
import { app } from "./app.svelte";

/** Larger recordings are analysed only when somebody looks: all views together take about a second per million events. */
const MOST_EVENTS = 1_000_000;
/** How long a session must be open before its views are asked for, in milliseconds: the page that is open comes first. */
const REST_MS = 1500;

class Contents {
  /** The names of pages without content, of the session that is open. */
  empty = $state.raw<ReadonlySet<string>>(new Set());

  /** Follows a session; returns the way to stop. */
  follow(session: number): () => void {
    const stop = new AbortController();
    this.empty = new Set();
    const timer = setTimeout(() => void this.#look(session, stop.signal), REST_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }

  async #look(session: number, signal: AbortSignal): Promise<void> {
    try {
      if ((await api.info(session, signal)).events > MOST_EVENTS) return;
      for (const { name } of app.views ?? []) {
        const { rows } = await api.view(session, name, undefined, signal);
        if (signal.aborted) return;
        if (rows === 0) this.empty = new Set([...this.empty, name]);
      }
    } catch {
      // Only a hint: the page itself says what is wrong.
    }
  }
}

export const contents = new Contents();
