/** A requested resource: its data or its error, and a way to retry. */
import { problemOf, type Problem } from "./ask";

export class Resource<T> {
  data = $state.raw<T | undefined>();
  problem = $state.raw<Problem | undefined>();
  #attempt = $state(0);

  /** Requests at once, again whenever a dependency of `load` changes, and stops when the component is destroyed. */
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
