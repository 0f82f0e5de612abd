/** What the engine draws on, and whom it notifies. */
import type { Layout } from "../model/layout";
import type { Span, StepPath } from "../model/types";
import type { Hover } from "./hover";

export interface Surfaces {
  root: HTMLElement;
  plot: HTMLElement;
  back: HTMLCanvasElement;
  spans: HTMLCanvasElement;
  front: HTMLCanvasElement;
  axis: HTMLCanvasElement;
  minimap: HTMLCanvasElement | null;
}

export interface Listener {
  layout(layout: Layout): void;
  frame(scroll: number): void;
  window(window: Span): void;
  hover(hover: Hover | null): void;
  base(text: string): void;
  /** Rows above the first one in sight came or went: the list should scroll by this many pixels. */
  scrolled(by: number): void;
  /** What the minimap shows besides the categories, in a word. */
  lanes(caption: string): void;
  /** Another step's critical path is shown, or none. */
  critical(paths: readonly StepPath[]): void;
  problem(error: unknown): void;
}
