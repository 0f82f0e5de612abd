import { describe, expect, it } from "vitest";
import { categoryIndex, COLORS, colorIndex, hueOf, HUES, luminance, NO_CATEGORY, palette, parseHex } from "./colors";

const categories = [
  { key: "compute", title: "Compute", about: "", color: "#2f7fc1" },
  { key: "input", title: "Input", about: "", color: "#e69f00" },
];

describe("colours", () => {
  it("stay with a name, whatever its number", () => {
    expect(hueOf("fusion.12")).toBe(hueOf("fusion.981"));
    expect(hueOf("train 41")).toBe(hueOf("train 42"));
    expect(hueOf("12")).toBeLessThan(HUES);
    expect(new Set(["MatMul", "Add", "Relu", "Conv2D", "Softmax", "Copy"].map(hueOf)).size).toBeGreaterThan(3);
  });
  it("find their place in the palette", () => {
    expect(colorIndex("category", 1, 9)).toBe(9);
    expect(colorIndex("category", 255, 0)).toBe(NO_CATEGORY * 8);
    expect(colorIndex("name", 1, 40)).toBe(40);
    expect(palette("category", categories, false).rgb[8]).toEqual(parseHex("#e69f00"));
    expect(palette("name", categories, true).rgb).toHaveLength(COLORS);
  });
  it("carry text that can be read", () => {
    for (const mode of ["category", "name"] as const) {
      for (const dark of [false, true]) {
        const { rgb, ink } = palette(mode, categories, dark);
        rgb.forEach((color, i) => {
          const [light, deep] = [luminance(color), luminance(parseHex(ink[i] ?? ""))].sort((a, b) => b - a) as [
            number,
            number,
          ];
          expect((light + 0.05) / (deep + 0.05)).toBeGreaterThan(4.5);
        });
      }
    }
  });
  it("accept a category by position or key", () => {
    expect(categoryIndex("input", categories)).toBe(1);
    expect(categoryIndex(0, categories)).toBe(0);
    expect(categoryIndex(null, categories)).toBe(NO_CATEGORY);
    expect(categoryIndex("unheard of", categories)).toBe(NO_CATEGORY);
  });
});
