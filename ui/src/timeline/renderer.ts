/** Picks the renderer: WebGL2 where a graphics card stands behind it, else the 2D canvas. */
import { CanvasRenderer } from "./canvas";
import { GlRenderer } from "./gl";
import type { Renderer } from "./scene";

export type Wanted = "auto" | "webgl" | "canvas";

/** WebGL drawn by the processor; slower than drawing the pixels ourselves. */
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

/**
 * A canvas gives out only one kind of context, so the choice is made on a canvas of its own before the real one is
 * touched. `lost` is called when the graphics card takes the context away: the caller then starts over without it.
 */
export function pickRenderer(canvas: HTMLCanvasElement, wanted: Wanted, lost: () => void): Renderer {
  if (wanted === "canvas" || (wanted === "auto" && !hardware())) return new CanvasRenderer(canvas);
  const gl = canvas.getContext("webgl2", { alpha: true, antialias: false, depth: false, premultipliedAlpha: true });
  if (!gl) throw new Error("WebGL2 is not available");
  canvas.addEventListener("webglcontextlost", (event) => {
    event.preventDefault();
    lost();
  }, { once: true });
  return new GlRenderer(canvas, gl);
}

function hardware(): boolean {
  const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  if (!gl) return false;
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return !SOFTWARE.test(name);
}
