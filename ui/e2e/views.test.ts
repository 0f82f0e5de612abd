/** Views come from the server: one that the page has never heard of is listed, drawn and restored like any other. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type {} from "../src/timeline/draw/hook";
import { fixtures, open, shots, stage, stumbles } from "./support";

const on = stage("serve", `${fixtures}/tf-input-bound`);

const VIEW = {
  name: "slowest",
  title: "Slowest steps",
  group: "Time",
  question: "Which steps took longest?",
  about: "Show the slowest steps",
  record: ["Mark each step"],
  events: "name",
  ways: ["name", "host"],
};

/** The answers of a server that has one view more. */
async function withAnotherView(page: Page, rows = 3): Promise<void> {
  await page.route("**/api/views", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ json: [...((await answer.json()) as unknown[]), VIEW] });
  });
  await page.route("**/api/s/*/view/slowest*", (route) => {
    const byHost = route.request().url().includes("by=host");
    const values = (all: (string | number)[]) => all.slice(0, rows);
    return route.fulfill({
      json: {
        view: "slowest",
        headline: rows > 0 ? "the slowest step takes 90 ms" : "no steps were recorded",
        notes: [],
        rows,
        members: {},
        ways: VIEW.ways,
        columns: [
          {
            key: byHost ? "host" : "name",
            title: byHost ? "host" : "step",
            format: "name",
            hidden: false,
            optional: false,
            values: values(["train 3", "train 1", "train 2"]),
          },
          {
            key: "duration_ms",
            title: "duration",
            format: "ms",
            hidden: false,
            optional: false,
            values: values([90, 80, 70]),
          },
        ],
      },
    });
  });
}

async function openWith(address: string, rows = 3, options = {}) {
  const opened = await open(on.browser, "about:blank", options);
  await withAnotherView(opened.page, rows);
  opened.wrongs.length = 0;
  await opened.page.goto(`${on.server.address}${address}`);
  return opened;
}

test("a view without a component is drawn from its description", async () => {
  const { page, close } = await openWith("/");
  await page.getByRole("heading", { level: 1 }).waitFor();
  const link = page
    .getByRole("navigation", { name: "Pages" })
    .getByRole("list", { name: "Time" })
    .getByRole("link", { name: VIEW.title });
  expect(await link.getAttribute("title")).toBe(VIEW.question);
  await link.click();
  await page.getByRole("heading", { level: 1, name: /slowest step takes/ }).waitFor();
  expect(await page.title()).toContain(VIEW.title);
  await page.locator("main").getByText(VIEW.question).waitFor();
  const table = page.getByRole("grid", { name: VIEW.title });
  expect(await table.locator("tbody tr:not([aria-hidden])").count()).toBe(3);
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}view-generic.png` });
  await page.getByRole("group", { name: "Rows" }).getByRole("button", { name: "By host" }).click();
  await table.getByRole("columnheader", { name: "host" }).waitFor();
  expect(page.url()).toContain("by=host");
  await close();
});

test("a view without rows says how to record them", async () => {
  const { page, close } = await openWith("/#/s/0/slowest", 0);
  await page.getByRole("heading", { name: "No steps were recorded" }).waitFor();
  await page.locator("main").getByText("Mark each step").waitFor();
  await close();
});

test("pages without content are grey in the navigation", async () => {
  const { page, wrongs, close } = await open(on.browser, `${on.server.address}/#/s/0/overview`);
  const pages = page.getByRole("navigation", { name: "Pages" });
  await pages.locator("a.empty", { hasText: "Kernels" }).waitFor();
  expect(await pages.getByRole("link", { name: "Kernels" }).getAttribute("title")).toContain("Nothing was recorded.");
  expect((await pages.getByRole("link", { name: "Ops", exact: true }).getAttribute("class")) ?? "").not.toContain(
    "empty",
  );
  expect(await stumbles(page)).toEqual([]);
  expect(wrongs).toEqual([]);
  await close();
});

test("a page that does not exist is the overview, and says so", async () => {
  const { page, wrongs, close } = await open(on.browser, `${on.server.address}/#/s/0/nonsense`);
  await page.getByRole("heading", { level: 1, name: /^Input-bound/ }).waitFor();
  expect(await page.getByRole("navigation", { name: "Pages" }).locator("[aria-current=page]").textContent()).toBe(
    "Overview",
  );
  await page.getByText("There is no page “nonsense”").waitFor();
  await page.goto(`${on.server.address}/#/s/0/overview`);
  await expect.poll(() => page.getByText("There is no page").count()).toBe(0);
  expect(wrongs).toEqual([]);
  await close();
});

