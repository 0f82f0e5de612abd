import { expect, it } from "vitest";
import { frame } from "../../timeline/model/testframe";
import type { Timeline, Track } from "../../timeline/model/types";
import { bucketNs } from "../../timeline/model/view";
import { aligned, linesOf, tracksOf } from "./samples";

const counter = (id: number, process: number, name: string): Track => ({
  id,
  process,
  name,
  kind: "counter",
  rows: 1,
  events: 2,
  start_ns: 0,
  end_ns: 1,
  busy_ns: 0,
});
const timeline = {
  hosts: ["a"],
  processes: [
    { id: 1, host: 0, name: "GPU 0", kind: "device" },
    { id: 2, host: 0, name: "GPU 1", kind: "device" },
    { id: 3, host: 0, name: "python", kind: "host" },
  ],
  tracks: [
    counter(10, 1, "power.draw [W]"),
    counter(11, 1, "utilization.gpu [%]"),
    counter(20, 2, "utilization.gpu [%]"),
    counter(30, 3, "utilization.gpu [%]"),
    counter(12, 1, "clocks.graphics [MHz]"),
  ],
} as unknown as Timeline;

it("finds the gauges of each GPU, whatever their unit is called", () => {
  expect(
    tracksOf(timeline).map(({ gauge, tracks }) => [gauge.key, tracks.map(({ gpu, track }) => `${gpu} ${track.id}`)]),
  ).toEqual([
    ["utilisation", ["GPU 0 11", "GPU 1 20"]],
    ["clock", ["GPU 0 12"]],
    ["power", ["GPU 0 10"]],
  ]);
});

it("reads times and values from a tile, in the unit that is drawn", () => {
  const [utilisation] = tracksOf(timeline);
  const sample = (track: number, at: number, value: number) => ({ track, at, minimum: value, maximum: value });
  const buffer = frame(20, 0, [], {}, [11, 20], [sample(11, 0, 50), sample(11, 512, 100), sample(20, 256, 25)]);
  const lines = linesOf(buffer, utilisation?.tracks ?? [], 0.01);
  const ms = (bucket: number) => (bucket * bucketNs(20)) / 1e6;
  expect(lines).toEqual([
    { gpu: "GPU 0", at: [0, ms(512)], values: [0.5, 1] },
    { gpu: "GPU 1", at: [ms(256)], values: [0.25] },
  ]);
  expect(aligned(lines)).toEqual([
    [0, ms(256), ms(512)],
    [0.5, 0.5, 1],
    [Number.NaN, 0.25, 0.25],
  ]);
});
