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
  link.join(a, { start: 100, end: 200 });
  const leave = link.join(b, { start: 5000, end: 5100 });
  a.seen.length = b.seen.length = 0;
  link.moved(a, { start: 110, end: 160 });
  expect(b.seen).toEqual([{ start: 5010, end: 5060 }]);
  expect(a.seen).toEqual([]);
  const late = member(0);
  link.join(late, { start: 0, end: 90 });
  expect(late.seen).toEqual([{ start: 10, end: 60 }]);
  leave();
  link.moved(a, { start: 100, end: 101 });
  expect(b.seen).toHaveLength(1);
});

it("starts all of them at the scale of the shortest window", () => {
  const link = new ViewLink();
  const [long, short, longer] = [member(100), member(5000), member(0)];
  link.join(long, { start: 100, end: 900 });
  link.join(short, { start: 5000, end: 5050 });
  expect(long.seen).toEqual([{ start: 100, end: 150 }]);
  expect(short.seen).toEqual([]);
  link.join(longer, { start: 0, end: 2000 });
  expect(longer.seen).toEqual([{ start: 0, end: 50 }]);
});