test("every view that the server has is a page", async () => {
  const views = (await (await fetch(`${on.server.address}/api/views`)).json()) as { name: string; question: string }[];
  expect(views.length).toBeGreaterThan(9);
  const { page, wrongs, close } = await open(on.browser, on.server.address);
  for (const { name, question } of views) {
    await page.goto(`${on.server.address}/#/s/0/${name}`);
    // A page with rows shows its question, one without says how to record them.
    await page.locator("main").getByText(question).or(page.locator("main .empty")).first().waitFor();
  }
  expect(wrongs).toEqual([]);
  await close();
});

test("filter and sort order survive the way to the timeline and back, and so does a link", async () => {
  const { page, wrongs, close } = await open(on.browser, `${on.server.address}/#/s/0/ops`);
  const table = page.getByRole("grid", { name: "Ops" });
  const rows = () => table.locator("tbody tr:not([aria-hidden])").allTextContents();
  await table.getByRole("button", { name: /count/ }).click();
  await page.getByPlaceholder("Filter…").fill("Conv2D");
  await page.waitForURL(/sort=count&filter=Conv2D/);
  const before = await rows();
  await table.locator("tbody tr:not([aria-hidden])").first().click();
  await page.getByRole("button", { name: "Find on the timeline" }).click();
  await page.waitForURL(/timeline/);
  await page.goBack();
  await table.waitFor();
  expect(await page.getByPlaceholder("Filter…").inputValue()).toBe("Conv2D");
  await expect.poll(rows).toEqual(before);
  expect(await table.locator("[aria-sort=descending]").count()).toBe(1);
  // The plain link to the same page starts afresh.
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Ops", exact: true }).click();
  await expect.poll(() => page.getByPlaceholder("Filter…").inputValue()).toBe("");
  expect(wrongs).toEqual([]);
  await close();
});

test("a bar beside a share is full at 100 %", async () => {
  const { page, wrongs, close } = await open(on.browser, `${on.server.address}/#/s/0/ops`);
  const table = page.getByRole("grid", { name: "Ops" });
  await table.locator(".share i").first().waitFor();
  const bars = await table
    .locator("td:has(.share)")
    .evaluateAll((cells) =>
      cells.map((cell) => [
        Number.parseFloat(cell.textContent ?? ""),
        Number.parseFloat(cell.querySelector("i")?.style.width ?? ""),
      ]),
    );
  expect(bars.length).toBeGreaterThan(5);
  for (const [share = NaN, width = NaN] of bars.filter(([share]) => !Number.isNaN(share)))
    expect(Math.abs(share - width)).toBeLessThan(0.06);
  expect(wrongs).toEqual([]);
  await close();
});

test("without a chosen row, the first one is found on the timeline", async () => {
  const { page, wrongs, close } = await open(on.browser, `${on.server.address}/#/s/0/ops`);
  await page.getByRole("button", { name: "Find on the timeline" }).click();
  await page.getByRole("article", { name: "Selected event" }).waitFor();
  expect(wrongs).toEqual([]);
  await close();
});

test("finding a row on the timeline goes to its first event", async () => {
  const { page, wrongs, close } = await open(on.browser, `${on.server.address}/#/s/0/ops`);
  await page.getByPlaceholder("Filter…").fill("BiasAdd");
  const row = page.getByRole("grid", { name: "Ops" }).locator("tbody tr:not([aria-hidden])").first();
  await row.click();
  await page.getByRole("button", { name: "Find on the timeline" }).click();
  const details = page.getByRole("article", { name: "Selected event" });
  await details.waitFor();
  // The op itself, and not one that is inside it.
  expect(await details.innerText()).not.toContain("ReadVariableOp");
  await page.getByText(/^[\d,]+ of [\d,]+$/).waitFor();
  await page.waitForFunction(() => window.__stepscopeTimeline?.complete() === true);
  await page.screenshot({ path: `${shots}timeline-found.png` });
  expect(wrongs).toEqual([]);
  await close();
});
