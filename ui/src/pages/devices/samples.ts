/** GPU samples over time, from the counters of the timeline: one line per GPU and gauge. */
import { askOnce, headers, Problem } from "../../server/ask";
import { decode } from "../../timeline/model/tiles";
import type { Timeline, Track } from "../../timeline/model/types";
import { bucketNs, levelFor, tileNs } from "../../timeline/model/view";

/** What is drawn; the first name that a GPU has counts. */
export interface Gauge {
  key: string;
  title: string;
  names: string[];
  /** From the recorded to the drawn value. */
  scale: number;
}

const MEBIBYTE = 1_048_576;

export const GAUGES: Gauge[] = [
  { key: "utilisation", title: "Utilisation", names: ["utilization.gpu"], scale: 0.01 },
  { key: "clock", title: "Clock", names: ["clocks.sm", "clocks.graphics"], scale: 1 },
  { key: "power", title: "Power", names: ["power.draw", "power.draw.average", "power.draw.instant"], scale: 1 },
  { key: "memory", title: "Memory", names: ["memory.used"], scale: MEBIBYTE },
  { key: "temperature", title: "Temperature", names: ["temperature.gpu"], scale: 1 },
];

/** One GPU's samples of one gauge: times in milliseconds, the highest value at each. */
export interface Line {
  gpu: string;
  at: number[];
  values: number[];
}

export interface Picture {
  gauge: Gauge;
  lines: Line[];
}

/** The tracks of each gauge, in the order of `GAUGES`; gauges that were not sampled are left out. */
export function tracksOf(timeline: Timeline): { gauge: Gauge; tracks: { gpu: string; track: Track }[] }[] {
  const devices = new Map(
    timeline.processes.filter((process) => process.kind === "device").map((process) => [process.id, process]),
  );
  const several = new Set([...devices.values()].map((device) => device.host)).size > 1;
  const found = GAUGES.map((gauge) => {
    const tracks = [...devices.values()].flatMap((device) => {
      const own = timeline.tracks.filter((track) => track.process === device.id && track.kind === "counter");
      const track = gauge.names
        .map((name) => own.find((one) => one.name.split(" [")[0] === name))
        .find((one) => one !== undefined);
      return track
        ? [{ gpu: several ? `${timeline.hosts[device.host] ?? ""} ${device.name}` : device.name, track }]
        : [];
    });
    return { gauge, tracks };
  });
  return found.filter(({ tracks }) => tracks.length > 0);
}

/** The samples of a tile that covers everything. */
export function linesOf(buffer: ArrayBuffer, tracks: readonly { gpu: string; track: Track }[], scale: number): Line[] {
  const place = new Map(tracks.map(({ track }, at) => [track.id, at]));
  const chunk = decode(
    buffer,
    (id) => place.get(id) ?? -1,
    () => 0,
  );
  const bucket = bucketNs(chunk.level);
  const origin = chunk.tile * tileNs(chunk.level);
  return tracks.map(({ gpu }, at) => {
    const line: Line = { gpu, at: [], values: [] };
    for (const part of chunk.parts.filter((part) => part.slot === at)) {
      for (let i = part.sampleFirst; i < part.sampleFirst + part.sampleCount; i += 1) {
        line.at.push((origin + (chunk.at[i] as number) * bucket) / 1e6);
        line.values.push((chunk.maximum[i] as number) * scale);
      }
    }
    return line;
  });
}

/** Fetches everything: one tile per gauge, wide enough for the whole recording. */
export async function samplesOf(session: number, signal: AbortSignal): Promise<Picture[]> {
  const timeline = await askOnce<Timeline>(session, "timeline");
  // A tile has 1,024 buckets and starts at the origin: the level at which one of them reaches the end.
  const level = levelFor(timeline.end_ns / 1024) + 1;
  return Promise.all(
    tracksOf(timeline).map(async ({ gauge, tracks }) => {
      const ids = tracks.map(({ track }) => track.id).join(",");
      const response = await fetch(`api/s/${session}/tiles?level=${level}&tile=0&tracks=${ids}`, {
        headers: headers(),
        signal,
      });
      if (response.status !== 200)
        throw new Problem(`The server answered with ${response.status}`, "", "", [], response.status);
      return { gauge, lines: linesOf(await response.arrayBuffer(), tracks, gauge.scale) };
    }),
  );
}

/** Lines over one list of times, as the chart wants it: a value holds until the next sample of the same GPU. */
export function aligned(lines: readonly Line[]): [number[], ...number[][]] {
  const times = [...new Set(lines.flatMap((line) => line.at))].sort((a, b) => a - b);
  const columns = lines.map((line) => {
    let next = 0;
    return times.map((time) => {
      while (next < line.at.length && (line.at[next] as number) <= time) next += 1;
      return next === 0 ? Number.NaN : (line.values[next - 1] as number);
    });
  });
  return [times, ...columns];
}
