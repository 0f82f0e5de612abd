/** The fleet: ranked jobs, slow hosts, the map of hosts and steps, changes over time; from there to a report and a timeline. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { binary, fixtures, launch, open, serve, shots, stumbles, type Served } from "./support";

let browser: Browser;
let server: Served;
let folder: string;

/** A small profile as one host of a job's recording on a day of March. */
function place(job: string, day: number, host: number, fixture: string): void {
  const to = join(folder, "logs", job, "plugins/profile", `2026_03_${String(day).padStart(2, "0")}_04_00_00`);
  mkdirSync(to, { recursive: true });
  const from = readdirSync(join(fixtures, fixture), { recursive: true, encoding: "utf8" }).find((name) =>
    name.endsWith(".xplane.pb"),
  );
  if (from) cpSync(join(fixtures, fixture, from), join(to, `node-${String(host).padStart(3, "0")}.xplane.pb`));
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "stepscope-fleet-"));
  process.env.XDG_CACHE_HOME = join(folder, "cache");
  for (let host = 20; host < 26; host++) place("data/loader", 1, host, "tf-input-bound");
  for (const job of ["vision/a", "vision/b"])
    for (let host = 0; host < 5; host++) place(job, 1, host, host === 3 ? "jax-train" : "jax-plain");
  for (let day = 1; day <= 6; day++) place("nightly", day, 40, day < 5 ? "keras-fit" : "keras-plain");
  [server, browser] = [await serve("serve", join(folder, "logs")), await launch()];
});
afterAll(async () => {
  await browser.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

const fleet = (query = ""): string => `${server.address}/#//fleet${query}`;
const rows = (page: Page, grid: string) => page.getByRole("grid", { name: grid }).locator("tbody tr[aria-rowindex]");
const map = (page: Page) => page.getByRole("application", { name: /Slowness of hosts by step/ });

test("jobs are ranked, with causes, fixes and a way to the report", async () => {
  const { page, wrongs, close } = await open(browser, server.address, { viewport: { width: 1440, height: 1000 } });
  await page.getByRole("link", { name: "Fleet" }).click();
  await page.getByRole("heading", { level: 1, name: /data\/loader loses most \(input-bound/ }).waitFor();
  await page.getByText("Covers 22 of 22 profiles in 9 recordings of 4 jobs", { exact: false }).first().waitFor();
  expect(await rows(page, "Jobs, by devices lost").first().innerText()).toContain("data/loader");
  const detail = page.getByRole("region", { name: "Job data/loader" });
  await detail.getByText("input-bound", { exact: true }).waitFor();
  await detail.getByText("Fix:", { exact: false }).first().waitFor();
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}fleet-1440-light.png`, fullPage: true });
  await rows(page, "Jobs, by devices lost").first().dblclick();
  await page.getByRole("heading", { level: 1, name: /^Input-bound/ }).waitFor();
  expect(wrongs).toEqual([]);
  await close();
});

test("a cause says in how many recordings it is", async () => {
  const { page, wrongs, close } = await open(browser, fleet("?job=nightly"));
  const causes = page.getByRole("region", { name: "Job nightly" }).getByRole("list", { name: "Causes" });
  await causes.waitFor();
  expect(await causes.innerText()).toMatch(/devices?(, [\d.]+ device hours)? in \d of 6 recordings/);
  expect(wrongs).toEqual([]);
  await close();
});

test("the map shows the slow host, and a cell opens that step on the host's timeline", async () => {
  const { page, wrongs, close } = await open(browser, fleet("?job=vision%2Fa"));
  await map(page).waitFor();
  expect(await map(page).getAttribute("aria-label")).toMatch(
    /5 hosts by \d+ columns of steps; slower than the middle: node-003/,
  );
  expect(await rows(page, "Hosts of the recording, the slowest first").first().innerText()).toContain("node-003");
  // Rows are drawn in the order of names: the fourth is red, the second is not.
  const reds = await map(page).evaluate((canvas: HTMLCanvasElement) => {
    const context = canvas.getContext("2d");
    const dense = canvas.width / canvas.clientWidth;
    const height = ((canvas.clientHeight - 20) / 5) * dense;
    return [1, 3].map((row) => {
      const data =
        context?.getImageData(160 * dense, Math.round((row + 0.5) * height), canvas.width - 170 * dense, 1).data ?? [];
      let red = 0;
      for (let at = 0; at < data.length; at += 4) if ((data[at] ?? 0) > (data[at + 1] ?? 0) + 25) red++;
      return red / (data.length / 4);
    });
  });
  expect(reds[1]).toBeGreaterThan((reds[0] ?? 0) + 0.3);
  // What a finding advises leads to its own job, whichever session is open.
  const advised = await page
    .getByRole("region", { name: "Job vision/a" })
    .getByRole("link", { name: "the timeline of node-003" })
    .getAttribute("href");
  expect(decodeURIComponent(advised ?? "")).toMatch(/^#\/a\/.*\/timeline\?filter=node-003/);
  // With the keys: down to the slow host, right to the second step; the address and the sentence follow.
  await map(page).focus();
  for (const key of ["ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
  await page.waitForURL(/host=node-003/);
  await page.getByText(/^node-003, step \d+: (at least )?\d+ % (longer|shorter) than the median host/).waitFor();
  await page.screenshot({ path: `${shots}fleet-map.png`, fullPage: true });
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/timeline\?.*from=\d+/);
  expect(page.url()).toMatch(/filter=node-003/);
  await page.goBack();
  await page.getByText(/^node-003, step \d+: /).waitFor();
  expect(wrongs).toEqual([]);
  await close();
});

test("hosts that are slow again and again lead to their map", async () => {
  const { page, wrongs, close } = await open(browser, fleet("?part=hosts"));
  const first = rows(page, "Hosts that are slower than their peers").first();
  await first.waitFor();
  expect(await first.innerText()).toMatch(/node-003\s+2\s+2\s+2/);
  expect(await first.innerText()).toContain("medians of 5 hosts");
  await page
    .getByRole("region", { name: "Evidence for node-003" })
    .getByText("Slow in 2 of 2 recordings, in 2 jobs")
    .waitFor();
  await page.screenshot({ path: `${shots}fleet-hosts.png`, fullPage: true });
  await first.dblclick();
  await page.waitForURL(/host=node-003/);
  await map(page).waitFor();
  await page.getByText(/^node-003, step \d+: /).waitFor();
  expect(await stumbles(page)).toEqual([]);
  expect(wrongs).toEqual([]);
  await close();
});

test("changes over time, kernels, causes and coverage each have a part with an address of its own", async () => {
  const { page, wrongs, close } = await open(browser, fleet());
  await page.getByRole("button", { name: "Over time" }).click();
  await page
    .getByRole("img", { name: /Step time of nightly over 6 recordings: [\d.]+ % (slower|faster) since 2026-03-05/ })
    .waitFor();
  await page.screenshot({ path: `${shots}fleet-time.png`, fullPage: true });
  await page.reload();
  await page.getByRole("img", { name: /Step time of nightly/ }).waitFor();
  await page.getByRole("button", { name: "Kernels and ops" }).click();
  await page.getByText("No kernel was recorded", { exact: false }).waitFor();
  for (const [part, grid] of [
    ["Kernels and ops", "Ops over all jobs"],
    ["Causes", "Causes over all jobs"],
  ] as const) {
    await page.getByRole("button", { name: part, exact: true }).click();
    await page.getByRole("grid", { name: grid }).waitFor();
    expect(await stumbles(page)).toEqual([]);
    await page.screenshot({ path: `${shots}fleet-${part === "Causes" ? "causes" : "work"}.png`, fullPage: true });
  }
  await page.getByRole("button", { name: /^Coverage/ }).click();
  await page.getByText("Every planned host was read.").waitFor();
  await page.waitForURL(/part=coverage/);
  expect(wrongs).toEqual([]);
  await close();
});

test.each([
  [1440, "dark"],
  [1024, "light"],
  [390, "dark"],
  [390, "light"],
] as const)("it fits %i pixels in %s", async (width, colorScheme) => {
  const { page, wrongs, close } = await open(browser, fleet("?job=vision%2Fb&order=slow"), {
    viewport: { width, height: 900 },
    colorScheme,
  });
  await map(page).waitFor();
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(beyond).toBeLessThanOrEqual(0);
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}fleet-${width}-${colorScheme}.png`, fullPage: true });
  expect(wrongs).toEqual([]);
  await close();
});

