/**
 * Draws spans as instanced rectangles with WebGL2. A chunk is uploaded once, 16 bytes a span; panning, zooming and
 * scrolling change uniforms only. Where tracks stand is a small texture that changes with the layout. A frame needs one
 * draw call per chunk in sight, and one per track for each substitute while tiles are on their way.
 */
import { COLORS } from "./colors";
import { bucketPx, DIM_ALPHA, FLOOR_ALPHA, type Renderer, type Scene, slotTop, tileX } from "./scene";
import { type Chunk, ENDS_BEHIND, type Part } from "../model/tiles";

const STRIDE = 16;
const TEXTURE_WIDTH = 1024;

const VERTEX = `#version 300 es
precision highp float;
precision highp int;
layout(location = 0) in vec2 a_time;
layout(location = 1) in uvec2 a_bits;
uniform vec4 u_tile;    // x of the tile's start, pixels per bucket, place (0 scrolls, 1 pinned), device pixels per pixel
uniform vec4 u_screen;  // width, height, scroll, height of the pinned part; device pixels
uniform ivec2 u_look;   // colour mode, 1 while a search dims
uniform highp sampler2D u_slots;
uniform mediump sampler2D u_palette;
flat out vec4 v_color;
flat out float v_right;
void main() {
  int slot = int(a_bits.x >> 16u);
  float row = float(a_bits.x & 0xffffu);
  vec4 place = texelFetch(u_slots, ivec2(slot % ${TEXTURE_WIDTH}, slot / ${TEXTURE_WIDTH}), 0);
  float ratio = u_tile.w;
  float x0 = u_tile.x + a_time.x * u_tile.y;
  float x1 = u_tile.x + a_time.y * u_tile.y;
  float left = floor(x0);
  float right = max(left + 1.0, floor(x1 + 0.5));
  float height = place.y * ratio;
  float top = place.x * ratio + row * height + (place.w == 1.0 ? 0.0 : u_screen.w - u_screen.z);
  float y0 = floor(top + 0.5);
  float y1 = floor(top + height + 0.5) - (height > 5.0 ? 1.0 : 0.0);
  bool shown = place.w == u_tile.z && row < place.z;
  float x = (gl_VertexID & 1) == 0 ? left : right;
  float y = (gl_VertexID & 2) == 0 ? y0 : y1;
  gl_Position = shown
    ? vec4(x / u_screen.x * 2.0 - 1.0, 1.0 - y / u_screen.y * 2.0, 0.0, 1.0)
    : vec4(2.0, 2.0, 2.0, 1.0);
  uint category = a_bits.y & 0xffu;
  uint hue = (a_bits.y >> 8u) & 0xffu;
  float share = float((a_bits.y >> 16u) & 0xffu) / 255.0;
  float alpha = max(${FLOOR_ALPHA.toFixed(2)}, share * min(1.0, x1 - x0));
  if (u_look.y == 1 && ((a_bits.y >> 24u) & 1u) == 0u) alpha *= ${DIM_ALPHA.toFixed(2)};
  int color = u_look.x == 1 ? int(hue) : int(min(category, 31u)) * 8 + int(hue % 8u);
  v_color = vec4(texelFetch(u_palette, ivec2(color, 0), 0).rgb * alpha, alpha);
  v_right = right - left >= 4.0 && ((a_bits.y >> 25u) & 1u) == 0u ? right - 1.0 : 1e9;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
flat in vec4 v_color;
flat in float v_right;
out vec4 color;
void main() {
  color = gl_FragCoord.x > v_right ? v_color * 0.45 : v_color;
}`;

interface Uploaded {
  buffer: WebGLBuffer;
  array: WebGLVertexArrayObject;
}

