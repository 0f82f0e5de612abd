/**
 * Keyboard, mouse and touch input on the plot, as in Perfetto. Emits `Commands`, and never executes them itself.
 * Held keys move smoothly: `advance` is called every frame while one is down.
 */

import { pinch, type Point } from "./pinch";

export interface Commands {
  zoomBy(factor: number, x: number | null): void;
  panBy(share: number): void;
  panPx(px: number): void;
  scrollBy(px: number): void;
  click(x: number, y: number): void;
  hoverMove(x: number, y: number): void;
  leave(): void;
  /** A drag for an area; `done` on its last call. */
  drag(x0: number, y0: number, x1: number, y1: number, done: boolean): void;
  cancelDrag(): void;
  fit(): void;
  neighbour(dir: "next" | "previous", same: "name" | "row"): void;
  /** Moves the selection. */
  step(way: "left" | "right" | "up" | "down"): void;
  /** Selects an event in view; with a selection, shows it. */
  pick(): void;
  /** Goes along an arrow; false when there is none. */
  flow(direction: "in" | "out"): boolean;
  /** Shows both ends of an arrow; false when there is none. */
  both(): boolean;
  /** Goes to the next or previous hit of the search. */
  stepHit(by: 1 | -1): void;
  /** Pins the track of the selection, or takes it back. */
  pinSelected(): void;
  mark(): void;
  clear(): void;
  search(): void;
  help(): void;
  /** Something moves: frames are needed. */
  wake(): void;
}

const CLICK_PX = 4;
/** A finger that rests this long (ms) before it moves selects an area; one that moves at once pans. */
const HOLD_MS = 400;
/** Zoom per wheel pixel, and the maximum: trackpads report a pinch as many small wheel events. */
const WHEEL_ZOOM = 0.012;
const MOST_WHEEL_ZOOM = 0.36;
/** Pan and zoom speed of a held key, in windows per second. */
const PAN_SPEED = 1.1;
const ZOOM_SPEED = 4.5;
const MOVES = new Set(["w", "s", "a", "d", "arrowleft", "arrowright"]);

export class Input {
  private readonly held = new Set<string>();
  private pointer: {
    id: number;
    x: number;
    y: number;
    lastX: number;
    lastY: number;
    mode: "press" | "pan" | "area";
    pan: boolean;
  } | null = null;
  private holding = 0;
  /** Fingers on the plot, the first two of which count. */
  private readonly fingers = new Map<number, Point>();
  /** Progress of a trackpad gesture, if the browser reports it (Safari). */
  private scale = 1;
  /** Pointer position, for zooming with keys; null if it is elsewhere. */
  private x: number | null = null;
  private readonly stops: (() => void)[] = [];

  constructor(
    private readonly plot: HTMLElement,
    /** Keys count if their target is inside, or (with `alone`) if they have no particular target. */
    private readonly root: HTMLElement,
    private readonly alone: boolean,
    private readonly commands: Commands,
    private readonly calm: () => boolean,
  ) {
    this.on(plot, "wheel", (e) => this.wheel(e), { passive: false });
    this.on(plot, "pointerdown", (e) => this.down(e));
    this.on(plot, "pointermove", (e) => this.move(e));
    this.on(plot, "pointerup", (e) => this.up(e));
    this.on(plot, "pointercancel", (e) => {
      this.fingers.delete(e.pointerId);
      this.lose();
    });
    // A finger that rests must not open the browser's menu.
    this.on(plot, "contextmenu", (e) => {
      if (this.fingers.size > 0) e.preventDefault();
    });
    this.onGesture("gesturestart", () => (this.scale = 1));
    this.onGesture("gesturechange", (e) => this.gesture(e));
    this.on(plot, "pointerleave", () => {
      this.x = null;
      commands.leave();
    });
    this.on(window, "keydown", (e) => this.keyDown(e), { capture: true });
    this.on(window, "keyup", (e) => this.held.delete(e.key.toLowerCase()));
    this.on(window, "blur", () => this.held.clear());
  }

  close(): void {
    clearTimeout(this.holding);
    for (const stop of this.stops) stop();
  }

  get moving(): boolean {
    return this.held.size > 0;
  }

