import { expect, test } from "vitest";
import { endings, labelsOf, runNames } from "./runs";
import type { Session } from "../server/types";

const session = (id: number, path: string): Session => ({
  id,
  name: path.split("/").at(-1) ?? "",
  path,
  hosts: [],
  bytes: 0,
  state: "unopened",
  appeared: false,
  place: null,
  revision: 0,
});
const names = (...paths: string[]) =>
  [...runNames(paths.map((path, id) => session(id, path))).values()].map((run) => run.name);

test("runs are named by their folders, not by the time that the profiler wrote", () => {
  expect(
    names(
      "logs/resnet/plugins/profile/2026_01_02_03_04_05/a.xplane.pb",
      "logs/bert/plugins/profile/2026_01_02_03_04_05/a.xplane.pb",
    ),
  ).toEqual(["resnet", "bert"]);
  expect(names("logs/resnet/plugins/profile/2026_01_02_03_04_05/a.xplane.pb")).toEqual(["resnet"]);
});

test("folders that tell nothing apart are not part of a name", () => {
  expect(
    names(
      "/data/team/logs/resnet/a.json",
      "/data/team/logs/bert/a.json",
      "/data/team/logs/bert/deep/down/b.json",
      "fixtures/small/c.json",
    ),
  ).toEqual(["logs/resnet/a", "logs/bert/a", "logs/bert/down/b", "small/c"]);
  expect(
    names(
      "/data/first/very/long/way/plugins/profile/2026_01_02_03_04_05/a.xplane.pb",
      "/data/second/plugins/profile/2026_01_02_03_04_05/a.xplane.pb",
    ),
  ).toEqual(["way", "second"]);
});

test("folders of the same name are told apart by those above them", () => {
  expect(names("x/a/logs/run.json", "x/b/logs/run.json", "x/c/other.json")).toEqual([
    "a/logs/run",
    "b/logs/run",
    "c/other",
  ]);
});

test("several recordings of one folder are told apart by their times", () => {
  const below = (folder: string, time: string) => `logs/${folder}/plugins/profile/${time}/a.xplane.pb`;
  expect(
    names(below("a", "2026_01_02_03_04_05"), below("a", "2026_01_02_03_09_05"), below("b", "2026_01_02_03_04_05")),
  ).toEqual(["a · 2026-01-02 03:04:05", "a · 2026-01-02 03:09:05", "b"]);
  expect(
    names(
      "logs/plugins/profile/2026_01_02_03_04_05/a.xplane.pb",
      "logs/plugins/profile/2026_01_02_03_09_05/a.xplane.pb",
    ),
  ).toEqual(["2026-01-02 03:04:05", "2026-01-02 03:09:05"]);
});

test("files are named without their endings and times, and never two alike", () => {
  expect(names("x/workers_0.1623143089861.pt.trace.json.gz", "x/workers_4.1623212756351.pt.trace.json.gz")).toEqual([
    "workers_0",
    "workers_4",
  ]);
  expect(new Set(names("x/w0.1623143089861.pt.trace.json", "x/w0.1623143099999.pt.trace.json")).size).toBe(2);
  expect(names("a/run.sqlite", "b/run.sqlite")).toEqual(["a/run", "b/run"]);
});

test("a name that PyTorch made of machine and process is left out where the folder is enough", () => {
  const file = (folder: string, name: string) => `logs/${folder}/${name}.1623143089861.pt.trace.json`;
  expect(names(file("before", "vm_32041"), file("after", "vm_31620"))).toEqual(["before", "after"]);
  expect(names(file("ddp", "vm_1"), file("ddp", "vm_2"), file("one", "vm_3"))).toEqual(["ddp/vm_1", "ddp/vm_2", "one"]);
});

test("runs with curves of several paths are told apart by what follows the folders that all share", () => {
  const labels = (...names: string[]) => [...labelsOf(names.map((name, id) => ({ id, name }))).values()];
  expect(labels("/data/logs/a/train", "/data/logs/b/train")).toEqual(["a/train", "b/train"]);
  expect(labels("/data/logs", "/data/logs/eval")).toEqual(["logs", "logs/eval"]);
  expect(labels("s3://bucket/a", "s3://bucket/b")).toEqual(["a", "b"]);
  expect(labels("train/a", "train/b"), "names below one path stay").toEqual(["train/a", "train/b"]);
  expect(labels("/data/alone")).toEqual(["alone"]);
  expect(labels()).toEqual([]);
});

test("the end of a name that no other shares stays where it is cut", () => {
  const tails = endings(["run_with_a_long_name_before", "run_with_a_long_name_after", "alone", "tf", "tf_fixed"]);
  const kept = [...tails].map(([name, length]) => name.slice(name.length - length));
  expect(kept.sort()).toEqual(["", "_fixed", "after", "alone", "before"]);
  expect(endings([]).size).toBe(0);
});
