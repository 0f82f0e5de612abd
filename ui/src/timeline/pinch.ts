/** Two fingers on the plot: what their way means for zoom and place. Pure. */

export interface Point {
  x: number;
  y: number;
}

export type Fingers = readonly [Point, Point];

export interface Pinch {
  /** By how much the window grows: below 1 when the fingers part. */
  factor: number;
  /** What stays under the fingers, in pixels of the plot. */
  x: number;
  /** How far the middle between them went, against its direction: what the view has to move by. */
  panX: number;
  panY: number;
}

/** Fingers closer than this tremble more than they tell. */
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
