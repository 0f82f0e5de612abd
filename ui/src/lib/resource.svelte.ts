/** Something that is asked for: its answer, or what went wrong, and a way to try again. */
import { problemOf, type Problem } from "./api";

export class Resource<T> {
  data = $state.raw<T | undefined>();
  problem = $state.raw<Problem | undefined>();
  #attempt = $state(0);

  /** Asks at once, again whenever what `load` reads changes, and stops when the component goes. */
  constructor(load: (signal: AbortSignal) => Promise<T>) {
    $effect(() => {
      void this.#attempt;
      const controller = new AbortController();
      this.problem = undefined;
      load(controller.signal).then(
        (data) => {
          if (!controller.signal.aborted) this.data = data;
        },
        (error: unknown) => {
          if (!controller.signal.aborted) this.problem = problemOf(error);
        },
      );
      return () => controller.abort();
    });
  }

  retry = (): void => {
    this.#attempt++;
  };
}
