/**
 * Which pages of the session have nothing to show, so that the navigation can say so. Views are asked for one after the
 * other once the page rests; their answers are kept, so that opening one later is instant.
 */
import { api } from "../server/api";
import { ask } from "../server/ask";
import { app } from "./app.svelte";

/** Larger recordings are analysed only when somebody looks: all views together take about a second per million events. */
const MOST_EVENTS = 1_000_000;
/** How long a session must be open before its views are asked for, in milliseconds: the page that is open comes first. */
const REST_MS = 1500;

class Contents {
  /** The names of views without content, of the session that is open. */
  #views = $state.raw<ReadonlySet<string>>(new Set());
  /** The names of all pages without content. */
  empty = $derived<ReadonlySet<string>>(new Set([...this.#views, ...this.#ofAll()]));

  /** Pages about all runs, by what the list of sessions says. */
  #ofAll(): string[] {
    const { listed } = app;
    if (!listed) return [];
    return [...(app.hasFleet ? [] : ["fleet"]), ...((listed.curves ?? 0) > 0 ? [] : ["curves"])];
  }

  /** Follows a session; returns the way to stop. */
  follow(session: number): () => void {
    const stop = new AbortController();
    this.#views = new Set();
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
        if (rows === 0) this.#views = new Set([...this.#views, name]);
      }
      const model = await ask<{ files: unknown }>(`s/${session}/model`, signal);
      if (!signal.aborted && model.files === null) this.#views = new Set([...this.#views, "model"]);
    } catch {
      // Only a hint: the page itself says what is wrong.
    }
  }
}

export const contents = new Contents();
