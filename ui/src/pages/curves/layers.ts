/** A drawing of connected boxes: from top to bottom, each below everything that it takes input from. */

export interface Placed {
  /** Row and place in the row. */
  layer: number;
  slot: number;
}

/** The row of each box: one below the lowest of its inputs. Connections that go around in a circle are left out. */
export function layersOf(count: number, edges: readonly (readonly [number, number, ...unknown[]])[]): Placed[] {
  const users: number[][] = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) if (from !== to) users[from]?.push(to);
  const layer = new Array<number>(count).fill(0);
  for (const box of order(count, users))
    for (const user of users[box.at] ?? []) {
      if (!box.back.has(user)) layer[user] = Math.max(layer[user] ?? 0, (layer[box.at] ?? 0) + 1);
    }
  const rows: number[][] = [];
  layer.forEach((at, box) => (rows[at] ??= []).push(box));
  const placed: Placed[] = layer.map((at) => ({ layer: at, slot: 0 }));
  const inputs: number[][] = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) inputs[to]?.push(from);
  for (const row of rows) {
    // Below the middle of its inputs.
    const middle = (box: number) => {
      const above = (inputs[box] ?? []).filter((input) => (placed[input]?.layer ?? 0) < (placed[box]?.layer ?? 0));
      return above.length === 0
        ? box
        : above.reduce((sum, input) => sum + (placed[input]?.slot ?? 0), 0) / above.length;
    };
    const by = new Map(row.map((box) => [box, middle(box)]));
    row.sort((a, b) => (by.get(a) ?? 0) - (by.get(b) ?? 0) || a - b);
    row.forEach((box, slot) => {
      const place = placed[box];
      if (place) place.slot = slot;
    });
  }
  return placed;
}

/** Boxes so that each comes before its users, with the users that it would follow in a circle. */
function order(count: number, users: readonly number[][]): { at: number; back: Set<number> }[] {
  const state = new Uint8Array(count);
  const done: { at: number; back: Set<number> }[] = [];
  for (let start = 0; start < count; start++) {
    if (state[start] !== 0) continue;
    const open = [{ at: start, next: 0, back: new Set<number>() }];
    state[start] = 1;
    while (open.length > 0) {
      const top = open[open.length - 1]!;
      const user = users[top.at]?.[top.next++];
      if (user === undefined) {
        state[top.at] = 2;
        done.push({ at: top.at, back: top.back });
        open.pop();
      } else if (state[user] === 1) top.back.add(user);
      else if (state[user] === 0) {
        state[user] = 1;
        open.push({ at: user, next: 0, back: new Set() });
      }
    }
  }
  return done.reverse();
}