export class GlRenderer implements Renderer {
  readonly kind = "webgl";
  private readonly program: WebGLProgram;
  private readonly uniform: Record<"tile" | "screen" | "look", WebGLUniformLocation | null>;
  private readonly slots: WebGLTexture;
  private readonly colors: WebGLTexture;
  private readonly loose: WebGLVertexArrayObject;
  private slotsOf: unknown = null;
  private colorsOf: unknown = null;
  private readonly seen = new Set<Chunk>();

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly gl: WebGL2RenderingContext,
  ) {
    this.program = link(gl, VERTEX, FRAGMENT);
    const at = (name: string) => gl.getUniformLocation(this.program, name);
    this.uniform = { tile: at("u_tile"), screen: at("u_screen"), look: at("u_look") };
    this.slots = texture(gl);
    this.colors = texture(gl);
    this.loose = gl.createVertexArray();
    gl.useProgram(this.program);
    gl.uniform1i(at("u_slots"), 0);
    gl.uniform1i(at("u_palette"), 1);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  draw(scene: Scene): void {
    const { gl, canvas } = this;
    const width = Math.max(1, Math.round(scene.width * scene.ratio));
    const height = Math.max(1, Math.round(scene.height * scene.ratio));
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    gl.viewport(0, 0, width, height);
    gl.disable(gl.SCISSOR_TEST);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(this.program);
    this.textures(scene);
    gl.uniform4f(
      this.uniform.screen,
      width,
      height,
      scene.scroll * scene.ratio,
      scene.layout.pinnedHeight * scene.ratio,
    );
    gl.uniform2i(this.uniform.look, scene.mode === "name" ? 1 : 0, scene.dim ? 1 : 0);
    gl.enable(gl.SCISSOR_TEST);
    this.pass(scene, 0);
    if (scene.layout.pinnedHeight > 0) this.pass(scene, 1);
    gl.bindVertexArray(null);
  }

  forget(chunk: Chunk): void {
    const kept = chunk.gpu as Uploaded | null;
    if (!kept) return;
    this.gl.deleteBuffer(kept.buffer);
    this.gl.deleteVertexArray(kept.array);
    chunk.gpu = null;
    chunk.gpuVersion = -1;
    this.seen.delete(chunk);
  }

  dispose(): void {
    for (const chunk of [...this.seen]) this.forget(chunk);
    this.gl.deleteTexture(this.slots);
    this.gl.deleteTexture(this.colors);
    this.gl.deleteProgram(this.program);
  }

  private pass(scene: Scene, place: 0 | 1): void {
    const { ratio, layout } = scene;
    for (let tile = scene.first; tile <= scene.last; tile += 1) {
      const left = tileX(scene, scene.level, tile) * ratio;
      const right = tileX(scene, scene.level, tile + 1) * ratio;
      const here = scene.store.place(scene.level, tile);
      if (here) {
        this.clip(scene, place, left, right);
        for (const chunk of here.chunks) {
          scene.store.touch(chunk);
          const kept = this.upload(chunk);
          this.where(scene, chunk, place);
          this.gl.bindVertexArray(kept.array);
          this.gl.drawArraysInstanced(this.gl.TRIANGLE_STRIP, 0, 4, chunk.spans);
        }
      }
      for (const slot of scene.slots) {
        if ((layout.slots[slot * 4 + 3] as number) !== place || here?.parts[slot]) continue;
        scene.store.substitute(scene.level, tile, slot, (part) => this.substitute(scene, part, place, left, right));
      }
    }
  }

  private substitute(scene: Scene, part: Part, place: 0 | 1, left: number, right: number): void {
    if (part.count === 0 || slotTop(scene, part.slot) > scene.height) return;
    const { gl } = this;
    scene.store.touch(part.chunk);
    const kept = this.upload(part.chunk);
    this.clip(scene, place, left, right);
    this.where(scene, part.chunk, place);
    gl.bindVertexArray(this.loose);
    gl.bindBuffer(gl.ARRAY_BUFFER, kept.buffer);
    this.attributes(part.first * STRIDE);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, part.count);
  }

  private clip(scene: Scene, place: 0 | 1, left: number, right: number): void {
    const height = this.canvas.height;
    const pinned = Math.round(scene.layout.pinnedHeight * scene.ratio);
    const x = Math.max(0, Math.round(left));
    const width = Math.max(0, Math.min(this.canvas.width, Math.round(right)) - x);
    if (place === 1) this.gl.scissor(x, Math.max(0, height - pinned), width, pinned);
    else this.gl.scissor(x, 0, width, Math.max(0, height - pinned));
  }

  private where(scene: Scene, chunk: Chunk, place: 0 | 1): void {
    const { ratio } = scene;
    const x = tileX(scene, chunk.level, chunk.tile) * ratio;
    this.gl.uniform4f(this.uniform.tile, x, bucketPx(scene, chunk.level) * ratio, place, ratio);
  }

  private upload(chunk: Chunk): Uploaded {
    const { gl } = this;
    let kept = chunk.gpu as Uploaded | null;
    if (kept && chunk.gpuVersion === chunk.hitVersion) return kept;
    if (!kept) {
      kept = { buffer: gl.createBuffer(), array: gl.createVertexArray() };
      chunk.gpu = kept;
      this.seen.add(chunk);
      gl.bindVertexArray(kept.array);
      gl.bindBuffer(gl.ARRAY_BUFFER, kept.buffer);
      this.attributes(0);
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, kept.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, pack(chunk), gl.STATIC_DRAW);
    chunk.gpuVersion = chunk.hitVersion;
    return kept;
  }

  private attributes(offset: number): void {
    const { gl } = this;
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, STRIDE, offset);
    gl.vertexAttribDivisor(0, 1);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribIPointer(1, 2, gl.UNSIGNED_INT, STRIDE, offset + 8);
    gl.vertexAttribDivisor(1, 1);
  }

  private textures(scene: Scene): void {
    const { gl } = this;
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.slots);
    if (this.slotsOf !== scene.layout) {
      const rows = Math.ceil(scene.layout.slots.length / 4 / TEXTURE_WIDTH);
      const texels = new Float32Array(rows * TEXTURE_WIDTH * 4);
      texels.set(scene.layout.slots);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, TEXTURE_WIDTH, rows, 0, gl.RGBA, gl.FLOAT, texels);
      this.slotsOf = scene.layout;
    }
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.colors);
    if (this.colorsOf !== scene.palette) {
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, COLORS, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, scene.palette.bytes);
      this.colorsOf = scene.palette;
    }
  }
}