test("a map of 256 hosts and 256 columns can be read and walked through", async () => {
  const { page, wrongs, close } = await open(browser, fleet("?part=hosts"), {
    viewport: { width: 1440, height: 1000 },
  });
  const numbers = Array.from({ length: 256 }, (_, index) => index);
  // Host 77 is slow throughout; step 100 is slow on many.
  const slow = numbers.map((host) =>
    numbers.map((step) =>
      host === 77 ? 0.25 : step === 100 && host % 3 > 0 ? 0.4 : ((host * 31 + step * 17) % 7) / 100 - 0.03,
    ),
  );
  await page.route(/api\/fleet\/steps/, (route) =>
    route.fulfill({
      json: {
        schema: "stepscope.fleet-steps.v1",
        recording: "r",
        job: "vision/a",
        session: "s",
        hosts: numbers.map((host) => `rack-${host >> 5}-node-${host}`),
        left_out: 744,
        numbered: true,
        first: numbers.map((step) => 2 * step),
        last: numbers.map((step) => 2 * step + 1),
        usual_ms: numbers.map(() => 250),
        slow,
      },
    }),
  );
  await page.goto(fleet("?job=vision%2Fa"));
  await map(page).waitFor();
  expect(await map(page).getAttribute("aria-label")).toContain(
    "256 hosts by 256 columns of steps; slower than the middle: rack-2-node-77 25 %",
  );
  await page.getByText("744 hosts that differ least from the others are not shown.").waitFor();
  expect(await rows(page, "Hosts of the recording, the slowest first").first().innerText()).toContain("rack-2-node-77");
  await rows(page, "Hosts of the recording, the slowest first").first().click();
  await page.waitForURL(/host=rack-2-node-77/);
  // The map follows to the chosen row.
  expect(await map(page).evaluate((canvas) => canvas.parentElement?.scrollTop ?? 0)).toBeGreaterThan(300);
  await map(page).focus();
  const began = Date.now();
  for (let press = 0; press < 20; press++) await page.keyboard.press("ArrowRight");
  await page.getByText(/^rack-2-node-77, steps 40 to 41: 25 % longer than the median host/).waitFor();
  // Each key draws 65,536 cells; a busy machine may take its time, but not seconds for each.
  expect(Date.now() - began).toBeLessThan(20_000);
  expect(
    await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
  ).toBeLessThanOrEqual(0);
  await page.screenshot({ path: `${shots}fleet-large.png` });
  expect(wrongs).toEqual([]);
  await close();
});