  /** Moves according to the held keys for `dt` milliseconds. */
  advance(dt: number): void {
    const seconds = Math.min(dt, 50) / 1000;
    const pan = Number(this.down1("d", "arrowright")) - Number(this.down1("a", "arrowleft"));
    const zoom = Number(this.held.has("s")) - Number(this.held.has("w"));
    if (pan !== 0) this.commands.panBy(pan * PAN_SPEED * seconds);
    if (zoom !== 0) this.commands.zoomBy(Math.exp(zoom * ZOOM_SPEED * seconds), this.x);
  }

  private down1(a: string, b: string): boolean {
    return this.held.has(a) || this.held.has(b);
  }

  private on<K extends keyof WindowEventMap>(
    target: EventTarget,
    type: K,
    listener: (event: WindowEventMap[K]) => void,
    options?: AddEventListenerOptions,
  ): void {
    const handler = listener as EventListener;
    target.addEventListener(type, handler, options);
    this.stops.push(() => target.removeEventListener(type, handler, options));
  }

  private at(event: MouseEvent): { x: number; y: number } {
    const box = this.plot.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private wheel(event: WheelEvent): void {
    const line = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 18 : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const by = event.deltaY * line * WHEEL_ZOOM;
      this.commands.zoomBy(Math.exp(Math.max(-MOST_WHEEL_ZOOM, Math.min(MOST_WHEEL_ZOOM, by))), this.at(event).x);
      return;
    }
    const across = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      this.commands.panPx(across * line);
    }
  }

  /** Safari reports a trackpad pinch with its own events; on a touch screen they only duplicate the touch events. */
  private gesture(event: MouseEvent & { scale: number }): void {
    if (this.fingers.size > 0) return;
    this.commands.zoomBy(this.scale / event.scale, this.at(event).x);
    this.scale = event.scale;
  }

  private onGesture(type: string, listener: (event: MouseEvent & { scale: number }) => void): void {
    const handler = (event: Event): void => {
      event.preventDefault();
      listener(event as MouseEvent & { scale: number });
    };
    this.plot.addEventListener(type, handler);
    this.stops.push(() => this.plot.removeEventListener(type, handler));
  }

  private down(event: PointerEvent): void {
    if (event.pointerType === "touch") {
      this.fingers.set(event.pointerId, this.at(event));
      if (this.fingers.size > 1) {
        this.plot.setPointerCapture(event.pointerId);
        this.lose();
        return;
      }
    }
    if (event.button > 1 || this.pointer) return;
    if (event.button === 1) event.preventDefault();
    this.plot.focus({ preventScroll: true });
    this.plot.setPointerCapture(event.pointerId);
    const { x, y } = this.at(event);
    const pan = event.shiftKey || event.button === 1 || event.pointerType === "touch";
    this.pointer = { id: event.pointerId, x, y, lastX: x, lastY: y, mode: "press", pan };
    clearTimeout(this.holding);
    if (event.pointerType === "touch") this.holding = window.setTimeout(() => this.hold(), HOLD_MS);
  }

  /** A finger rests: from here on it draws an area. */
  private hold(): void {
    const { pointer } = this;
    if (pointer?.mode !== "press") return;
    pointer.mode = "area";
    this.commands.drag(pointer.x, pointer.y, pointer.x, pointer.y, false);
  }

  private move(event: PointerEvent): void {
    const { x, y } = this.at(event);
    this.x = x;
    if (this.fingers.has(event.pointerId)) {
      const several = this.fingers.size > 1;
      this.finger(event.pointerId, { x, y });
      if (several) return;
    }
    const pointer = this.pointer;
    if (!pointer || pointer.id !== event.pointerId) {
      this.commands.hoverMove(x, y);
      return;
    }
    if (pointer.mode === "press" && Math.hypot(x - pointer.x, y - pointer.y) > CLICK_PX)
      pointer.mode = pointer.pan ? "pan" : "area";
    if (pointer.mode === "pan") {
      this.commands.panPx(pointer.lastX - x);
      this.commands.scrollBy(pointer.lastY - y);
    } else if (pointer.mode === "area") this.commands.drag(pointer.x, pointer.y, x, y, false);
    pointer.lastX = x;
    pointer.lastY = y;
  }

  /** One of several fingers moved: two of them zoom and pan at once. */
  private finger(id: number, to: Point): void {
    const before = [...this.fingers.values()];
    this.fingers.set(id, to);
    const after = [...this.fingers.values()];
    const [a0, b0, a1, b1] = [before[0], before[1], after[0], after[1]];
    if (!a0 || !b0 || !a1 || !b1) return;
    const { factor, x, panX, panY } = pinch([a0, b0], [a1, b1]);
    this.commands.panPx(panX);
    if (factor !== 1) this.commands.zoomBy(factor, x);
    this.commands.scrollBy(panY);
  }

  /** The remaining finger continues panning; it must not end in a click. */
  private lift(id: number): void {
    if (!this.fingers.delete(id)) return;
    const [rest] = [...this.fingers];
    if (this.fingers.size !== 1 || !rest) return;
    const [{ x, y }, left] = [rest[1], rest[0]];
    this.pointer = { id: left, x, y, lastX: x, lastY: y, mode: "pan", pan: true };
  }

  private up(event: PointerEvent): void {
    this.lift(event.pointerId);
    const pointer = this.pointer;
    if (!pointer || pointer.id !== event.pointerId) return;
    this.pointer = null;
    const { x, y } = this.at(event);
    const moved = Math.hypot(x - pointer.x, y - pointer.y) > CLICK_PX;
    if (pointer.mode === "press") this.commands.click(x, y);
    else if (pointer.mode === "area" && !moved) this.commands.cancelDrag();
    else if (pointer.mode === "area") this.commands.drag(pointer.x, pointer.y, x, y, true);
  }

  private lose(): void {
    clearTimeout(this.holding);
    if (this.pointer?.mode === "area") this.commands.cancelDrag();
    this.pointer = null;
  }

  private keyDown(event: KeyboardEvent): void {
    // A dialog above the timeline handles the keys itself, especially Escape.
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || inDialog(event.target)) return;
    const inside = event.target instanceof Node && this.root.contains(event.target);
    const nowhere =
      event.target === document.body || (event.target instanceof HTMLElement && event.target.contains(this.root));
    if (!inside && !(this.alone && nowhere)) return;
    if (!this.act(event.key.toLowerCase(), event)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** True if the key was handled here. */
  private act(key: string, event: KeyboardEvent): boolean {
    const { commands } = this;
    if (event.shiftKey && key.startsWith("arrow") && !this.onControl(event)) {
      commands.step(key.slice("arrow".length) as "left" | "right" | "up" | "down");
      return true;
    }
    if (MOVES.has(key)) {
      // Arrow keys keep their meaning on buttons and in lists; letters work everywhere on the page.
      if (key.startsWith("arrow") && this.onControl(event)) return false;
      if (this.calm()) this.leap(key);
      else this.held.add(key);
      commands.wake();
      return true;
    }
    const same = event.shiftKey ? "row" : "name";
    switch (key) {
      case ".":
      case ">":
        commands.neighbour("next", same);
        return true;
      case ",":
      case "<":
        commands.neighbour("previous", same);
        return true;
      case "]":
        return commands.flow("out");
      case "[":
        return commands.flow("in");
      case "b":
        return commands.both();
      case "n":
        commands.stepHit(event.shiftKey ? -1 : 1);
        return true;
      case "p":
        commands.pinSelected();
        return true;
      case "f":
        commands.fit();
        return true;
      case "enter":
        if (this.onControl(event)) return false;
        commands.pick();
        return true;
      case "m":
        commands.mark();
        return true;
      case "/":
        commands.search();
        return true;
      case "?":
        commands.help();
        return true;
      case "escape":
        this.lose();
        commands.clear();
        return true;
      case "arrowup":
      case "arrowdown":
        if (this.onControl(event)) return false;
        commands.scrollBy(key === "arrowup" ? -54 : 54);
        return true;
      default:
        return false;
    }
  }

  private onControl(event: KeyboardEvent): boolean {
    return event.target !== this.plot && event.target instanceof HTMLElement && this.root.contains(event.target);
  }

  /** Without animation: one step per key press. */
  private leap(key: string): void {
    if (key === "w" || key === "s") this.commands.zoomBy(key === "w" ? 0.7 : 1 / 0.7, this.x);
    else this.commands.panBy(key === "a" || key === "arrowleft" ? -0.2 : 0.2);
  }
}

function inDialog(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("dialog") !== null;
}

function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]")
  );
}
