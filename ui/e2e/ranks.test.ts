/** Several ranks on the timeline: clocks that differ, aligned where collectives end; and the critical path of a step. */
import { rmSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import type {} from "../src/timeline/draw/hook";
import { open, shots, stage, stumbles } from "./support";
import { rankTraces, STEPS } from "./torchtrace";

/** How far the second clock is ahead, in microseconds. */
const AHEAD = 2_500;
const folder = rankTraces([0, AHEAD]);
const served = stage("serve", folder);
afterAll(() => rmSync(folder, { recursive: true }));

const drawn = (page: Page) => page.waitForFunction(() => window.__stepscopeTimeline?.complete() === true);
const asked = (page: Page, key: string) => new URLSearchParams(page.url().split("?")[1] ?? "").get(key);
const ask = async <T>(path: string) => (await (await fetch(`${served.server.address}/api/s/0/${path}`)).json()) as T;

interface Run {
  start_ns: number;
  end_ns: number;
  waited_ns: number;
  last: boolean;
}

/** When the collectives end, each on both ranks. */
async function ends(clock: string): Promise<number[][]> {
  const { runs } = await ask<{ runs: Run[] }>(`collectives${clock}`);
  const sorted = runs.map((run) => run.end_ns).sort((a, b) => a - b);
  return Array.from({ length: STEPS }, (_, n) => sorted.slice(2 * n, 2 * n + 2));
}

test("collectives end together on aligned clocks, and apart on recorded ones", async () => {
  for (const [first, second] of await ends("")) expect(second).toBe(first);
  for (const [first, second] of await ends("?clock=recorded")) expect((second ?? 0) - (first ?? 0)).toBe(AHEAD * 1000);
  const report = await ask<{
    clocks: { host: string; shift_ms: number; uncertainty_ms: number; collectives: number }[];
  }>("report");
  expect(report.clocks.map((clock) => clock.shift_ms)).toEqual([0, -AHEAD / 1000]);
  expect(report.clocks[1]?.collectives).toBeGreaterThanOrEqual(STEPS - 2);
  const { runs } = await ask<{ runs: Run[] }>("collectives");
  expect(new Set(runs.filter((run) => !run.last).map((run) => run.waited_ns))).toEqual(new Set([2_000_000]));
});

test("the heading of a host says how far its clock moved, and the choice is part of the link", async () => {
  const { page, wrongs, close } = await open(
    served.browser,
    `${served.server.address}/#/s/0/timeline?view=30000000~40000000`,
  );
  await drawn(page);
  const tracks = page.getByRole("group", { name: "Tracks" });
  await tracks.getByText("reference clock").waitFor();
  await tracks.getByText("−2.5 ms ±0 ns").waitFor();
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}timeline-aligned.png` });
  await page.getByLabel("Clocks", { exact: true }).selectOption("recorded");
  await page.waitForURL(/clock=recorded/);
  await tracks.getByText("reference clock").waitFor({ state: "detached" });
  await drawn(page);
  expect(asked(page, "view")).toBe("30000000~40000000");
  await page.screenshot({ path: `${shots}timeline-recorded.png` });
  await page.reload();
  await drawn(page);
  expect(await page.getByLabel("Clocks", { exact: true }).inputValue()).toBe("recorded");
  await page.getByLabel("Clocks", { exact: true }).selectOption("aligned");
  await tracks.getByText("reference clock").waitFor();
  expect([asked(page, "clock"), asked(page, "view")]).toEqual([null, "30000000~40000000"]);
  expect(wrongs).toEqual([]);
  await close();
});

test("the critical path of the step in view is outlined, and its pieces tile the step", async () => {
  const path = await ask<{
    unknown: string | null;
    start_ns: number;
    end_ns: number;
    pieces: { kind: string; start_ns: number; end_ns: number }[];
  }>("critical?host=0&t_ns=35000000");
  expect(path.unknown).toBeNull();
  let now = path.start_ns;
  for (const piece of path.pieces) {
    expect(Math.abs(piece.start_ns - now)).toBeLessThan(1);
    now = piece.end_ns;
  }
  expect(Math.abs(now - path.end_ns)).toBeLessThan(1);
  expect(path.pieces.map((piece) => piece.kind)).toContain("collective");
  const { page, wrongs, close } = await open(
    served.browser,
    `${served.server.address}/#/s/0/timeline?view=30000000~40000000`,
  );
  await drawn(page);
  await page.getByRole("button", { name: "Critical path" }).click();
  await page.getByText(/Critical path of step 3 on rank1: /).waitFor();
  await page.waitForURL(/path=critical/);
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}timeline-critical.png` });
  await page.reload();
  await page.getByText(/Critical path of step 3 on rank1: /).waitFor();
  await page.getByRole("link", { name: "Table" }).click();
  await page.getByRole("heading", { level: 1, name: /^Step 3 .*takes/ }).waitFor();
  await page.getByLabel("Step", { exact: true }).selectOption("2");
  await page.getByRole("heading", { level: 1, name: /^Step 2 .*takes/ }).waitFor();
  expect(page.url()).toContain("step=2");
  await page.getByText("ampere_sgemm_128x64").first().waitFor();
  await page.screenshot({ path: `${shots}critical-path.png` });
  expect(wrongs).toEqual([]);
  await close();
});
