/** Three tasks that people come with, in at most three clicks each. */
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { fixtures, folders, open, serve, shots, stage } from "./support";

const on = stage();
const folder = folders();
const MOST = 3;

/** Counts what the user clicks: programs click with the same events, but these are the only ones of a test. */
async function counting(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(() => {
    const counted = window as unknown as { clicks: number };
    counted.clicks = 0;
    addEventListener("click", (event) => event.isTrusted && event.detail > 0 && counted.clicks++, true);
  });
  return () => page.evaluate(() => (window as unknown as { clicks: number }).clicks);
}

/** A session of a log directory, copied from a fixture. */
function session(logs: string, run: string, fixture: string): void {
  const place = join(logs, run, "plugins", "profile", "2026_01_01_00_00_00");
  mkdirSync(place, { recursive: true });
  copyFileSync(
    `${fixtures}/${fixture}/plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb`,
    join(place, "trainer.xplane.pb"),
  );
}

test("from a log directory to the cause on the timeline", async () => {
  const logs = folder();
  session(logs, "slow", "tf-input-bound");
  session(logs, "other", "tf-train");
  const server = await serve("serve", logs);
  const { page, wrongs, close } = await open(on.browser, server.address);
  const clicks = await counting(page);
  await page.getByRole("link", { name: "slow", exact: true }).click();
  await page.getByRole("link", { name: "Show on the timeline" }).first().click();
  await page.getByText(/^Input-bound: the step waits/).waitFor();
  await page.locator("canvas").first().waitFor();
  expect(await clicks()).toBeLessThanOrEqual(MOST);
  await page.screenshot({ path: `${shots}task-cause.png` });
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("from two runs to whether it is faster, and why", async () => {
  const logs = folder();
  session(logs, "before", "tf-input-bound");
  session(logs, "after", "tf-train");
  const server = await serve("serve", logs);
  const { page, wrongs, close } = await open(on.browser, server.address);
  const clicks = await counting(page);
  await page.getByRole("checkbox", { name: "Tick before" }).click();
  await page.getByRole("checkbox", { name: "Tick after" }).click();
  await page.getByRole("link", { name: "Compare", exact: true }).last().click();
  await page
    .getByRole("heading", { level: 1 })
    .getByText(/faster|slower|same|compar|unclear/i)
    .waitFor();
  expect(await clicks()).toBeLessThanOrEqual(MOST);
  await page.screenshot({ path: `${shots}task-compare.png` });
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("from an op to its source line", async () => {
  const server = await serve("serve", `${fixtures}/jax-train`);
  const { page, wrongs, close } = await open(on.browser, server.address);
  const clicks = await counting(page);
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Ops", exact: true }).click();
  await page.getByRole("grid", { name: "Ops" }).getByRole("row").nth(1).click();
  await page
    .getByRole("region", { name: "Selected row" })
    .getByText(/\.py:\d+/)
    .waitFor();
  expect(await clicks()).toBeLessThanOrEqual(MOST);
  await page.screenshot({ path: `${shots}task-source.png` });
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});
