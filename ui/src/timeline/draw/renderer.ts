/** Chooses the renderer: WebGL2 with a graphics card, else the 2D canvas; and survives the loss of the card's context. */
import { CanvasRenderer } from "./canvas";
import { GlRenderer } from "./gl";
import type { Renderer, Scene } from "./scene";
import type { Chunk } from "../model/tiles";

export type Wanted = "auto" | "webgl" | "canvas";

/** Software WebGL; slower than drawing the pixels directly. */
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
 * Draws with WebGL as long as there is a context. The context may be lost (a driver restarts, a laptop wakes up, too many
 * pages use one): its content is then rebuilt from the chunks as soon as it is restored, and if it is not, a 2D canvas
 * replaces the old one.
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

  /** Prevents the default, which is to lose the context permanently. */
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
