/**
 * Colours of spans: by category (as the server names them) or by name (a stable hash into a palette that is
 * distinguishable with any kind of colour vision). Within a category, names differ a little in lightness, so that neighbours
 * do not melt into one.
 */
import type { Category } from "../model/types";

export type ColorMode = "category" | "name";

export const SHADES = 8;
export const HUES = 64;
/** Index of spans without a category. */
export const NO_CATEGORY = 31;
/** Colours in a palette: 32 categories in 8 shades each; names use the first 64. */
export const COLORS = 256;

/** Okabe and Ito's colours and Paul Tol's muted ones, without those that look alike. */
const NAMES = [
  "#0072b2",
  "#e69f00",
  "#009e73",
  "#cc79a7",
  "#56b4e9",
  "#d55e00",
  "#9d8a00",
  "#332288",
  "#88ccee",
  "#44aa99",
  "#117733",
  "#999933",
  "#ddaa33",
  "#cc6677",
  "#882255",
  "#aa4499",
];
/** Of what has no category. */
const NOTHING = "#8b939c";

export type Rgb = [number, number, number];

export function parseHex(hex: string): Rgb {
  const match = /^#?([0-9a-f]{6})$/i.exec(hex.trim());
  if (!match) return [139, 147, 156];
  const value = Number.parseInt(match[1] ?? "0", 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

export function toCss([r, g, b]: Rgb): string {
  return `rgb(${r},${g},${b})`;
}

/** Lighter for positive, darker for negative shares. */
export function shade([r, g, b]: Rgb, share: number): Rgb {
  const to = share > 0 ? 255 : 0;
  const k = Math.abs(share);
  return [Math.round(r + (to - r) * k), Math.round(g + (to - g) * k), Math.round(b + (to - b) * k)];
}

/** Relative luminance as defined by WCAG. */
export function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((v) => {
    const c = v / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/**
 * Stable over sessions and machines (FNV-1a). Trailing numbers do not count, so that `fusion.12` and `fusion.13`, or
 * `train 41` and `train 42`, look alike.
 */
export function hueOf(name: string): number {
  let end = name.length;
  while (end > 0 && isTail(name.charCodeAt(end - 1))) end -= 1;
  if (end === 0) end = name.length;
  let hash = 0x811c9dc5;
  for (let i = 0; i < end; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 15;
  return (hash >>> 0) % HUES;
}

function isTail(code: number): boolean {
  return (code >= 48 && code <= 57) || code === 46 || code === 95 || code === 32 || code === 35;
}

/** The position of a span's colour in its palette. */
export function colorIndex(mode: ColorMode, category: number, hue: number): number {
  if (mode === "name") return hue;
  return (category > NO_CATEGORY ? NO_CATEGORY : category) * SHADES + (hue % SHADES);
}

export interface Palette {
  rgb: Rgb[];
  /** Colour of text upon it. */
  ink: string[];
  /** RGBA bytes, for textures and look-up tables. */
  bytes: Uint8Array;
}

/** Up to this luminance white text has a contrast of 4.5; from `LIGHT_ENOUGH` dark text has. */
const DARK_ENOUGH = 0.183;
const LIGHT_ENOUGH = 0.24;

/** Colours between the two are darkened a little, so that text is readable on all of them. */
function legible(color: Rgb): Rgb {
  let rgb = color;
  while (luminance(rgb) > DARK_ENOUGH && luminance(rgb) < LIGHT_ENOUGH) rgb = shade(rgb, -0.02);
  return rgb;
}

const SHADE_STEPS = [0, 0.1, -0.1, 0.2, -0.18, 0.05, -0.05, 0.15];

export function palette(mode: ColorMode, categories: readonly Category[], dark: boolean): Palette {
  const rgb: Rgb[] = [];
  for (let i = 0; i < COLORS; i += 1) {
    const base = mode === "name" ? nameColor(i % HUES) : categoryColor(categories, Math.floor(i / SHADES), i % SHADES);
    rgb.push(legible(dark ? shade(base, -0.08) : base));
  }
  const bytes = new Uint8Array(COLORS * 4);
  rgb.forEach(([r, g, b], i) => bytes.set([r, g, b, 255], i * 4));
  return { rgb, bytes, ink: rgb.map((c) => (luminance(c) > DARK_ENOUGH ? "#10151a" : "#ffffff")) };
}

function nameColor(hue: number): Rgb {
  const base = parseHex(NAMES[hue % NAMES.length] ?? NOTHING);
  return shade(base, [0, 0.22, -0.2, 0.38][Math.floor(hue / NAMES.length)] ?? 0);
}

function categoryColor(categories: readonly Category[], category: number, step: number): Rgb {
  return shade(parseHex(categories[category]?.color ?? NOTHING), SHADE_STEPS[step] ?? 0);
}

/** The colour of a category as CSS, by its position or key. */
export function swatch(category: number | string | null, categories: readonly Category[]): string {
  return categories[categoryIndex(category, categories)]?.color ?? NOTHING;
}

/** A category as an index, whether the server gave its position or its key. */
export function categoryIndex(category: number | string | null, categories: readonly Category[]): number {
  if (typeof category === "number") return category;
  const at = category === null ? -1 : categories.findIndex((c) => c.key === category);
  return at < 0 ? NO_CATEGORY : at;
}
