/** Pictures on the pages: latencies, samples of GPUs, hardware counters with their roofline, a tree of annotated ranges. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fixtures, launch, open, serve, shots, stumbles } from "./support";
import { pickle, type Plain } from "./pickle";
import { torchTrace } from "./torchtrace";

let browser: Browser;
const folders: string[] = [];
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  for (const folder of folders) rmSync(folder, { recursive: true });
});

function folderWith(name: string, text: string | Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), "stepscope-e2e-pictures-"));
  folders.push(folder);
  writeFileSync(join(folder, name), text);
  return folder;
}

test("latencies are a histogram with the way to the slowest request", async () => {
  const request = (n: number) => ({
    ph: "X",
    cat: "tf",
    name: "BatchingSessionRun",
    pid: 1,
    tid: 1 + (n % 4),
    ts: n * 5000,
    dur: n === 77 ? 90_000 : 3000 + (n % 20) * 100,
  });
  const trace = { traceEvents: Array.from({ length: 120 }, (_, n) => request(n)) };
  const server = await serve("serve", folderWith("server.trace.json", JSON.stringify(trace)));
  const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/inference`);
  const section = page.getByRole("region", { name: "Latency distribution", exact: true });
  await section.getByRole("img", { name: /Distribution of the latency of \d+ requests/ }).waitFor();
  await section.getByText("Values").click();
  const counts = await section.getByRole("row").locator("td:nth-child(2)").allInnerTexts();
  const answer = (await (await fetch(`${server.address}/api/s/0/view/inference`)).json()) as {
    columns: { key: string; values: number[] }[];
  };
  expect(counts.reduce((sum, count) => sum + Number(count), 0)).toBe(
    answer.columns.find((column) => column.key === "count")?.values[0],
  );
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}inference-histogram.png`, fullPage: true });
  await section.getByRole("button", { name: /Show the slowest request/ }).click();
  // It is shown where it is: the 78th of one request every 5 ms.
  await page.waitForURL(/timeline\?.*from=385000000&to=475000000/);
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("samples of GPUs are charts over time", async () => {
  const head = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W], clocks.current.sm [MHz]";
  const rows = Array.from({ length: 60 }, (_, at) =>
    [0, 1].map(
      (gpu) =>
        `2026/01/01 10:00:${String(at).padStart(2, "0")}.000, ${gpu}, ${(at * (gpu + 1)) % 100} %, ${1000 + at * 50} MiB, ${100 + at}.50 W, ${1400 - at * 5} MHz`,
    ),
  ).flat();
  const server = await serve("serve", folderWith("gpu_log.csv", [head, ...rows, ""].join("\n")));
  const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/devices`);
  for (const gauge of ["Utilisation", "Clock", "Power", "Memory"]) {
    const section = page.getByRole("region", { name: gauge, exact: true });
    await section.getByRole("img", { name: new RegExp(`^${gauge} of 2 GPUs over time`) }).waitFor();
  }
  const power = page.getByRole("region", { name: "Power", exact: true });
  await power.getByText("Values").click();
  expect(await power.getByRole("row").count()).toBe(61);
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}devices-samples.png`, fullPage: true });
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("hardware counters are bars, and a roofline where the peaks are known", async () => {
  const metrics: [name: string, unit: string, ...values: string[]][] = [
    ["gpu__time_duration.sum", "nsecond", "100000", "400000"],
    ["sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "62", "20"],
    ["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", "35", "80"],
    ["smsp__average_warp_latency_per_inst_issued.ratio", "warp", "10", "20"],
    ["smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "inst", "5", "16"],
    ["smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "inst", "2", "1"],
    ["dram__bytes_read.sum", "byte", "20000000", "400000000"],
    ["dram__bytes_write.sum", "byte", "5000000", "100000000"],
    ["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "inst", "400000000", "100000000"],
    ["device__attribute_display_name", "", "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"],
  ];
  const fixed = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
  ];
  const line = (cells: string[]) => cells.map((cell) => `"${cell}"`).join(",");
  const row = (at: number, kernel: string) =>
    line([
      String(at),
      "1",
      "train",
      "localhost",
      kernel,
      "1",
      "7",
      "(256, 1, 1)",
      "(512, 1, 1)",
      "0",
      "8.0",
      ...metrics.map((metric) => metric[at + 2] ?? ""),
    ]);
  const csv = [
    line([...fixed, ...metrics.map(([name]) => name)]),
    line([...fixed.map(() => ""), ...metrics.map(([, unit]) => unit)]),
    row(0, "gemm_fast"),
    row(1, "copy_slow"),
    "",
  ].join("\n");
  const server = await serve("serve", folderWith("report.raw.csv", csv));
  const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/kernels`);
  const card = page.getByRole("article").filter({ hasText: "copy_slow" });
  await card.getByRole("heading", { name: "Stall reasons" }).waitFor();
  expect(await card.getByRole("listitem").filter({ hasText: "long scoreboard" }).innerText()).toMatch(/80\.0 %/);
  expect(await card.getByRole("listitem").filter({ hasText: "Device memory reads" }).innerText()).toMatch(/400 MB/);
  const roof = page.getByRole("region", { name: "Roofline", exact: true });
  await roof.getByRole("img", { name: /Roofline of 2 kernels/ }).waitFor();
  expect(await roof.locator("circle").count()).toBe(2);
  await roof.getByText("Values").click();
  expect(await roof.getByRole("row").filter({ hasText: "copy_slow" }).innerText()).toMatch(/memory/);
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}kernels-counters.png`, fullPage: true });
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("annotated ranges are scopes where no stack was recorded", async () => {
  const folder = torchTrace();
  folders.push(folder);
  const server = await serve("serve", folder);
  const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/scopes`);
  await page.getByRole("heading", { level: 1, name: /annotated range/ }).waitFor();
  await page.getByRole("button", { name: /^ProfilerStep: / }).waitFor();
  await page.getByRole("button", { name: /^aten::mm: / }).waitFor();
  await page.screenshot({ path: `${shots}scopes-ranges.png` });
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("memory is read at a moment chosen by keys", async () => {
  const server = await serve("serve", `${fixtures}/tf-train`);
  const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/memory`);
  const alive = page.getByRole("heading", { name: /^Live at \d/ });
  await alive.waitFor();
  const peak = await alive.innerText();
  expect(peak).toMatch(/the peak/);
  const slider = page.getByRole("slider", { name: /Memory of/ });
  await slider.focus();
  await page.keyboard.press("Home");
  await expect.poll(() => alive.innerText()).not.toBe(peak);
  expect(await slider.getAttribute("aria-valuetext")).toMatch(/\d.*B$/);
  expect(await stumbles(page)).toEqual([]);
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

/** Twelve steps: weights from the first, activations that come and go, and one block per step that is kept. */
function leakingSnapshot(): Buffer {
  const base = 0x7f0000000000;
  const [mib, entries, live]: [number, Plain[], Plain[]] = [1 << 20, [], []];
  const call = (line: number, name: string): Plain[] => [
    { name, filename: "/home/u/train.py", line },
    { name: "main", filename: "/home/u/train.py", line: 40 },
  ];
  let now = 1_000_000;
  const change = (action: string, addr: number, size: number, frames: Plain[]) =>
    entries.push({ action, addr, size, stream: 0, time_us: (now += 500), frames });
  change("segment_alloc", base, 64 * mib, call(3, "build"));
  change("alloc", base, 8 * mib, call(3, "build"));
  live.push({
    size: 8 * mib,
    requested_size: 8 * mib,
    address: base,
    state: "active_allocated",
    frames: call(3, "build"),
  });
  for (let step = 0; step < 12; step++) {
    const [scratch, kept] = [base + 8 * mib, base + (12 + 2 * step) * mib];
    change("alloc", scratch, 4 * mib, call(21, "forward"));
    change("alloc", kept, mib, call(30, "remember"));
    change("free_requested", scratch, 4 * mib, call(21, "forward"));
    change("free_completed", scratch, 4 * mib, call(21, "forward"));
    const block = {
      size: mib,
      requested_size: mib,
      address: kept,
      state: "active_allocated",
      frames: call(30, "remember"),
    };
    live.push(block);
  }
  const held = live.reduce<number>((sum, block) => sum + Number((block as { size: number }).size), 0);
  const segment = {
    device: 0,
    address: base,
    total_size: 64 * mib,
    allocated_size: held,
    active_size: held,
    requested_size: held,
    stream: 0,
    segment_type: "large",
    blocks: live,
  };
  return pickle({ segments: [segment], device_traces: [entries] });
}

test("a memory snapshot shows roles over time, the calls of a moment and where blocks lie", async () => {
  const server = await serve("serve", folderWith("snapshot.pickle", leakingSnapshot()));
  const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/memory`);
  await page.getByRole("list", { name: "Memory by role" }).waitFor();
  const flame = page.getByRole("region", { name: /Who allocated what is live/ });
  await flame.getByRole("button", { name: /train\.py:30 remember: 1\d\.\d MB/ }).waitFor();
  await page.getByRole("img", { name: "25 blocks in 1 segment by address and time" }).waitFor();
  const before = await flame.getByRole("heading").first().innerText();
  await page.getByRole("slider", { name: /Memory of/ }).focus();
  await page.keyboard.press("Home");
  await expect.poll(() => flame.getByRole("heading").first().innerText()).not.toBe(before);
  await expect.poll(() => flame.getByRole("button", { name: /remember/ }).count()).toBe(0);
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}memory-snapshot.png`, fullPage: true });
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});
