import { expect, test } from "vitest";
import { decode } from "./frame";
import { figure, logTicks, nearest, rangeY, share, ticks, xs } from "./scale";

function frame(lines: { run: number; points: number[][] }[]): ArrayBuffer {
  const header = {
    tag: "loss",
    version: 7,
    lines: lines.map(({ run, points }) => ({ run, version: 7, count: points.length, total: 99, first_s: 100 })),
  };
  let text = JSON.stringify(header);
  while (new TextEncoder().encode(text).length % 8 !== 0) text += " ";
  const head = new TextEncoder().encode(text);
  const points = lines.flatMap((line) => line.points);
  const bytes = new Uint8Array(8 + head.length + 32 * points.length);
  bytes.set(new TextEncoder().encode("SSC1"));
  new DataView(bytes.buffer).setUint32(4, head.length, true);
  bytes.set(head, 8);
  const view = new DataView(bytes.buffer, 8 + head.length);
  [0, 1, 2, 3].forEach((column) =>
    points.forEach((point, row) => view.setFloat64(8 * (column * points.length + row), point[column] ?? 0, true)),
  );
  return bytes.buffer;
}

test("a frame gives each run its own points", () => {
  const read = decode(
    frame([
      {
        run: 3,
        points: [
          [0, 100, 1, 1],
          [1, 102, 2, 1.5],
        ],
      },
      { run: 5, points: [[9, 101, NaN, NaN]] },
    ]),
  );
  expect(read.lines.map((line) => line.run)).toEqual([3, 5]);
  expect([...(read.lines[0]?.smoothed ?? [])]).toEqual([1, 1.5]);
  expect(read.lines[1]?.values[0]).toBeNaN();
  expect([...xs(read.lines[0]!, "relative")]).toEqual([0, 2]);
  expect(() => decode(new ArrayBuffer(3))).toThrow();
});

test("outliers are left out of the range on demand", () => {
  const values = [...Array.from({ length: 100 }, (_, at) => at / 100), 1e6];
  expect(rangeY(values, false, false)?.[1]).toBeGreaterThan(1e6);
  expect(rangeY(values, false, true)?.[1]).toBeLessThan(1.1);
  expect(rangeY([NaN, Infinity], false, false)).toBeNull();
  expect(rangeY([-1, 0, 10], true, false)).toEqual([5, 20]);
});

test("ticks are round", () => {
  expect(ticks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(ticks(3, 3, 5)).toEqual([]);
  expect(ticks(0, 2, 5, 1), "no step is shown twice").toEqual([0, 1, 2]);
  expect(logTicks(0.05, 300)).toEqual([0.1, 1, 10, 100]);
});

test("the nearest point is found on either side", () => {
  const column = Float64Array.from([0, 10, 20]);
  expect([-5, 4, 6, 99].map((value) => nearest(column, value))).toEqual([0, 0, 1, 2]);
  expect(nearest(new Float64Array(), 1)).toBe(-1);
});

test("places on a scale", () => {
  expect(share({ from: 0, to: 10, log: false }, 5)).toBe(0.5);
  expect(share({ from: 1, to: 100, log: true }, 10)).toBeCloseTo(0.5);
  expect(figure(NaN)).toBe("NaN");
  expect(figure(0.00001234)).toBe("1.23e-5");
});
