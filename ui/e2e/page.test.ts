/** A newcomer's way through the page: the verdict, its evidence on the timeline and back, and every other page. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type {} from "../src/timeline/draw/hook";
import { fixtures, launch, open, serve, shots, stumbles, type Served } from "./support";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const SAMPLE = `${fixtures}/tf-input-bound/plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb`;
const drawn = (page: Page) => page.waitForFunction(() => window.__stepscopeTimeline?.complete() === true);

describe("one recording", () => {
  let server: Served;
  beforeAll(async () => {
    server = await serve("serve", `${fixtures}/tf-input-bound`);
  });
  afterAll(() => server.stop());

  test("opens on the answer, shows its evidence and comes back", async () => {
    const { page, wrongs, close } = await open(browser, server.address);
    // By its words: the timeline has a heading, too.
    const verdict = page.getByRole("heading", { level: 1, name: /^Input-bound/ });
    await verdict.waitFor();
    await page.screenshot({ path: `${shots}overview.png`, fullPage: true });
    const evidence = page.getByRole("link", { name: "Show on the timeline" }).first();
    expect(await evidence.getAttribute("href")).toMatch(/timeline\?.*from=\d+/);
    await evidence.click();
    await verdict.waitFor({ state: "detached" });
    await drawn(page);
    const caption = page.getByRole("note", { name: "Finding" });
    expect(await caption.innerText()).toMatch(/Input-bound: .* waits [\d.]+ m?s of [\d.]+ m?s/);
    await page.screenshot({ path: `${shots}timeline-evidence.png` });
    await page.goBack();
    await verdict.waitFor();
    expect(wrongs).toEqual([]);
    await close();
  });

  test("searches the whole trace, selects, zooms and restores all of it from the address", async () => {
    const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/timeline`);
    await drawn(page);
    const whole = page.url();
    await page.getByRole("application", { name: "Events over time" }).focus();
    await page.keyboard.press("/");
    await page.keyboard.type("MatMul");
    await page.keyboard.press("Enter");
    const details = page.getByRole("article", { name: "Selected event" });
    await details.waitFor();
    expect(await details.getByRole("heading").first().textContent()).toContain("MatMul");
    await page.getByRole("application", { name: "Events over time" }).focus();
    await page.keyboard.press("f");
    await drawn(page);
    await page.waitForURL((url) => url.href !== whole && url.href.includes("sel=") && url.href.includes("view="));
    await page.screenshot({ path: `${shots}timeline-selected.png` });
    const link = page.url();
    await page.keyboard.press(".");
    await page.waitForURL((url) => url.href !== link);
    await close();

    const again = await open(browser, link);
    await again.page.getByRole("article", { name: "Selected event" }).waitFor();
    await drawn(again.page);
    expect([...wrongs, ...again.wrongs]).toEqual([]);
    await again.close();
  });

  test("sums up an area", async () => {
    const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/timeline`);
    await drawn(page);
    const box = await page.getByRole("application", { name: "Events over time" }).boundingBox();
    if (!box) throw new Error("the timeline has no size");
    await page.mouse.move(box.x + box.width * 0.3, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + Math.min(400, box.height - 10), { steps: 5 });
    await page.mouse.up();
    const area = page.getByRole("region", { name: "Selected area" });
    await area.waitFor();
    await area.getByRole("row").nth(1).waitFor();
    await page.screenshot({ path: `${shots}timeline-area.png` });
    expect(wrongs).toEqual([]);
    await close();
  });

  test("sorts, filters and downloads a table", async () => {
    const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/ops`);
    const table = page.getByRole("grid").first();
    await table.waitFor();
    await table.getByRole("button", { name: /count/ }).click();
    const sorted = table.locator("[aria-sort=descending], [aria-sort=ascending]");
    await expect.poll(() => sorted.count()).toBe(1);
    await page.getByPlaceholder("Filter…").first().fill("Conv2D");
    await page
      .getByText(/of [\d,]+ rows/)
      .first()
      .waitFor();
    const cells = () => table.locator("tbody tr:not([aria-hidden])").allTextContents();
    await expect.poll(async () => (await cells()).every((text) => /conv2d/i.test(text))).toBe(true);
    expect((await cells()).length).toBeGreaterThan(0);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "CSV" }).click(),
    ]);
    expect(await download.failure()).toBeNull();
    expect(wrongs).toEqual([]);
    await close();
  });

  test.each([
    "overview",
    "timeline",
    "steps",
    "ops",
    "kernels",
    "input",
    "memory",
    "scopes",
    "path",
    "model",
    "devices",
    "functions",
    "inference",
    "health",
    "compare",
  ])("%s is reachable for everybody and says something", async (name) => {
    const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/${name}`);
    await page.waitForLoadState("networkidle");
    if (name === "timeline") await drawn(page);
    const text = async () => (await page.locator("main").innerText()).trim();
    await expect.poll(async () => (await text()).length, { message: "an empty page" }).toBeGreaterThan(20);
    expect(await stumbles(page)).toEqual([]);
    await page.screenshot({ path: `${shots}page-${name}.png` });
    expect(wrongs).toEqual([]);
    await close();
  });

  test("is as readable in the dark and on a phone", async () => {
    const dark = await open(browser, server.address, { colorScheme: "dark" });
    await dark.page.getByRole("heading", { level: 1 }).waitFor();
    expect(await stumbles(dark.page)).toEqual([]);
    await dark.page.screenshot({ path: `${shots}overview-dark.png`, fullPage: true });
    await dark.page.goto(`${server.address}/#/s/0/timeline`);
    await drawn(dark.page);
    await dark.page.screenshot({ path: `${shots}timeline-dark.png` });
    await dark.close();

    const phone = await open(browser, server.address, { viewport: { width: 390, height: 800 }, hasTouch: true });
    await phone.page.getByRole("heading", { level: 1 }).waitFor();
    const overflow = await phone.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(overflow, "the page is wider than the phone").toBeLessThanOrEqual(0);
    await phone.page.screenshot({ path: `${shots}phone.png` });
    await phone.close();
  });
});

describe("two recordings", () => {
  test("are compared, both timelines below one another", async () => {
    const server = await serve("serve", `${fixtures}/tf-input-bound`, `${fixtures}/tf-train`);
    const { page, wrongs, close } = await open(browser, `${server.address}/#/s/0/compare`);
    await page.getByRole("combobox", { name: "Before" }).selectOption({ index: 0 });
    await page.getByRole("combobox", { name: "After" }).selectOption({ index: 1 });
    const verdict = page.getByRole("heading", { level: 1 });
    await expect.poll(async () => (await verdict.textContent())?.length).toBeGreaterThan(10);
    await page.getByRole("button", { name: "Show both timelines" }).click();
    await page.getByRole("region", { name: "Timeline", exact: true }).nth(1).waitFor();
    await page.screenshot({ path: `${shots}compare.png`, fullPage: true });
    expect(await stumbles(page)).toEqual([]);
    expect(wrongs).toEqual([]);
    await close();
    await server.stop();
  });

  test("a session that appears is offered", async () => {
    const folder = mkdtempSync(join(tmpdir(), "stepscope-e2e-"));
    const session = (name: string): string => {
      const place = join(folder, "plugins", "profile", name);
      mkdirSync(place, { recursive: true });
      copyFileSync(SAMPLE, join(place, "trainer.xplane.pb"));
      return name;
    };
    session("2026_01_01_00_00_00");
    const server = await serve("serve", folder);
    const { page, wrongs, close } = await open(browser, server.address);
    await page.getByRole("heading", { level: 1 }).waitFor();
    session("2026_01_02_00_00_00");
    await page.getByText("New session:").waitFor({ timeout: 30_000 });
    expect(wrongs).toEqual([]);
    await close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });
});

describe("what is broken", () => {
  test("a cut file shows what could be read, and names the damage", async () => {
    const folder = mkdtempSync(join(tmpdir(), "stepscope-e2e-"));
    const file = join(folder, "cut.xplane.pb");
    copyFileSync(SAMPLE, file);
    truncateSync(file, 150_000);
    const server = await serve("serve", folder);
    const { page, close } = await open(browser, server.address);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page
      .locator("main")
      .getByText(/damaged/)
      .first()
      .waitFor();
    await page.screenshot({ path: `${shots}damaged.png`, fullPage: true });
    await close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  test("a folder without profiles says what to do", async () => {
    const folder = mkdtempSync(join(tmpdir(), "stepscope-e2e-"));
    writeFileSync(join(folder, "notes.txt"), "nothing to see");
    const server = await serve("serve", folder);
    const { page, wrongs, close } = await open(browser, server.address);
    await page
      .locator("main")
      .getByText(/profile|record|capture/i)
      .first()
      .waitFor();
    expect(await stumbles(page)).toEqual([]);
    await page.screenshot({ path: `${shots}nothing.png` });
    expect(wrongs).toEqual([]);
    await close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  test("an error in one view leaves the others alone", async () => {
    const server = await serve("serve", `${fixtures}/tf-input-bound`);
    const { page, close } = await open(browser, server.address);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.route("**/api/s/*/view/ops*", (route) =>
      route.fulfill({
        status: 500,
        json: { error: { what: "this view failed", found: "an error of ours", todo: "try again", hints: [] } },
      }),
    );
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Ops", exact: true }).click();
    await page.getByText("this view failed").waitFor();
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Steps" }).click();
    await page.getByRole("grid").first().waitFor();
    await close();
    await server.stop();
  });
});

describe("the words of the terminal", () => {
  test("are links to pages", async () => {
    const server = await serve("serve", `${fixtures}/tf-input-bound`);
    const { page, wrongs, close } = await open(browser, server.address);
    const advice = page
      .getByRole("region", { name: /Input-bound/ })
      .getByRole("list")
      .last();
    await advice.waitFor();
    expect(await page.locator("main").innerText()).not.toMatch(
      /stepscope (compare|input|kernels|ops|memory|steps|devices|health)/,
    );
    await advice.getByRole("link", { name: "Compare" }).click();
    await page.getByText("There is no other session to compare with").waitFor();
    expect(wrongs).toEqual([]);
    await close();
    await server.stop();
  });
});
