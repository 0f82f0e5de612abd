/** Picks the renderer: WebGL2 where a graphics card stands behind it, else the 2D canvas; and keeps one whatever the card does. */
import { CanvasRenderer } from "./canvas";
import { GlRenderer } from "./gl";
import type { Renderer, Scene } from "./scene";
import type { Chunk } from "./tiles";

export type Wanted = "auto" | "webgl" | "canvas";

/** WebGL drawn by the processor; slower than drawing the pixels ourselves. */
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;
/** How long a lost context may stay away before the timeline goes on without it, in milliseconds. */
const PATIENCE = 1500;

/**
 * A canvas gives out only one kind of context, so the choice is made on a canvas of its own before the real one is
 * touched. `changed` is called when everything has to be drawn again.
 */
export function pickRenderer(canvas: HTMLCanvasElement, wanted: Wanted, changed: () => void): Renderer {
  if (wanted === "canvas" || (wanted === "auto" && !hardware())) return new CanvasRenderer(canvas);
  const gl = canvas.getContext("webgl2", { alpha: true, antialias: false, depth: false, premultipliedAlpha: true });
  if (!gl) throw new Error("WebGL2 is not available");
  return new LastingRenderer(canvas, gl, changed);
}

/**
 * Draws with WebGL for as long as there is a context. The card may take it away (a driver starts anew, a laptop wakes up,
 * too many pages want one): what it held is then built again from the chunks as soon as it is given back, and where it
 * stays away, a 2D canvas takes the place of the old one.
 */
class LastingRenderer implements Renderer {
  private inner: Renderer | null;
  private waiting = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly gl: WebGL2RenderingContext,
    private readonly changed: () => void,
  ) {
    this.inner = new GlRenderer(canvas, gl);
    canvas.addEventListener("webglcontextlost", this.lost);
    canvas.addEventListener("webglcontextrestored", this.restored);
  }

  get kind(): Renderer["kind"] {
    return this.inner?.kind ?? "webgl";
  }

  draw(scene: Scene): void {
    this.inner?.draw(scene);
  }

  forget(chunk: Chunk): void {
    this.inner?.forget(chunk);
  }

  dispose(): void {
    this.unwatch();
    this.inner?.dispose();
  }

  /** Without the default, which is to give up on the context for good. */
  private readonly lost = (event: Event): void => {
    event.preventDefault();
    this.inner?.dispose();
    this.inner = null;
    this.waiting = window.setTimeout(() => this.goWithout(), PATIENCE);
  };

  private readonly restored = (): void => {
    clearTimeout(this.waiting);
    this.inner = new GlRenderer(this.canvas, this.gl);
    this.changed();
  };

  private goWithout(): void {
    this.unwatch();
    const plain = this.canvas.cloneNode() as HTMLCanvasElement;
    this.canvas.replaceWith(plain);
    this.inner = new CanvasRenderer(plain);
    this.changed();
  }

  private unwatch(): void {
    clearTimeout(this.waiting);
    this.canvas.removeEventListener("webglcontextlost", this.lost);
    this.canvas.removeEventListener("webglcontextrestored", this.restored);
  }
}

function hardware(): boolean {
  const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  if (!gl) return false;
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return !SOFTWARE.test(name);
}
