/** What a device did, in a few words. */
import { bytes, ms, plural, short } from "../../words/format";

export interface Work {
  kernels: number | null;
  kernelMs: number | null;
  streams: number | null;
  /** How many streams were busy at the same time, on average. */
  concurrency: number | null;
  bytesIn: number | null;
  bytesOut: number | null;
}

/** Parts that say nothing are left out: one stream cannot run beside itself. */
export function workWords({ kernels, kernelMs, streams, concurrency, bytesIn, bytesOut }: Work): string {
  return [
    kernels ? `${plural(kernels, "kernel", "kernels")}, ${ms(kernelMs)} each` : "",
    streams ? plural(streams, "stream", "streams") : "",
    concurrency && (streams ?? 0) > 1 ? `${short(concurrency)} of them at once` : "",
    bytesIn ? `${bytes(bytesIn)} copied in` : "",
    bytesOut ? `${bytes(bytesOut)} out` : "",
  ]
    .filter((words) => words !== "")
    .join(" · ");
}
