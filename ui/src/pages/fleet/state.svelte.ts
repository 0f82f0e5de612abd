/** What the server knows of the fleet: how far it has read, the report, and which session shows which recording. */
import { ask, problemOf, type Problem } from "../../server/ask";
import { app } from "../../state/app.svelte";
import type { Fleet, FleetPage, FleetSeries, FleetSteps } from "../../server/schema";
import type { Session } from "../../server/types";

/** How often to ask while hosts are being read, and afterwards; in milliseconds. */
const BUSY_MS = 500;
const CALM_MS = 4000;

export class FleetState {
  at = $state.raw<FleetPage | null>(null);
  report = $state.raw<Fleet | null>(null);
  /** Why there is no answer. */
  problem = $state.raw<Problem | null>(null);
  #version = 0;
  /** Goes up with every attempt that the user wants. */
  #attempt = $state(0);

  /** Follows the server until the returned function is called. */
  follow(): () => void {
    void this.#attempt;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const next = async (): Promise<void> => {
      if (!document.hidden) await this.#refresh(controller.signal);
      const pause = this.at?.state === "reading" ? BUSY_MS : CALM_MS;
      if (!controller.signal.aborted) timer = setTimeout(() => void next(), pause);
    };
    void next();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }

  retry = (): void => {
    this.#attempt++;
  };

  async #refresh(signal: AbortSignal): Promise<void> {
    try {
      const at = await ask<FleetPage>("fleet", signal);
      if (at.version !== this.#version && at.version > 0) {
        this.report = await ask<Fleet>("fleet/report", signal);
        this.#version = at.version;
      }
      this.at = at;
      this.problem = null;
    } catch (error) {
      if (!signal.aborted) this.problem = problemOf(error);
    }
  }

  /** The session that shows a recording; none if its files are elsewhere. */
  sessionOf(recording: string): Session | undefined {
    const id = this.at?.sessions[recording];
    return id === undefined ? undefined : app.sessions.find((session) => session.id === id);
  }
}

/** How slow each host of a recording was at each step. */
export const stepsOf = (recording: string, signal: AbortSignal): Promise<FleetSteps> =>
  ask<FleetSteps>(`fleet/steps?${new URLSearchParams({ recording })}`, signal);

/** The recordings of a job, the newest first. */
export function recordingsOf(report: Fleet, job: string): FleetSeries[] {
  return report.series.filter((row) => row.job === job).reverse();
}