test("a merged partial alone opens as the fleet, with or without its profiles", async () => {
  const file = (name: string) => join(folder, name);
  const run = (...args: string[]) => execFileSync(binary(), ["fleet", ...args], { stdio: "pipe" });
  run("plan", file("logs"), "-o", file("plan.json"));
  run("partial", file("plan.json"), "-o", file("parts"));
  run("merge", file("parts"), "-o", file("week.part"));
  const merged = await serve("serve", file("week.part"));
  const { page, wrongs, close } = await open(browser, merged.address);
  await page.getByRole("heading", { level: 1, name: /data\/loader loses most/ }).waitFor();
  await page
    .getByRole("region", { name: "Job data/loader" })
    .getByRole("link", { name: /Open the report of/ })
    .click();
  await page.getByRole("heading", { level: 1, name: /^Input-bound/ }).waitFor();
  expect(wrongs).toEqual([]);
  await close();
  await merged.stop();
  // The profiles are gone: the report stays, and says so.
  renameSync(file("logs"), file("elsewhere"));
  const alone = await serve("serve", file("week.part"));
  const again = await open(browser, `${alone.address}/#//fleet?job=vision%2Fa`);
  await map(again.page).waitFor();
  await again.page.getByText("The profiles of this job are not on this machine", { exact: false }).waitFor();
  await again.page.screenshot({ path: `${shots}fleet-alone.png`, fullPage: true });
  expect(again.wrongs).toEqual([]);
  await again.close();
  await alone.stop();
  renameSync(file("elsewhere"), file("logs"));
});
