/**
 * A hook for measurements: `window.__stepscopeTimeline`. `ready` is true once the first picture is complete, `frames`
 * contains the milliseconds of page code for each of the last frames, `tileTimes` those between requesting and receiving
 * a tile, and `complete()` says whether every visible tile of the current level is drawn. Costs one push per frame.
 */
import type { Span } from "../model/types";

export interface Hook {
  ready: boolean;
  renderer: string;
  frames: number[];
  tileTimes: number[];
  spans: number;
  complete(): boolean;
  view(): Span;
}

declare global {
  interface Window {
    __stepscopeTimeline?: Hook;
  }
}

export const KEPT_FRAMES = 4096;

export function note(hook: Hook, ms: number): void {
  hook.frames.push(ms);
  if (hook.frames.length > KEPT_FRAMES) hook.frames.splice(0, KEPT_FRAMES / 2);
}
