/** The page "Curves" on a folder with nothing but event files: shown, filtered, linked, live, and with many runs. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axe from "axe-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { histogram, log, scalar } from "./events";
import { fixtures, launch, open, serve, shots, type Served } from "./support";

const NOW = 1_800_000_000;
let folder: string;
let server: Served;
let browser: Browser;

function write(run: string, points: number, slow = Infinity): void {
  let at = NOW;
  const records = Array.from({ length: points }, (_, step) => {
    at += step > slow ? 1.4 : 1;
    const noise = Math.sin(step * 12.9898 + run.length) * 0.15;
    return [
      scalar(at, step * 10, "train/loss", 2 * Math.exp(-step / 150) + noise + 0.3),
      scalar(at, step * 10, "train/accuracy", 1 - Math.exp(-step / 200)),
      scalar(at, step * 10, "lr", 1e-3 * (1 - step / points)),
      ...(step === 200 ? [scalar(at, step * 10, "aux/loss", NaN)] : [scalar(at, step * 10, "aux/loss", 1 + noise)]),
    ];
  });
  log(join(folder, run), records.flat());
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "stepscope-curves-"));
  write("baseline/train", 400);
  write("wider/train", 400, 250);
  write("wider/validation", 40);
  [server, browser] = [await serve("serve", folder), await launch()];
}, 120_000);

afterAll(async () => {
  await browser?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Is anything drawn on the canvas of a tag? */
async function drawn(page: Page, tag: string): Promise<void> {
  await page.waitForFunction((tag) => {
    const canvas = document.querySelector<HTMLCanvasElement>(`[data-tag="${tag}"] canvas`);
    const context = canvas?.getContext("2d");
    if (!canvas || !context || canvas.width === 0) return false;
    const { data } = context.getImageData(80, 10, canvas.width - 100, canvas.height - 40);
    const colors = new Set<number>();
    for (let at = 0; at < data.length; at += 4)
      if (data[at + 3]! > 200) colors.add((data[at]! << 16) | (data[at + 1]! << 8) | data[at + 2]!);
    return colors.size > 3;
  }, tag);
}

test("a folder with event files alone opens on its curves", async () => {
  const { page, wrongs, close } = await open(browser, server.address);
  await page.getByRole("heading", { name: "Curves" }).waitFor();
  await drawn(page, "@step_time");
  await page.locator('[data-tag="train/loss"]').scrollIntoViewIfNeeded();
  await drawn(page, "train/loss");
  await page.getByText("slower by").first().waitFor();
  await page.evaluate(() => scrollTo(0, 0));
  expect(await page.locator(".runs li").count()).toBe(3);
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = found.violations.filter((one) => one.impact === "serious" || one.impact === "critical");
  expect(serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" | ")}`)).toEqual([]);
  await page.screenshot({ path: `${shots}curves-light.png` });
  await page.getByLabel("Filter runs by regular expression").fill("^wider/t");
  await expect.poll(() => page.locator(".runs li").count()).toBe(1);
  await page.getByLabel("Filter tags by regular expression").fill("loss$");
  await expect.poll(() => page.locator("article.curve").count()).toBe(2);
  await expect.poll(() => page.url()).toContain("tag=loss");
  // The address alone brings all of it back.
  await page.reload();
  await expect.poll(() => page.locator("article.curve").count()).toBe(2);
  expect(wrongs).toEqual([]);
  await close();
});

test("distributions are heat maps with counts under the pointer", async () => {
  const own = mkdtempSync(join(tmpdir(), "stepscope-heat-"));
  const limits = Array.from({ length: 20 }, (_, at) => at - 9);
  const bell = (step: number) => limits.map((limit) => Math.round(1000 * Math.exp(-((limit - step / 20) ** 2) / 8)));
  log(
    join(own, "run"),
    Array.from({ length: 60 }, (_, at) => histogram(NOW + at, at * 5, "weights/dense", limits, bell(at))),
  );
  const served = await serve("serve", own);
  const { page, wrongs, close } = await open(browser, `${served.address}/#//curves`);
  const chart = page.getByRole("article", { name: "weights/dense, run" });
  await chart.getByRole("img", { name: /heat map: steps 0 to 295/ }).waitFor();
  await chart.hover();
  await chart.getByText(/Step \d+: [\d.,]+ values from/).waitFor();
  await page.screenshot({ path: `${shots}curves-heat.png` });
  expect(wrongs).toEqual([]);
  await close();
  await served.stop();
  rmSync(own, { recursive: true, force: true });
});

test("runs of several paths are told apart by their own part of the path", async () => {
  const both = await serve("serve", join(folder, "baseline"), join(folder, "wider"));
  const { page, wrongs, close } = await open(browser, `${both.address}/#/s/0/curves`);
  const runs = page.getByRole("region", { name: "Runs" });
  await runs.getByText("baseline/train", { exact: true }).waitFor();
  await runs.getByText("wider/validation", { exact: true }).waitFor();
  expect(wrongs).toEqual([]);
  await close();
  await both.stop();
});

