/** Two fingers on the plot: how their movement zooms and pans. Pure. */

export interface Point {
  x: number;
  y: number;
}

export type Fingers = readonly [Point, Point];

export interface Pinch {
  /** Zoom factor: below 1 when the fingers move apart. */
  factor: number;
  /** What stays under the fingers, in pixels of the plot. */
  x: number;
  /** The movement of their midpoint, reversed: how far the view has to move. */
  panX: number;
  panY: number;
}

/** Below this distance, jitter dominates. */
const CLOSEST = 24;

export function pinch(before: Fingers, after: Fingers): Pinch {
  const [was, is] = [middle(before), middle(after)];
  return { factor: gap(before) / gap(after), x: is.x, panX: was.x - is.x, panY: was.y - is.y };
}

function middle([a, b]: Fingers): Point {
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
}

function gap([a, b]: Fingers): number {
  return Math.max(CLOSEST, Math.hypot(a.x - b.x, a.y - b.y));
}
