/** Recordings that hold little: samples of a monitor alone. Every page says something and leads on; none is blank. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type {} from "../src/timeline/draw/hook";
import { launch, open, serve, shots, type Served } from "./support";

/** What `nvidia-smi --query-gpu=… --format=csv -l 1` writes. */
function samples(): string {
  const line = (second: number) =>
    `2026/04/25 16:06:${String(second).padStart(2, "0")}.000, 0, ${second % 20 < 10 ? 90 : 5} %, ${1000 + second * 10} MiB, 20146 MiB, 45, 60.00 W`;
  const head =
    "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB], temperature.gpu, power.draw [W]";
  return [head, ...Array.from({ length: 60 }, (_, second) => line(second))].join("\n");
}

let browser: Browser;
let server: Served;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "stepscope-e2e-"));
  writeFileSync(join(folder, "gpu.csv"), samples());
  browser = await launch();
  server = await serve("serve", folder);
});
afterAll(async () => {
  await browser.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

/** How many colours the minimap's picture has below its frame. */
const colours = (page: Page) =>
  page.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>("canvas.minimap");
    const pixels =
      canvas?.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data ?? new Uint8ClampedArray();
    const row = Math.floor((canvas?.height ?? 0) * 0.8) * (canvas?.width ?? 0) * 4;
    const seen = new Set<string>();
    for (let at = row; at < row + (canvas?.width ?? 0) * 4; at += 4) seen.add(pixels.slice(at, at + 3).join());
    return seen.size;
  });

test("the overview shows what was sampled and leads to it", async () => {
  const { page, wrongs, close } = await open(browser, server.address);
  const main = page.locator("main");
  await main.getByText("Utilisation", { exact: true }).first().waitFor();
  expect(await main.innerText()).not.toMatch(/stepscope devices|not recorded|No step time/);
  await page.screenshot({ path: `${shots}samples-overview.png` });
  await main
    .getByRole("region", { name: "What this recording contains" })
    .getByRole("link", { name: "timeline" })
    .click();
  await page.waitForFunction(() => window.__stepscopeTimeline?.complete() === true);
  await main.getByText(/does not show what ran/).waitFor();
  await expect.poll(() => colours(page)).toBeGreaterThan(3);
  await page.screenshot({ path: `${shots}samples-timeline.png` });
  expect(wrongs).toEqual([]);
  await close();
});

test("a page that has nothing says which has", async () => {
  const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/ops`);
  await page.locator("main").getByRole("link", { name: "Devices" }).click();
  await page.locator("main").getByText("Utilisation", { exact: true }).first().waitFor();
  expect(wrongs).toEqual([]);
  await close();
});
