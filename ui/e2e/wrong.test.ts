/** Things that were wrong once: runs of strangers in one session, figures that disagree, idle times and keys that did nothing. */
import { copyFileSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type {} from "../src/timeline/draw/hook";
import { fixtures, folders, open, serve, shots, stage } from "./support";

const on = stage();

const made = folders();
function folder(): string {
  const folder = made();
  process.env.XDG_CACHE_HOME = join(folder, "cache");
  return folder;
}

/** A PyTorch trace with steps; `extra` are further events. */
function torch(place: string, start: number, extra: object[] = []): void {
  const event = (name: string, cat: string, tid: number | string, ts: number, dur: number, args = {}) => ({
    ph: "X",
    cat,
    name,
    pid: 1,
    tid,
    ts: start + ts,
    dur,
    args,
  });
  const steps = Array.from({ length: 12 }, (_, step) => [
    event(`ProfilerStep#${step}`, "user_annotation", 1, step * 1000, 990),
    event("aten::mm", "cpu_op", 1, step * 1000 + 20, 600),
    event("aten::mm_inner", "cpu_op", 1, step * 1000 + 120, 200),
    event("cudaLaunchKernel", "cuda_runtime", 1, step * 1000 + 150, 10, { correlation: step + 1 }),
    {
      ...event("gemm_kernel", "kernel", 7, step * 1000 + 200, 150, { correlation: step + 1, stream: 7, device: 0 }),
      pid: 0,
    },
  ]).flat();
  writeFileSync(
    place,
    JSON.stringify({
      schemaVersion: 1,
      deviceProperties: [{ id: 0, name: "Test GPU" }],
      traceEvents: [...steps, ...extra],
    }),
  );
}

test("two runs that differ in a setting are two sessions, on the page as on the command line", async () => {
  const logs = folder();
  torch(join(logs, "workers_0_worker0.1623143089861.pt.trace.json"), 1_623_142_623_460_111);
  torch(join(logs, "workers_4_worker0.1623212756351.pt.trace.json"), 1_623_212_700_000_000);
  const server = await serve("serve", logs);
  const { page, wrongs, close } = await open(on.browser, server.address);
  await page.getByRole("heading", { level: 1, name: "2 runs" }).waitFor();
  for (const name of ["workers_0_worker0", "workers_4_worker0"]) {
    await page.getByRole("link", { name, exact: true }).click();
    await page.getByRole("region", { name: "Step time" }).waitFor();
    expect(await page.locator("main").innerText()).not.toMatch(/straggler/i);
    await page.goBack();
  }
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("an idle time of a device answers hover and click", async () => {
  const logs = folder();
  torch(join(logs, "run.pt.trace.json"), 1_623_142_623_460_111);
  const server = await serve("serve", logs);
  const { page, wrongs, close } = await open(on.browser, `${server.address}/#/s/0/timeline`);
  await page.waitForFunction(() => window.__stepscopeTimeline?.complete() === true);
  const heading = page.locator(".timeline").getByText("device", { exact: true }).last();
  await heading.waitFor();
  const box = await page.locator(".plot").first().boundingBox();
  const row = await heading.boundingBox();
  if (!box || !row) throw new Error("no timeline");
  const tip = page.locator(".timeline .tip").getByText(/^Idle for/);
  // Somewhere on the heading there is one: the device is busy 15 % of the time.
  await expect
    .poll(
      async () => {
        for (let x = 60; x < box.width; x += 45) {
          await page.mouse.move(box.x + x, row.y + row.height / 2);
          await page.waitForTimeout(60);
          if (await tip.isVisible()) return true;
        }
        return false;
      },
      { timeout: 60_000 },
    )
    .toBe(true);
  await page.screenshot({ path: `${shots}timeline-idle.png` });
  await page.mouse.down();
  await page.mouse.up();
  await page.waitForURL(/area=/);
  await page.locator(".timeline").getByText("aten::mm").first().waitFor();
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("events are selected with the keyboard alone", async () => {
  const logs = folder();
  torch(join(logs, "run.pt.trace.json"), 1_623_142_623_460_111);
  const server = await serve("serve", logs);
  const { page, wrongs, close } = await open(on.browser, `${server.address}/#/s/0/timeline`);
  await page.waitForFunction(() => window.__stepscopeTimeline?.complete() === true);
  const details = page.getByRole("article", { name: "Selected event" });
  await page.keyboard.press("Enter");
  await details.waitFor();
  const name = () => details.innerText();
  const first = await name();
  await page.keyboard.press("Shift+ArrowRight");
  await expect.poll(name).not.toBe(first);
  for (let tries = 0; tries < 8 && !(await name()).includes("aten::mm_inner"); tries += 1) {
    const before = await name();
    await page.keyboard.press("Shift+ArrowDown");
    await expect.poll(name).not.toBe(before);
  }
  expect(await name()).toContain("aten::mm_inner");
  await page.keyboard.press("Shift+ArrowUp");
  await expect.poll(name).not.toContain("mm_inner");
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("memory without addresses says so instead of showing an empty table", async () => {
  const logs = folder();
  const start = 1_623_142_623_460_111;
  const memory = Array.from({ length: 24 }, (_, n) => ({
    ph: "i",
    s: "t",
    name: "[memory]",
    pid: 1,
    tid: 1,
    ts: start + n * 400,
    args: { "Device Type": 1, "Device Id": 0, Bytes: n % 2 === 0 ? 1_000_000 : -1_000_000 },
  }));
  torch(join(logs, "run.pt.trace.json"), start, memory);
  const server = await serve("serve", logs);
  const { page, wrongs, close } = await open(on.browser, `${server.address}/#/s/0/memory`);
  await page.getByText("the profiler recorded no addresses of blocks").waitFor();
  expect(await page.getByRole("grid", { name: "Live at the peak" }).count()).toBe(0);
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("figures of a comparison agree with one another", async () => {
  const logs = folder();
  for (const [name, fixture] of [
    ["before", "tf-input-bound"],
    ["after", "tf-train"],
  ] as const) {
    const file = "plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb";
    copyFileSync(`${fixtures}/${fixture}/${file}`, join(logs, `${name}.xplane.pb`));
  }
  const server = await serve("serve", join(logs, "before.xplane.pb"), join(logs, "after.xplane.pb"));
  const answer = (await (await fetch(`${server.address}/api/compare?base=0&new=1`)).json().catch(() => null)) as {
    ratio: Interval;
    delta_ms: Named;
    mean: { delta_ms: number };
    breakdown: { delta_ms: number }[];
  } | null;
  const { page, wrongs, close } = await open(on.browser, `${server.address}/#/s/0/compare`);
  await page.getByRole("heading", { level: 1, name: /(faster|slower|no change|cannot decide)/i }).waitFor();
  const compared =
    answer && "ratio" in answer
      ? answer
      : ((await (await fetch(`${server.address}/api/compare?base=0&new=1`)).json()) as NonNullable<typeof answer>);
  const outside = (low: number | null, high: number | null, at: number) =>
    low !== null && high !== null && (low > at || high < at);
  expect(outside(compared.ratio.low, compared.ratio.high, 1)).toBe(
    outside(compared.delta_ms.low, compared.delta_ms.high, 0),
  );
  const parts = compared.breakdown.reduce((sum, part) => sum + part.delta_ms, 0);
  expect(parts).toBeCloseTo(compared.mean.delta_ms, 3);
  await page.getByText(/^Together .*: the mean step went from/).waitFor();
  // One unit per row: the unit stands in the header, and it is the same for before, after and difference.
  const units = await page.getByRole("grid", { name: "Ops before and after" }).locator("th .unit").allTextContents();
  expect(new Set(units).size).toBe(1);
  await page.screenshot({ path: `${shots}compare.png`, fullPage: true });
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

interface Interval {
  low: number | null;
  high: number | null;
}
interface Named extends Interval {
  value: number;
}

const CORPUS = process.env.STEPSCOPE_CORPUS ?? "";
test.skipIf(!existsSync(join(CORPUS, "ncu")))(
  "what cannot be compared has neither solved nor new findings",
  async () => {
    folder();
    const server = await serve(
      "serve",
      join(CORPUS, "ncu/lakshya_gemm_naive.ncu-rep"),
      join(CORPUS, "ncu/lakshya_gemm_coalesced.ncu-rep"),
    );
    const { page, close } = await open(on.browser, `${server.address}/#/s/0/compare`);
    await page.getByRole("heading", { level: 1, name: /not comparable/i }).waitFor();
    expect(await page.locator("main").innerText()).not.toMatch(/Solved|New\n/);
    await close();
    await server.stop();
  },
);