/** start, end, (row | slot << 16), (category | hue << 8 | share << 16 | hit << 24 | goes on behind the tile << 25). */
function pack(chunk: Chunk): ArrayBuffer {
  const bytes = new ArrayBuffer(chunk.spans * STRIDE);
  const floats = new Float32Array(bytes);
  const words = new Uint32Array(bytes);
  const { start, end, busy, count, row, category, hue, hit, flags } = chunk;
  const searched = hit.length === chunk.spans;
  for (const part of chunk.parts) {
    for (let i = part.first; i < part.first + part.count; i += 1) {
      const width = Math.max(1e-6, (end[i] as number) - (start[i] as number));
      const share = (count[i] as number) > 1 ? Math.min(1, (busy[i] as number) / width) : 1;
      floats[i * 4] = start[i] as number;
      floats[i * 4 + 1] = end[i] as number;
      words[i * 4 + 2] = (row[i] as number) | (part.slot << 16);
      const marks = (searched && hit[i] === 1 ? 1 : 0) | (((flags[i] as number) & ENDS_BEHIND) !== 0 ? 2 : 0);
      words[i * 4 + 3] =
        (category[i] as number) | ((hue[i] as number) << 8) | (Math.round(share * 255) << 16) | (marks << 24);
    }
  }
  return bytes;
}

function texture(gl: WebGL2RenderingContext): WebGLTexture {
  const made = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, made);
  for (const key of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, key, gl.NEAREST);
  for (const key of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, key, gl.CLAMP_TO_EDGE);
  return made;
}

function link(gl: WebGL2RenderingContext, vertex: string, fragment: string): WebGLProgram {
  const program = gl.createProgram();
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, vertex],
    [gl.FRAGMENT_SHADER, fragment],
  ] as const) {
    const shader = gl.createShader(kind);
    if (!shader) throw new Error("no shader");
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
    gl.deleteShader(shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS))
    throw new Error(gl.getProgramInfoLog(program) ?? "shaders do not link");
  return program;
}
