import { expect, it } from "vitest";
import { gapsByProcess } from "./gaps";
import type { Timeline } from "../model/types";

const timeline = {
  hosts: ["a", "b"],
  shifts_ns: [0, 500],
  processes: [
    { id: 4, host: 0, name: "GPU 0", kind: "device" },
    { id: 5, host: 1, name: "GPU 0", kind: "device" },
    { id: 6, host: 1, name: "python", kind: "host" },
  ],
} as unknown as Timeline;
const gap = (host: string, device: string) => ({
  host,
  device,
  start_ms: 1,
  duration_ms: 2,
  cause: "input",
  host_event: null,
});

it("gaps stand with the device of their own host, on the session's clock", () => {
  const found = gapsByProcess(
    timeline,
    [gap("b", "GPU 0"), gap("a", "GPU 0"), gap("b", "GPU 7"), gap("b", "python")],
    [{ key: "input", title: "Input", about: "", color: "" }],
  );
  expect([...found.keys()].sort()).toEqual([4, 5]);
  expect(found.get(5)).toEqual([{ start: 1_000_500, end: 3_000_500, cause: "Input" }]);
  expect(found.get(4)).toEqual([{ start: 1_000_000, end: 3_000_000, cause: "Input" }]);
});

it("the only device of a host has its gaps, although the file does not name it", () => {
  const nameless = {
    ...timeline,
    processes: [{ id: 9, host: 0, name: "device", kind: "device" }],
  } as unknown as Timeline;
  expect(gapsByProcess(nameless, [gap("a", "GPU 0")], []).get(9)).toHaveLength(1);
  expect(gapsByProcess(nameless, [gap("a", "GPU 0"), gap("a", "GPU 1")], []).size).toBe(0);
});