test("values under the pointer, a range, and the keyboard", async () => {
  const { page, wrongs, close } = await open(browser, `${server.address}/#//curves?tag=train`);
  await drawn(page, "train/loss");
  const canvas = page.locator('[data-tag="train/loss"] canvas.over');
  const box = (await canvas.boundingBox())!;
  await page.mouse.move(box.x + box.width / 2, box.y + 60);
  await page.locator(".curve .tip tbody tr").first().waitFor();
  expect(await page.locator(".curve .tip th").allTextContents()).toEqual([
    "",
    "Run",
    "Smoothed",
    "Value",
    "Step",
    "Relative",
    "Time",
  ]);
  await page.screenshot({ path: `${shots}curves-tooltip.png` });
  await page.mouse.move(box.x + 120, box.y + 90);
  await page.mouse.down();
  await page.mouse.move(box.x + 220, box.y + 90, { steps: 4 });
  await page.mouse.up();
  await page.getByRole("region", { name: "Selected range" }).locator("tbody tr").first().waitFor();
  await page.screenshot({ path: `${shots}curves-range.png` });
  await page.getByRole("button", { name: "Zoom to it" }).click();
  await page.getByRole("button", { name: "Show all" }).waitFor();
  await canvas.focus();
  await page.keyboard.press("ArrowRight");
  await page.locator(".curve .tip tbody tr").first().waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Show all" }).waitFor({ state: "detached" });
  expect(wrongs).toEqual([]);
  await close();
});

test("a new point shows within two seconds, and a deleted run goes", async () => {
  write("live/train", 30);
  const { page, wrongs, close } = await open(browser, `${server.address}/#//curves?run=live&tag=lr`, {
    colorScheme: "dark",
  });
  const steps = page.locator(".runs li .figures");
  await expect.poll(() => steps.textContent(), { timeout: 10_000 }).toBe("290");
  await drawn(page, "lr");
  const began = Date.now();
  log(join(folder, "live/train"), [scalar(NOW + 40, 5000, "lr", 0.5)]);
  await page.waitForResponse((response) => response.url().includes("curves/points"));
  expect(Date.now() - began).toBeLessThan(2000);
  await expect.poll(() => steps.textContent()).toBe("5,000");
  await page.screenshot({ path: `${shots}curves-dark.png` });
  rmSync(join(folder, "live"), { recursive: true });
  await page.getByText("No run matches.").waitFor({ timeout: 10_000 });
  expect(wrongs).toEqual([]);
  await close();
});

test("a profile is marked on the curve of its run, and a click opens it", async () => {
  const logs = mkdtempSync(join(tmpdir(), "stepscope-marked-"));
  cpSync(`${fixtures}/tf-train/plugins`, join(logs, "train/plugins"), { recursive: true });
  const own = await serve("serve", logs);
  const timeline = async (): Promise<{ origin_unix_ns?: string; start_ns?: number }> =>
    (await fetch(`${own.address}/api/s/0/timeline`)).json();
  await expect.poll(async () => (await timeline()).origin_unix_ns, { timeout: 60_000 }).toBeTruthy();
  const at = Number((await timeline()).origin_unix_ns) / 1e9;
  log(
    join(logs, "train"),
    Array.from({ length: 200 }, (_, step) => scalar(at - 100 + step, step, "loss", Math.exp(-step / 60))),
  );
  const { page, wrongs, close } = await open(browser, `${own.address}/#//curves`);
  await drawn(page, "loss");
  const marks = async (): Promise<unknown[]> =>
    ((await (await fetch(`${own.address}/api/curves/profiles`)).json()) as { marks: unknown[] }).marks;
  await expect.poll(async () => (await marks()).length, { timeout: 60_000 }).toBe(1);
  await page.reload();
  await drawn(page, "loss");
  await page.waitForTimeout(1500);
  await page.screenshot({ path: `${shots}curves-profile.png` });
  const canvas = page.locator('[data-tag="loss"] canvas.over');
  const box = (await canvas.boundingBox())!;
  const [mark] = (await marks()) as { last_step: number }[];
  await canvas.click({ position: { x: 58 + ((box.width - 68) * mark!.last_step) / 199, y: 120 } });
  await expect.poll(() => page.url()).toContain("/overview");
  await page.getByText("recorded at step").waitFor();
  await page.screenshot({ path: `${shots}curves-report.png` });
  expect(wrongs).toEqual([]);
  await close();
  await own.stop();
  rmSync(logs, { recursive: true });
});

test("five hundred runs stay fluid", async () => {
  for (let run = 0; run < 500; run++)
    log(
      join(folder, `many/r${run}`),
      Array.from({ length: 40 }, (_, step) =>
        scalar(NOW + step, step, "m/loss", Math.exp(-step / 9) * (1 + run / 500)),
      ),
    );
  const { page, wrongs, close } = await open(browser, `${server.address}/#//curves?run=many&tag=m`);
  await expect.poll(() => page.locator(".runs li").count(), { timeout: 20_000 }).toBe(500);
  await drawn(page, "m/loss");
  const canvas = page.locator('[data-tag="m/loss"] canvas.over');
  const box = (await canvas.boundingBox())!;
  const began = Date.now();
  for (let at = 0; at < 30; at++) await page.mouse.move(box.x + 80 + at * 5, box.y + 60);
  expect((Date.now() - began) / 30).toBeLessThan(100);
  await page.screenshot({ path: `${shots}curves-many.png` });
  expect(wrongs).toEqual([]);
  await close();
});

test("nothing is cut off on a phone", async () => {
  const { page, close } = await open(browser, server.address, {
    viewport: { width: 390, height: 800 },
    hasTouch: true,
  });
  await page.getByRole("heading", { name: "Curves" }).waitFor();
  // Charts are drawn once they are in sight.
  await page.locator('[data-tag="train/loss"]').scrollIntoViewIfNeeded();
  await drawn(page, "train/loss");
  const beyond = await page.evaluate(
    () =>
      [...document.querySelectorAll("main .charts *")].filter(
        (part) => part.getBoundingClientRect().right > window.innerWidth + 1,
      ).length,
  );
  expect(beyond).toBe(0);
  await close();
});
