import { expect, it } from "vitest";
import { pinch } from "./pinch";

it("fingers that part zoom in around their middle", () => {
  expect(
    pinch(
      [
        { x: 100, y: 50 },
        { x: 200, y: 50 },
      ],
      [
        { x: 50, y: 50 },
        { x: 250, y: 50 },
      ],
    ),
  ).toEqual({ factor: 0.5, x: 150, panX: 0, panY: 0 });
});

it("fingers that go together move the view and leave its zoom alone", () => {
  expect(
    pinch(
      [
        { x: 100, y: 50 },
        { x: 200, y: 90 },
      ],
      [
        { x: 130, y: 40 },
        { x: 230, y: 80 },
      ],
    ),
  ).toEqual({ factor: 1, x: 180, panX: -30, panY: 10 });
});

it("fingers that touch each other do not leap", () => {
  const { factor } = pinch(
    [
      { x: 100, y: 50 },
      { x: 100, y: 50 },
    ],
    [
      { x: 100, y: 50 },
      { x: 101, y: 50 },
    ],
  );
  expect(factor).toBe(1);
});
