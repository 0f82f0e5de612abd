/** The list of all runs: names, verdicts that come by themselves, search, comparison, baseline, and thousands of runs. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fixtures, launch, open, serve, shots, stumbles, type Served } from "./support";

const OLD = new Date(Date.now() - 3_600_000);
let browser: Browser;
let server: Served;
let folder: string;

/** A fixture as a run of its own, written long ago. */
function run(name: string, fixture: string, file: string): void {
  const place = join(folder, name);
  mkdirSync(join(place, file, ".."), { recursive: true });
  cpSync(`${fixtures}/${fixture}/${file}`, join(place, file));
  utimesSync(join(place, file), OLD, OLD);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "stepscope-home-"));
  process.env.XDG_CACHE_HOME = join(folder, "cache");
  run("logs/slow", "tf-input-bound", "plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb");
  run("logs/fast", "tf-train", "plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb");
  run("logs/torch", "torch-train", "trainer.pt.trace.json.gz");
  writeFileSync(
    join(folder, "logs/torch/half.pt.trace.json"),
    '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 5}, {"ph": ',
  );
  utimesSync(join(folder, "logs/torch/half.pt.trace.json"), OLD, OLD);
  [server, browser] = [await serve("serve", join(folder, "logs")), await launch()];
});
afterAll(async () => {
  await browser.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

const rowOf = (page: Page, name: string) =>
  page
    .getByRole("grid", { name: "Runs" })
    .getByRole("row")
    .filter({ has: page.getByRole("link", { name, exact: true }) });

test("a log directory opens as a list of its runs, with names, verdicts and states", async () => {
  const { page, wrongs, close } = await open(browser, server.address);
  await page.getByRole("heading", { level: 1, name: "4 runs" }).waitFor();
  await rowOf(page, "slow")
    .getByText(/Input-bound/)
    .waitFor();
  await rowOf(page, "torch/half").getByText("damaged").waitFor();
  // The step time is that of the overview.
  const time = /\d[\d.]* m?s/.exec(await rowOf(page, "slow").innerText())?.[0] ?? "none";
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}home.png` });
  await rowOf(page, "slow").getByRole("link").click();
  await page.getByRole("heading", { level: 1, name: /^Input-bound/ }).waitFor();
  await page.getByRole("region", { name: "Step time" }).getByText(time, { exact: true }).waitFor();
  expect(wrongs).toEqual([]);
  await close();
});

test("verdicts are kept outside the log directory and are there at once after a restart", async () => {
  const first = await open(browser, server.address);
  await rowOf(first.page, "fast").locator(".mark").waitFor();
  await first.close();
  const again = await serve("serve", join(folder, "logs"));
  const answer = (await (await fetch(`${again.address}/api/home?since=0`)).json()) as { total: number; done: number };
  expect(answer.done).toBeGreaterThan(0);
  await again.stop();
});

test("on a phone, long names of runs are cut where they are the same, not where they differ", async () => {
  const logs = mkdtempSync(join(tmpdir(), "stepscope-names-"));
  for (const name of ["experiment_with_a_long_name_before", "experiment_with_a_long_name_after"])
    cpSync(`${fixtures}/torch-train`, join(logs, name), { recursive: true });
  const named = await serve("serve", logs);
  const { page, wrongs, close } = await open(browser, `${named.address}/#/s/0/home`, {
    viewport: { width: 390, height: 800 },
  });
  for (const name of ["experiment_with_a_long_name_before/trainer", "experiment_with_a_long_name_after/trainer"]) {
    const link = page.getByRole("link", { name, exact: true });
    await link.waitFor();
    const [cell, end] = await Promise.all([
      link.locator("xpath=ancestor::td[1]").boundingBox(),
      link.locator(".tail").boundingBox(),
    ]);
    expect(
      end && cell && end.x >= cell.x && end.x + end.width <= cell.x + cell.width + 1,
      `the end of ${name} shows`,
    ).toBe(true);
  }
  expect(wrongs).toEqual([]);
  await close();
  await named.stop();
  rmSync(logs, { recursive: true });
});

test("runs of several folders are named without what they share, and the latest comes first", async () => {
  const many = await serve("serve", join(folder, "logs"), `${fixtures}/jax-train`);
  const { page, wrongs, close } = await open(browser, `${many.address}/#//home`);
  const names = () => page.getByRole("grid", { name: "Runs" }).locator("tbody a").allTextContents();
  await expect
    .poll(async () => (await names()).sort())
    .toEqual(["jax-train", "logs/fast", "logs/slow", "logs/torch/half", "logs/torch/trainer"]);
  const recorded = page.getByRole("columnheader", { name: "Recorded" });
  expect(await recorded.getAttribute("aria-sort")).toBe("descending");
  await page.locator("tbody .mark").nth(3).waitFor();
  const times = await page.getByRole("grid", { name: "Runs" }).locator("tbody td:nth-child(3)").allTextContents();
  expect(times).toEqual([...times].sort().reverse());
  expect(await rowOf(page, "logs/slow").locator("td").nth(1).getAttribute("title"), "the full path").toContain(
    "/logs/slow/",
  );
  expect(wrongs).toEqual([]);
  await close();
  await many.stop();
});

