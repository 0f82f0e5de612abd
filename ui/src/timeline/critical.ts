/**
 * The critical path of the step in view: which step that is, what is known about its path, and its outlines on the events
 * that are part of it.
 */
import { locate } from "./flows";
import { percent } from "./format";
import type { Source } from "./net";
import type { Scene } from "./scene";
import type { Theme } from "./theme";
import type { Span, Step, StepPath, Timeline } from "./types";
import { xAt } from "./view";

/** How long the view must rest before another step is asked for, in ms. */
const REST = 200;
/** Paths are shown for at most this many hosts. */
const MOST_HOSTS = 8;

/** The step of each host in the middle of the view, or the closest one. */
export function stepsInView(timeline: Timeline, window: Span): Step[] {
  const middle = (window.start + window.end) / 2;
  const away = (step: Step) => Math.max(0, step.start_ns - middle, middle - step.end_ns);
  const nearest = new Map<number, Step>();
  for (const step of timeline.steps) {
    const known = nearest.get(step.host);
    if (!known || away(step) < away(known)) nearest.set(step.host, step);
  }
  return [...nearest.values()].filter((step) => step.end_ns > window.start && step.start_ns < window.end).slice(0, MOST_HOSTS);
}

/** What the toolbar says about paths. */
export function summary(paths: readonly StepPath[], titles: (key: string) => string): string {
  const known = paths.find((path) => path.unknown === null);
  if (!known) return paths[0]?.unknown ? `Critical path unknown: ${paths[0].unknown}` : "";
  const parts = (known.categories ?? []).slice(0, 2).map((part) => `${titles(part.category)} ${percent(part.fraction)}`);
  return `Critical path of step ${known.step}: ${parts.join(", ")}`;
}

export class Critical {
  paths: readonly StepPath[] = [];
  private on = false;
  private asked = "";
  private timer = 0;

  constructor(
    private readonly timeline: Timeline,
    private readonly source: Source,
    private readonly changed: (paths: readonly StepPath[]) => void,
  ) {}

  show(on: boolean, window: Span): void {
    this.on = on;
    this.asked = "";
    if (on) this.ask(window);
    else this.set([]);
  }

  /** The view moved: another step may be in it. */
  look(window: Span): void {
    if (!this.on) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(window), REST) as unknown as number;
  }

  close(): void {
    clearTimeout(this.timer);
    this.on = false;
  }

  private ask(window: Span): void {
    const steps = stepsInView(this.timeline, window);
    const key = steps.map((step) => `${step.host}.${step.index}`).join();
    if (!this.on || key === this.asked) return;
    this.asked = key;
    Promise.all(steps.map((step) => this.source.critical(step.host, step.index))).then((paths) => {
      if (this.on && key === this.asked) this.set(paths);
    }, () => {
      if (key === this.asked) this.asked = "";
    });
  }

  private set(paths: readonly StepPath[]): void {
    this.paths = paths;
    this.changed(paths);
  }
}

/** Outlines what is visible of the paths, and the way from one piece to the next where the track changes. */
export function drawCritical(context: CanvasRenderingContext2D, scene: Scene, timeline: Timeline, slotOf: ReadonlyMap<number, number>, paths: readonly StepPath[], theme: Theme): void {
  context.strokeStyle = theme.critical;
  context.fillStyle = theme.critical;
  for (const path of paths) {
    let before: { x: number; y: number } | null = null;
    let drawn = -Infinity;
    for (const piece of path.pieces) {
      const slot = piece.track === null ? undefined : slotOf.get(piece.track);
      if (slot === undefined || piece.end_ns < scene.window.start || piece.start_ns > scene.window.end) continue;
      const place = locate(scene, timeline, slot, piece.row ?? 0);
      const left = Math.max(-4, xAt(scene.window, piece.start_ns, scene.width));
      const right = Math.min(scene.width + 4, xAt(scene.window, piece.end_ns, scene.width));
      const middle = place.y + place.height / 2;
      if (before && Math.abs(before.y - middle) > 1 && left - drawn >= 3) {
        context.globalAlpha = 0.75;
        context.fillRect(Math.round(left) - 0.5, Math.min(before.y, middle), 1, Math.abs(before.y - middle));
        context.globalAlpha = 1;
        drawn = left;
      }
      before = { x: right, y: middle };
      if (place.hidden) continue;
      if (right - left < 3) context.fillRect(left, place.y, Math.max(1, right - left), place.height);
      else {
        context.lineWidth = 2;
        context.strokeRect(left + 1, place.y + 1, right - left - 2, Math.max(1, place.height - 2));
      }
    }
  }
}
