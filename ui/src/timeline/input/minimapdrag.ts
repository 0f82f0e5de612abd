/** Dragging on the minimap: its handles change the window, its inside moves it, a click elsewhere goes there. */
import type { Engine } from "../draw/engine";
import type { Span } from "../model/types";
import { clamp } from "../model/view";

export class MinimapDrag {
  private drag: { part: "left" | "right" | "inside"; x: number; window: Span } | null = null;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly engine: Engine,
    private readonly control: { showNow(window: Span): void; zoomBy(factor: number, x: number | null): void },
  ) {
    canvas.addEventListener("pointerdown", this.down);
    canvas.addEventListener("pointermove", this.move);
    canvas.addEventListener("pointerup", this.up);
    canvas.addEventListener("pointercancel", this.up);
    canvas.addEventListener("wheel", this.wheel, { passive: false });
  }

  close(): void {
    this.canvas.removeEventListener("pointerdown", this.down);
    this.canvas.removeEventListener("pointermove", this.move);
    this.canvas.removeEventListener("pointerup", this.up);
    this.canvas.removeEventListener("pointercancel", this.up);
    this.canvas.removeEventListener("wheel", this.wheel);
  }

  private readonly down = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    const { x, width } = this.at(event);
    let window = this.engine.window;
    const part = this.engine.minimapPart(x, width);
    if (part === "outside") {
      const { bounds } = this.engine;
      const half = (window.end - window.start) / 2;
      const t = bounds.start + ((bounds.end - bounds.start) * x) / width;
      window = clamp({ start: t - half, end: t + half }, bounds);
      this.control.showNow(window);
    }
    this.drag = { part: part === "outside" ? "inside" : part, x, window };
  };

  private readonly move = (event: PointerEvent): void => {
    const { x, width } = this.at(event);
    const { drag } = this;
    if (!drag) {
      const part = this.engine.minimapPart(x, width);
      this.canvas.style.cursor = part === "inside" ? "grab" : part === "outside" ? "pointer" : "ew-resize";
      return;
    }
    const { bounds } = this.engine;
    const by = ((x - drag.x) / width) * (bounds.end - bounds.start);
    const least = (bounds.end - bounds.start) / width / 4;
    let { start, end } = drag.window;
    if (drag.part !== "right") start += by;
    if (drag.part !== "left") end += by;
    if (drag.part === "left") start = Math.min(start, end - least);
    if (drag.part === "right") end = Math.max(end, start + least);
    this.control.showNow({ start, end });
  };

  private readonly up = (): void => {
    this.drag = null;
  };

  private readonly wheel = (event: WheelEvent): void => {
    event.preventDefault();
    this.control.zoomBy(Math.exp(Math.max(-80, Math.min(80, event.deltaY)) * 0.0045), null);
  };

  private at(event: PointerEvent): { x: number; width: number } {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, width: box.width };
  }
}
