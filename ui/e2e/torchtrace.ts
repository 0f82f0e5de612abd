/** A made-up recording of PyTorch with a device and many threads, for what the fixtures do not have. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const STEP_US = 10_000;
export const STEPS = 8;
export const WORKERS = 60;

type Row = Record<string, unknown>;

const slice = (cat: string, name: string, pid: number, tid: number, ts: number, dur: number, args: Row = {}): Row => ({
  ph: "X",
  cat,
  name,
  pid,
  tid,
  ts,
  dur,
  args,
});

function step(n: number): Row[] {
  const at = n * STEP_US;
  return [
    slice("user_annotation", `ProfilerStep#${n}`, 1, 1, at, STEP_US - 1),
    slice("cpu_op", "aten::mm", 1, 1, at + 1000, 500),
    slice("cuda_runtime", "cudaLaunchKernel", 1, 1, at + 1100, 20, { correlation: n + 1 }),
    slice("kernel", "ampere_sgemm_128x64", 0, 7, at + 5000, 3000, { correlation: n + 1, device: 0, stream: 7 }),
  ];
}

/** An exchange of two GPUs at the end of a step: the second arrives half a millisecond later. */
function exchange(n: number): Row[] {
  const at = n * STEP_US + 8200;
  const name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)";
  return [
    slice("kernel", name, 0, 7, at, 1500, { device: 0, stream: 7 }),
    slice("kernel", "ampere_sgemm_128x64", 2, 7, at - 3000, 3300, { device: 2, stream: 7 }),
    slice("kernel", name, 2, 7, at + 500, 1000, { device: 2, stream: 7 }),
  ];
}

/** Writes it into a new folder and returns that. Workers are busy in the first step only; with two ranks, the GPUs exchange data. */
export function torchTrace(ranks: 1 | 2 = 1): string {
  const names = [
    ...[
      [0, "python 0"],
      [1, "python"],
      [2, "python 2"],
    ].map(([pid, name]) => ({ ph: "M", name: "process_name", pid, args: { name } })),
    ...[
      [0, "GPU 0"],
      [1, "CPU"],
      [2, "GPU 2"],
    ].map(([pid, labels]) => ({ ph: "M", name: "process_labels", pid, args: { labels } })),
    ...[0, 2].map((pid) => ({ ph: "M", name: "thread_name", pid, tid: 7, args: { name: "stream 7" } })),
    ...Array.from({ length: WORKERS }, (_, n) => ({
      ph: "M",
      name: "thread_name",
      pid: 1,
      tid: 100 + n,
      args: { name: `worker-${n}` },
    })),
  ];
  const workers = Array.from({ length: WORKERS }, (_, n) => slice("cpu_op", "aten::decode", 1, 100 + n, 100 + n, 200));
  const steps = Array.from({ length: STEPS }, (_, n) => [...step(n), ...(ranks === 2 ? exchange(n) : [])]);
  const events = [...names, ...steps.flat(), ...workers];
  const folder = mkdtempSync(join(tmpdir(), "stepscope-e2e-torch-"));
  const file = {
    schemaVersion: 1,
    deviceProperties: [{ id: 0, name: "GPU", totalGlobalMem: 16e9 }],
    traceEvents: events,
  };
  writeFileSync(join(folder, "trainer.pt.trace.json"), JSON.stringify(file));
  return folder;
}

/** A step of one rank: its kernel, an exchange that ends on all ranks together, and a wait for it. Rank 1 joins last. */
function rankStep(n: number, rank: number, ahead: number): Row[] {
  const at = n * STEP_US + ahead;
  const joins = rank === 1 ? 8000 : 6000;
  const work = (name: string, call: number, start: number, end: number, id: number): Row[] => [
    slice("cuda_runtime", "cudaLaunchKernel", 1, 1, at + call, 20, { correlation: n * 10 + id }),
    slice("kernel", name, 0, 7, at + start, end - start, { correlation: n * 10 + id, device: 0, stream: 7 }),
  ];
  return [
    slice("user_annotation", `ProfilerStep#${n}`, 1, 1, at, STEP_US - 1),
    slice("cpu_op", "aten::mm", 1, 1, at + 1000, 500),
    ...work("ampere_sgemm_128x64", 1100, 1130, joins, 1),
    ...work("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)", 1300, joins, 9000, 2),
    slice("cuda_runtime", "cudaDeviceSynchronize", 1, 1, at + 2000, 7010),
    slice("cpu_op", "aten::log", 1, 1, at + 9200, 300),
  ];
}

/** Two ranks on hosts whose clocks are ahead by this many microseconds; returns the folder with a file per rank. */
export function rankTraces(ahead: readonly [number, number]): string {
  const folder = mkdtempSync(join(tmpdir(), "stepscope-e2e-ranks-"));
  ahead.forEach((by, rank) => {
    const names = [
      ...[
        [0, "python 0"],
        [1, "python"],
      ].map(([pid, name]) => ({ ph: "M", name: "process_name", pid, args: { name } })),
      ...[
        [0, "GPU 0"],
        [1, "CPU"],
      ].map(([pid, labels]) => ({ ph: "M", name: "process_labels", pid, args: { labels } })),
      { ph: "M", name: "thread_name", pid: 0, tid: 7, args: { name: "stream 7" } },
      { ph: "M", name: "thread_name", pid: 1, tid: 1, args: { name: "thread 1 (python)" } },
    ];
    const events = [...names, ...Array.from({ length: STEPS }, (_, n) => rankStep(n, rank, by)).flat()];
    const file = {
      schemaVersion: 1,
      distributedInfo: { backend: "nccl", rank, world_size: 2 },
      baseTimeNanoseconds: 1_790_000_000_000_000_000,
      deviceProperties: [{ id: 0, name: "GPU", totalGlobalMem: 16e9 }],
      traceEvents: events,
    };
    writeFileSync(join(folder, `rank${rank}.pt.trace.json`), JSON.stringify(file));
  });
  return folder;
}
