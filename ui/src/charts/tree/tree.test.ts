import { expect, it } from "vitest";
import { findNode, grow, icicle, squarify, treemap } from "./tree";

const row = (id: number, parent: number | null, name: string, total: number, self = 0) => ({
  id,
  parent,
  name,
  path: name,
  depth: 0,
  count: 0,
  total,
  self,
});
const tree = () =>
  grow([
    row(3, 1, "c", 20, 20),
    row(0, null, "a", 30, 30),
    row(1, null, "b", 70, 10),
    row(2, 1, "d", 40, 40),
    row(4, 99, "lost", 0),
  ]);

it("grows from rows in any order, longest first; what has no parent hangs at the root", () => {
  const root = tree();
  expect(root.total).toBe(100);
  expect(root.children.map((node) => node.name)).toEqual(["b", "a", "lost"]);
  expect(root.children[0]?.children.map((node) => node.name)).toEqual(["d", "c"]);
  expect(findNode(root, 3)?.name).toBe("c");
  expect(findNode(root, 42)).toBeUndefined();
});

it("boxes of a flame graph lie inside their parent and beside each other", () => {
  const boxes = icicle(tree(), 0.001);
  expect(boxes.map((box) => [box.node.name, box.row, Number(box.x.toFixed(6)), Number(box.width.toFixed(6))])).toEqual([
    ["all", 0, 0, 1],
    ["b", 1, 0, 0.7],
    ["a", 1, 0.7, 0.3],
    ["d", 2, 0, 0.4],
    ["c", 2, 0.4, 0.2],
  ]);
});

it("zooms: the chosen box is as wide as the graph", () => {
  const zoom = findNode(tree(), 1);
  expect(zoom && icicle(zoom, 0.001)[0]?.width).toBe(1);
});

it("leaves out what is too narrow to be seen, with all inside it", () => {
  expect(icicle(tree(), 0.5).map((box) => box.node.name)).toEqual(["all", "b"]);
});

it("squares have the right areas, fill the room and do not overlap", () => {
  const areas = [6, 6, 4, 3, 2, 2, 1];
  const rects = squarify(areas, 24, { x: 0, y: 0, width: 600, height: 400 });
  rects.forEach((rect, index) => expect(rect.width * rect.height).toBeCloseTo(((areas[index] ?? 0) / 24) * 240_000, 3));
  for (const [index, a] of rects.entries()) {
    expect(a.x).toBeGreaterThanOrEqual(-1e-9);
    expect(a.x + a.width).toBeLessThanOrEqual(600 + 1e-6);
    expect(a.y + a.height).toBeLessThanOrEqual(400 + 1e-6);
    for (const b of rects.slice(index + 1)) {
      const apart =
        a.x + a.width <= b.x + 1e-6 ||
        b.x + b.width <= a.x + 1e-6 ||
        a.y + a.height <= b.y + 1e-6 ||
        b.y + b.height <= a.y + 1e-6;
      expect(apart).toBe(true);
    }
    expect(Math.max(a.width / a.height, a.height / a.width)).toBeLessThan(3);
  }
});

it("tiles lie within the tile that holds them", () => {
  const tiles = treemap(tree(), 800, 500, 3);
  const [outer, inner] = [tiles.find((tile) => tile.node.name === "b"), tiles.find((tile) => tile.node.name === "d")];
  expect(outer?.holds).toBe(true);
  expect(
    inner &&
      outer &&
      inner.x >= outer.x &&
      inner.y > outer.y &&
      inner.x + inner.width <= outer.x + outer.width &&
      inner.y + inner.height <= outer.y + outer.height,
  ).toBe(true);
  expect(tiles.some((tile) => tile.node.name === "lost")).toBe(false);
});
