import { expect, it } from "vitest";
import { ViewLink, type Member } from "./link";
import type { Span } from "./types";

function member(origin: number): Member & { seen: Span[] } {
  const seen: Span[] = [];
  return { origin, seen, show: (window) => seen.push(window) };
}

it("moves linked timelines together, each from its own step", () => {
  const link = new ViewLink();
  const [a, b] = [member(100), member(5000)];
  link.join(a);
  const leave = link.join(b);
  link.moved(a, { start: 110, end: 160 });
  expect(b.seen).toEqual([{ start: 5010, end: 5060 }]);
  expect(a.seen).toEqual([]);
  const late = member(0);
  link.join(late);
  expect(late.seen).toEqual([{ start: 10, end: 60 }]);
  leave();
  link.moved(a, { start: 100, end: 101 });
  expect(b.seen).toHaveLength(1);
});
