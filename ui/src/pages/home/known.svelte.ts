/** What the server knows of all runs so far. Kept while the page is open, so that coming back to the list costs nothing. */
import { ask } from "../../server/ask";
import type { HomeAnswer, HomeRun } from "./rows";

/** How often to ask while verdicts are being computed, and afterwards; in milliseconds. */
const BUSY_MS = 1000;
const CALM_MS = 4000;

class Known {
  runs = $state.raw<ReadonlyMap<number, HomeRun>>(new Map());
  done = $state(0);
  total = $state(0);
  #version = 0;

  /** Follows the server until the returned function is called. */
  follow(): () => void {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const next = async (): Promise<void> => {
      // The header says if the server is gone; the next request goes on where this one failed.
      if (!document.hidden) await this.#refresh(controller.signal).catch(() => undefined);
      if (!controller.signal.aborted) timer = setTimeout(() => void next(), this.done < this.total ? BUSY_MS : CALM_MS);
    };
    void next();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }

  async #refresh(signal: AbortSignal): Promise<void> {
    const answer = await ask<HomeAnswer>(`home?since=${this.#version}`, signal);
    const restarted = answer.version < this.#version;
    this.#version = answer.version;
    this.done = answer.done;
    this.total = answer.total;
    if (answer.runs.length === 0 && !restarted) return;
    const runs = new Map(restarted ? [] : this.runs);
    for (const run of answer.runs) runs.set(run.id, run);
    this.runs = runs;
  }
}

export const known = new Known();

/** The run that others are held against, by its path; it lasts as long as the browser keeps it. */
class Baseline {
  path = $state<string | null>(stored());

  choose(path: string | null): void {
    this.path = path;
    try {
      if (path === null) localStorage.removeItem("stepscope.baseline");
      else localStorage.setItem("stepscope.baseline", path);
    } catch {
      // Storage may be disabled; the choice then lasts as long as the page.
    }
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem("stepscope.baseline");
  } catch {
    return null;
  }
}

export const baseline = new Baseline();
