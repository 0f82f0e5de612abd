/**
 * The critical path of the step in view: which step that is, what is known about its path, and its outlines on the events
 * that are part of it.
 */
import { locate } from "./flows";
import { percent } from "../model/format";
import type { Source } from "../model/net";
import type { Scene } from "./scene";
import type { Theme } from "./theme";
import type { Span, StepPath, Timeline } from "../model/types";
import { xAt } from "../model/view";

/** How long the view must rest before another step is asked for, in ms. */
const REST = 200;
/** Paths are shown for at most this many hosts: the first. */
const MOST_HOSTS = 8;

/** Is a moment inside the step of a path? */
function covers(path: StepPath, ns: number): boolean {
  return path.start_ns !== undefined && path.end_ns !== undefined && path.start_ns <= ns && ns < path.end_ns;
}

/** The path that is told of: of several hosts, that of the one that the others wait for. */
export function leading(paths: readonly StepPath[]): StepPath | undefined {
  const waits = (path: StepPath) => path.categories?.find((part) => part.category === "communication")?.fraction ?? 0;
  return paths.filter((path) => path.unknown === null).sort((a, b) => waits(a) - waits(b))[0];
}

/** What the toolbar says about paths. */
export function summary(paths: readonly StepPath[], titles: (key: string) => string, hosts: readonly string[]): string {
  const known = leading(paths);
  if (!known) return paths[0]?.unknown ? `Critical path unknown: ${paths[0].unknown}` : "";
  const parts = (known.categories ?? [])
    .slice(0, 2)
    .map((part) => `${titles(part.category)} ${percent(part.fraction)}`);
  return `Critical path of step ${known.step}${hosts.length > 1 ? ` on ${hosts[known.host]}` : ""}: ${parts.join(", ")}`;
}

export class Critical {
  paths: readonly StepPath[] = [];
  private on = false;
  private asked = 0;
  private readonly hosts: number[];
  private timer = 0;

  constructor(
    timeline: Timeline,
    private readonly source: Source,
    private readonly changed: (paths: readonly StepPath[]) => void,
  ) {
    this.hosts = [...new Set((timeline.steps ?? []).map((step) => step.host))].slice(0, MOST_HOSTS);
  }

  show(on: boolean, window: Span): void {
    this.on = on;
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
    if (!this.on) return;
    const middle = Math.round((window.start + window.end) / 2);
    // A device may lag behind its host, so the server says which step is in the middle of the view.
    if (this.paths.length > 0 && this.paths.every((path) => covers(path, middle))) return;
    const asked = (this.asked += 1);
    const known = (host: number) => this.paths.find((path) => path.host === host && covers(path, middle));
    Promise.all(this.hosts.map(async (host) => known(host) ?? this.source.critical(host, middle))).then(
      (paths) => {
        if (this.on && asked === this.asked) this.set(paths);
      },
      () => undefined,
    );
  }

  private set(paths: readonly StepPath[]): void {
    this.paths = paths;
    this.changed(paths);
  }
}

/** A stretch of one row that is on the path, in CSS pixels. */
interface Box {
  left: number;
  right: number;
  y: number;
  height: number;
  hidden: boolean;
}

/** Pieces closer than this (px) share an outline. */
const NEAR = 3;

/** What is visible of a path: pieces that touch on one row are one box. */
export function boxesOf(scene: Scene, timeline: Timeline, slotOf: ReadonlyMap<number, number>, path: StepPath): Box[] {
  const boxes: Box[] = [];
  for (const piece of path.pieces) {
    const slot = piece.track === null ? undefined : slotOf.get(piece.track);
    if (slot === undefined || piece.end_ns < scene.window.start || piece.start_ns > scene.window.end) continue;
    const { y, height, hidden } = locate(scene, timeline, slot, piece.row ?? 0);
    const left = Math.max(-4, xAt(scene.window, piece.start_ns, scene.width));
    const right = Math.min(scene.width + 4, xAt(scene.window, piece.end_ns, scene.width));
    const last = boxes.at(-1);
    if (last && last.y === y && left - last.right < NEAR) last.right = Math.max(last.right, right);
    else boxes.push({ left, right, y, height, hidden });
  }
  return boxes;
}

/** Below this width (px) a box has no room inside its outline: a line below it says the same and hides nothing. */
const NARROW = 12;
/** The height of that line, in pixels. */
const LINE = 3;
/** Ways between rows that are closer than this (px) would be a red area. */
const APART = 24;

/** Outlines what is visible of the paths, and the way from one piece to the next where the row changes. Events stay
 * readable: nothing is drawn over them. */
export function drawCritical(
  context: CanvasRenderingContext2D,
  scene: Scene,
  timeline: Timeline,
  slotOf: ReadonlyMap<number, number>,
  paths: readonly StepPath[],
  theme: Theme,
): void {
  context.strokeStyle = theme.critical;
  context.fillStyle = theme.critical;
  context.lineWidth = 2;
  for (const path of paths) {
    let before: Box | null = null;
    let drawn = -Infinity;
    for (const box of boxesOf(scene, timeline, slotOf, path)) {
      const [from, to] = [before ? before.y + before.height / 2 : 0, box.y + box.height / 2];
      if (before && Math.abs(from - to) > 1 && box.left - drawn >= APART) {
        context.globalAlpha = 0.6;
        context.fillRect(Math.round(box.left) - 0.5, Math.min(from, to), 1, Math.abs(from - to));
        context.globalAlpha = 1;
        drawn = box.left;
      }
      before = box;
      if (box.hidden) continue;
      const line = Math.min(LINE, box.height);
      if (box.right - box.left < NARROW)
        context.fillRect(box.left, box.y + box.height - line, Math.max(1, box.right - box.left), line);
      else context.strokeRect(box.left + 1, box.y + 1, box.right - box.left - 2, Math.max(1, box.height - 2));
    }
  }
}
