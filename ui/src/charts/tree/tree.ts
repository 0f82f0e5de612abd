/** A tree of scopes, laid out as a flame graph hanging down (icicle) and as a squarified treemap. Framework-free. */

export interface Node {
  id: number;
  parent: number | null;
  name: string;
  path: string;
  depth: number;
  count: number;
  total: number;
  self: number;
  children: Node[];
}

/** Rows in any order to a tree below one root, children longest first. */
export function grow(rows: Omit<Node, "children">[]): Node {
  const byId = new Map<number, Node>(rows.map((row) => [row.id, { ...row, children: [] }]));
  const root: Node = {
    id: -1,
    parent: null,
    name: "all",
    path: "",
    depth: -1,
    count: 0,
    total: 0,
    self: 0,
    children: [],
  };
  for (const node of byId.values()) {
    const parent = (node.parent === null ? undefined : byId.get(node.parent)) ?? root;
    parent.children.push(node);
  }
  root.total = root.children.reduce((sum, child) => sum + child.total, 0);
  for (const node of [root, ...byId.values()]) node.children.sort((a, b) => b.total - a.total);
  return root;
}

/** A node below `from` by its id. */
export function findNode(from: Node, id: number): Node | undefined {
  const open = [from];
  for (let node = open.pop(); node; node = open.pop()) {
    if (node.id === id) return node;
    open.push(...node.children);
  }
  return undefined;
}

/** The nodes from below the root down to a node. */
export function trail(root: Node, node: Node): Node[] {
  const nodes: Node[] = [];
  for (
    let at: Node | undefined = node;
    at && at.id !== -1;
    at = at.parent === null ? undefined : findNode(root, at.parent)
  )
    nodes.unshift(at);
  return nodes;
}

/** A box of the flame graph; `x` and `width` are shares of the whole width. */
export interface Box {
  node: Node;
  x: number;
  width: number;
  row: number;
}

/** The boxes below and including `zoom`, but none narrower than `least`. */
export function icicle(zoom: Node, least: number): Box[] {
  const boxes: Box[] = [];
  const open: Box[] = [{ node: zoom, x: 0, width: 1, row: 0 }];
  for (let box = open.pop(); box; box = open.pop()) {
    boxes.push(box);
    let { x } = box;
    const scale = box.node.total > 0 ? box.width / box.node.total : 0;
    for (const child of box.node.children) {
      const width = child.total * scale;
      if (width >= least) open.push({ node: child, x, width, row: box.row + 1 });
      x += width;
    }
  }
  return boxes.sort((a, b) => a.row - b.row || a.x - b.x);
}

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Tile extends Rect {
  node: Node;
  /** How deep below the zoomed node. */
  level: number;
  /** It holds others: only its title and edge are seen. */
  holds: boolean;
}

/** Height of a title inside a tile that holds others, and the edge around them, in pixels. */
const HEAD = 18;
const EDGE = 2;

/** Tiles of the nodes below `zoom`, down to `levels`; tiles too small to be seen are left out. */
export function treemap(zoom: Node, width: number, height: number, levels: number): Tile[] {
  const tiles: Tile[] = [];
  const place = (node: Node, area: Rect, level: number) => {
    const parts = node.children.filter((child) => child.total > 0);
    // What the node does itself gets its share of the area, left empty.
    const whole = parts.reduce((sum, child) => sum + child.total, 0) + Math.max(0, node.self);
    squarify(
      parts.map((child) => child.total),
      whole,
      area,
    ).forEach((rect, index) => {
      const child = parts[index];
      if (!child || rect.width < 3 || rect.height < 3) return;
      const inner = {
        x: rect.x + EDGE,
        y: rect.y + HEAD,
        width: rect.width - 2 * EDGE,
        height: rect.height - HEAD - EDGE,
      };
      const holds = level < levels && child.children.length > 0 && inner.width > 24 && inner.height > 14;
      tiles.push({ node: child, ...rect, level, holds });
      if (holds) place(child, inner, level + 1);
    });
  };
  place(zoom, { x: 0, y: 0, width, height }, 1);
  return tiles;
}

/** Areas (descending) as rectangles as square as can be, inside `area` that stands for `whole`. */
export function squarify(areas: readonly number[], whole: number, area: Rect): Rect[] {
  const out: Rect[] = [];
  let { x, y, width, height } = area;
  const scale = whole > 0 ? (area.width * area.height) / whole : 0;
  let at = 0;
  while (at < areas.length && width > 0 && height > 0) {
    const side = Math.min(width, height);
    let end = at + 1;
    let sum = (areas[at] ?? 0) * scale;
    let worst = ratioOf(areas, at, end, sum, side, scale);
    while (end < areas.length) {
      const grown = sum + (areas[end] ?? 0) * scale;
      const next = ratioOf(areas, at, end + 1, grown, side, scale);
      if (next > worst) break;
      [sum, worst, end] = [grown, next, end + 1];
    }
    const thick = side > 0 ? sum / side : 0;
    let along = 0;
    for (let index = at; index < end; index++) {
      const long = thick > 0 ? ((areas[index] ?? 0) * scale) / thick : 0;
      out.push(
        width >= height
          ? { x, y: y + along, width: thick, height: long }
          : { x: x + along, y, width: long, height: thick },
      );
      along += long;
    }
    if (width >= height) [x, width] = [x + thick, width - thick];
    else [y, height] = [y + thick, height - thick];
    at = end;
  }
  return out;
}

/** The worst ratio of sides in a strip of areas `from..to`. */
function ratioOf(areas: readonly number[], from: number, to: number, sum: number, side: number, scale: number): number {
  const [most, least] = [(areas[from] ?? 0) * scale, (areas[to - 1] ?? 0) * scale];
  if (!(least > 0) || !(sum > 0)) return Infinity;
  const square = side * side;
  return Math.max((square * most) / (sum * sum), (sum * sum) / (square * least));
}
