import { describe, expect, it } from "vitest";
import {
  bytes,
  count,
  ms,
  percent,
  plural,
  ratio,
  sentence,
  short,
  signedMs,
  tick,
  tickLabels,
  title,
  writer,
} from "./format";

describe("durations", () => {
  it("have three digits and a unit that suits", () => {
    expect([0, 0.00034, 0.0123, 0.9996, 35.149, 999.96, 2500, 250_000].map(ms)).toEqual([
      "0 ms",
      "340 ns",
      "12.3 µs",
      "1.00 ms",
      "35.1 ms",
      "1.00 s",
      "2.50 s",
      "4 min 10 s",
    ]);
  });
  it("are a dash where they are not known", () => expect([null, undefined, NaN].map(ms)).toEqual(["–", "–", "–"]));
  it("are never the same twice on an axis", () => {
    expect(tickLabels([10, 20])).toEqual(["10 ms", "20 ms"]);
    expect(tickLabels([18.62, 18.64, 18.66])).toEqual(["18.62 ms", "18.64 ms", "18.66 ms"]);
  });
  it("show which way they went", () => expect([1.5, -1.5, 0].map(signedMs)).toEqual(["+1.50 ms", "−1.50 ms", "0 ms"]));
  it("lose idle zeros at an axis", () => expect([40, 2500, 0.25].map(tick)).toEqual(["40 ms", "2.5 s", "250 µs"]));
  it("reach hours", () => expect(ms(7_380_000)).toBe("2 h 3 min"));
});

describe("other figures", () => {
  it("bytes are decimal", () =>
    expect([0, 999, 3_688_448, 25_274_793_984].map(bytes)).toEqual(["0 B", "999 B", "3.69 MB", "25.3 GB"]));
  it("what is tiny is not nothing", () =>
    expect([0, 0.0001, 0.8778, 0.99999, 1].map(percent)).toEqual(["0 %", "< 0.1 %", "87.8 %", "> 99.9 %", "100.0 %"]));
  it("counts have separators", () => expect([1, 12_345, null].map(count)).toEqual(["1", "12,345", "–"]));
  it("short numbers stay short", () =>
    expect([6, 0.05, 24.88, 2975.4, 3.2e12, 1e-5].map(short)).toEqual([
      "6",
      "0.050",
      "24.9",
      "2,975",
      "3.20 T",
      "1.0e-5",
    ]));
  it("ratios", () => expect([0.5, 3.516, 12.34, null].map(ratio)).toEqual(["0.50×", "3.52×", "12.3×", "–"]));
  it("plurals", () =>
    expect([plural(1, "step", "steps"), plural(1400, "step", "steps")]).toEqual(["1 step", "1,400 steps"]));
  it("sentences, which leave paths alone", () => {
    expect(
      ["logs/a.pb: cannot be read", "run_1.json is empty", "cannot read a.pb", "healthy: no problems"].map(sentence),
    ).toEqual(["logs/a.pb: cannot be read", "run_1.json is empty", "Cannot read a.pb", "Healthy: no problems"]);
  });
  it("titles", () =>
    expect([title("input-bound"), title("small-kernels"), sentence("no steps")]).toEqual([
      "Input-bound",
      "Small kernels",
      "No steps",
    ]));
});

describe("a column", () => {
  it("is written in one unit, by its largest value", () => {
    const times = writer("ms", [14.3, 0.5, null, 0.0000001]);
    expect(times.unit).toBe("ms");
    expect([14.3, 0.5, null, 0.0000001].map((value) => times.write(value))).toEqual(["14.300", "0.500", "", "< 0.001"]);
    expect(writer("ms", [0.02]).unit).toBe("µs");
    expect(writer("ms", [90_000]).write(90_000)).toBe("90.000");
  });
  it("writes truth values and maps", () => {
    expect([true, false, { a: 1.5, b: null }].map((value) => writer("text", []).write(value))).toEqual([
      "yes",
      "no",
      "a 1.50, b –",
    ]);
  });
});
