/** What the page of curves asks the server. */
import { ask, query, reach, read, token } from "../../server/ask";
import { decode, type Frame } from "./frame";
import type {
  CurveFinding,
  CurveListing,
  CurveState,
  GraphHits,
  GraphLevel,
  HeatMap,
  PictureSteps,
  ProfileMark,
  RangeRow,
  Study,
} from "./types";

/** Which points of a tag, for a chart of so many pixels. */
export interface CurveWish {
  tag: string;
  x: string;
  ids: readonly number[];
  smooth?: number;
  range?: [number, number] | null;
  pixels?: number;
}

function curveQuery({ tag, x, ids, smooth, range, pixels }: CurveWish): string {
  return query({ tag, x, runs: ids.join(), smooth, pixels, from: range?.[0], to: range?.[1] });
}

export const calls = {
  state: (since: number, signal?: AbortSignal) => ask<CurveState>(`curves/state${query({ since })}`, signal),
  runs: (signal?: AbortSignal) => ask<CurveListing>("curves/runs", signal),
  heat: (tag: string, run: number, signal?: AbortSignal) => ask<HeatMap>(`curves/heat${query({ tag, run })}`, signal),
  study: (signal?: AbortSignal) => ask<Study>("curves/study", signal),
  pictures: (tag: string, run: number, signal?: AbortSignal) =>
    ask<PictureSteps>(`curves/pictures${query({ tag, run })}`, signal),
  /** Where one picture is; an image cannot have a header, so the token is part of the URL. */
  picture: (tag: string, run: number, at: number, sample: number, wall_s: number) =>
    `api/curves/picture${query({ tag, run, at, sample, t: wall_s, token: token ?? undefined })}`,
  graph: (run: number, tag: string, under: string, signal?: AbortSignal) =>
    ask<GraphLevel>(`curves/graph${query({ run, tag, under })}`, signal),
  findInGraph: (run: number, tag: string, q: string, signal?: AbortSignal) =>
    ask<GraphHits>(`curves/graph/find${query({ run, tag, q })}`, signal),
  findings: (signal?: AbortSignal) => ask<{ findings: CurveFinding[]; timed: number[] }>("curves/findings", signal),
  profiles: (signal?: AbortSignal) => ask<{ marks: ProfileMark[]; complete: boolean }>("curves/profiles", signal),
  range: (wish: CurveWish, signal?: AbortSignal) =>
    ask<{ rows: RangeRow[] }>(`curves/range${curveQuery(wish)}`, signal),
  points: async (wish: CurveWish, signal?: AbortSignal): Promise<Frame> => {
    const response = await reach(`api/curves/points${curveQuery(wish)}`, signal);
    return response.ok ? decode(await response.arrayBuffer()) : ((await read(response)) as Frame);
  },
  csv: (tag: string, ids: readonly number[]) =>
    `api/curves/csv${query({ tag, runs: ids.join(), token: token ?? undefined })}`,
};
