/**
 * Recording from the page: asks the server to capture from a running process, follows it, and says what came of it. Off
 * unless the server was started with a folder to write to.
 */
import { act, ask, problemOf, Problem } from "../server/ask";
import type { Recording } from "../server/types";

/** How often to ask how far it is, in milliseconds. */
const POLL_MS = 300;

export interface RecordWish {
  address: string;
  seconds: number;
  steady: boolean;
}

class Recorder {
  /** What the server says; null until it was asked. */
  about = $state.raw<Recording | null>(null);
  problem = $state.raw<Problem | null>(null);
  /** The capture that this page started, or found running. */
  #follows = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** What to do with the session of a capture that is done. */
  ondone: (session: number | null) => void = () => {};

  on = $derived(this.about !== null && this.about.into !== null);
  running = $derived(this.about?.state === "running");

  /** Asks once whether recording is possible. */
  async look(): Promise<void> {
    try {
      this.#take(await ask<Recording>("record"));
    } catch {
      // A server without this address does not record.
      this.about = null;
    }
  }

  async start({ address, seconds, steady }: RecordWish): Promise<void> {
    const duration_ms = Math.round(seconds * 1000);
    await this.#act("start", { address, duration_ms, steady: steady ? 1 : undefined });
  }

  async cancel(): Promise<void> {
    await this.#act("cancel", {});
  }

  /** Forgets how the last one ended. */
  clear(): void {
    this.problem = null;
  }

  async #act(what: string, query: Record<string, string | number | undefined>): Promise<void> {
    this.problem = null;
    try {
      this.#take(await act<Recording>(`record/${what}`, query));
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  #take(about: Recording): void {
    const ended = this.#follows === about.number && this.running && about.state !== "running";
    this.about = about;
    clearTimeout(this.#timer);
    if (about.state === "running") {
      this.#follows = about.number;
      this.#timer = setTimeout(() => void this.look(), POLL_MS);
    } else if (ended) this.#end(about);
  }

  #end({ state, session, error }: Recording): void {
    if (state === "done") this.ondone(session ?? null);
    else if (state === "failed" && error) this.problem = new Problem(error.what, error.found, error.todo, error.hints);
    else if (state === "idle") this.problem = new Problem("The recording ended without a result", "", "Try again.");
  }
}

export const recorder = new Recorder();