test("search, order and folders are part of the address", async () => {
  const { page, wrongs, close } = await open(browser, server.address);
  const names = () => page.getByRole("grid", { name: "Runs" }).locator("tbody a").allTextContents();
  await page.getByRole("grid", { name: "Runs" }).getByRole("button", { name: "Run" }).click();
  await expect.poll(names).toEqual(["fast", "slow", "torch/half", "torch/trainer"]);
  await page.getByRole("searchbox", { name: "Search runs" }).fill("torch");
  await expect.poll(names).toEqual(["torch/half", "torch/trainer"]);
  await page.getByRole("checkbox", { name: "Group by folder" }).check();
  await page.getByRole("button", { name: "torch", exact: false }).and(page.locator(".turn")).waitFor();
  await page.waitForURL(/q=torch/);
  await page.goto(page.url());
  await expect.poll(names).toEqual(["torch/half", "torch/trainer"]);
  expect(wrongs).toEqual([]);
  await close();
});

test("two runs are compared, and one is the baseline of the others", async () => {
  const { page, wrongs, close } = await open(browser, server.address);
  await rowOf(page, "slow").locator(".mark").waitFor();
  await rowOf(page, "fast").locator(".mark").waitFor();
  await page.getByRole("checkbox", { name: "Tick slow" }).check();
  await page.getByRole("button", { name: "Make it the baseline" }).click();
  await rowOf(page, "slow").getByText("baseline").waitFor();
  expect(await rowOf(page, "fast").innerText()).toMatch(/0\.\d+×/);
  await page.getByRole("checkbox", { name: "Tick fast" }).check();
  await page.screenshot({ path: `${shots}home-baseline.png` });
  await page.getByRole("link", { name: "Compare" }).and(page.locator(".primary")).click();
  await page.getByRole("heading", { level: 1, name: /faster/ }).waitFor();
  const chosen = (name: string) => page.getByRole("combobox", { name }).locator("option:checked").textContent();
  expect([await chosen("Before"), await chosen("After")]).toEqual(["slow", "fast"]);
  expect(wrongs).toEqual([]);
  await close();
});

test("the picker has the same names and a search", async () => {
  const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/ops`);
  const button = page.getByRole("button", { name: /^Run:/ });
  await button.click();
  await page.getByRole("combobox", { name: "Search runs" }).fill("slow");
  await expect.poll(() => page.getByRole("listbox", { name: "Runs" }).getByRole("option").count()).toBe(1);
  expect(await stumbles(page)).toEqual([]);
  await page.keyboard.press("Enter");
  await expect.poll(() => button.innerText()).toContain("slow");
  expect(page.url()).toContain("/ops");
  expect(wrongs).toEqual([]);
  await close();
});

test("ten thousand runs draw only those in view", async () => {
  const { page, wrongs, close } = await open(browser, server.address);
  const sessions = Array.from({ length: 10_000 }, (_, id) => ({
    id,
    name: `run${id}.json`,
    path: `/logs/group${id % 50}/run${id}.json`,
    hosts: ["box"],
    bytes: id,
    state: "unopened",
    appeared: false,
    place: null,
    revision: 0,
  }));
  const summary = {
    headline: "Input-bound: waits",
    severity: "critical",
    finding: "input-bound",
    doubts: [],
    step_ms: 10,
    steps: 20,
    breakdown: [
      ["input", 0.6],
      ["compute", 0.4],
    ],
    devices: [["H100", 1]],
    framework: "PyTorch",
    began_ms: 1e12,
    events: 5,
    damaged: false,
    problem: null,
  };
  await page.route("**/api/sessions", (route) =>
    route.fulfill({ json: { version: "0", current: 0, watching: true, curves: 0, sessions } }),
  );
  await page.route("**/api/home*", (route) =>
    route.fulfill({
      json: {
        version: 1,
        total: 10_000,
        done: 10_000,
        runs: sessions.map(({ id }) => ({ id, modified_ms: 1e12, writing: false, skipped: false, summary })),
      },
    }),
  );
  await page.goto(`${server.address}/#//home`);
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "10,000 runs" }).waitFor();
  await page.getByRole("grid", { name: "Runs" }).locator("tbody .mark").first().waitFor();
  expect(await page.getByRole("grid", { name: "Runs" }).locator("tbody tr").count()).toBeLessThan(120);
  await page.getByRole("searchbox", { name: "Search runs" }).fill("run9999");
  await expect
    .poll(() => page.getByRole("grid", { name: "Runs" }).locator("tbody a").allTextContents())
    .toEqual(["group49/run9999"]);
  expect(wrongs).toEqual([]);
  await close();
});
