/** Finding and arranging on the timeline: the list of hits, arrows, pinned, reordered and folded tracks, areas by touch. */
import { rmSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import type {} from "../src/timeline/draw/hook";
import { open, serve, shots, stage, stumbles } from "./support";
import { STEPS, torchTrace } from "./torchtrace";

const folder = torchTrace();
const served = stage("serve", folder);
afterAll(() => rmSync(folder, { recursive: true }));

const drawn = (page: Page) => page.waitForFunction(() => window.__stepscopeTimeline?.complete() === true);
const plotOf = (page: Page) => page.getByRole("application", { name: "Events over time" });
const timeline = (query = "") => `${served.server.address}/#/s/0/timeline${query}`;
const asked = (page: Page, key: string) => new URLSearchParams(page.url().split("?")[1] ?? "").get(key);
const details = (page: Page) => page.getByRole("article", { name: "Selected event" });

test("the hits of a search are a list that goes where one says", async () => {
  const { page, wrongs, close } = await open(served.browser, timeline());
  await drawn(page);
  await plotOf(page).focus();
  await page.keyboard.press("/");
  await page.keyboard.type("sgemm");
  await page.getByText(`${STEPS} hits, 1 name`).waitFor();
  await page.keyboard.press("ArrowDown");
  const list = page.getByRole("listbox", { name: /Hits/ });
  await list.waitFor();
  const rows = list.getByRole("option");
  expect(await rows.count()).toBe(STEPS);
  expect(await rows.first().innerText()).toMatch(
    /ampere_sgemm_128x64[\s\S]*stream 7[\s\S]*0\.005 000 000 s[\s\S]*3 ms/,
  );
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await details(page).getByText("0.025 000 000 s").waitFor();
  expect(await rows.nth(2).getAttribute("aria-selected")).toBe("true");
  await rows.nth(5).click();
  await details(page).getByText("0.055 000 000 s").waitFor();
  await plotOf(page).focus();
  await page.keyboard.press("n");
  await details(page).getByText("0.065 000 000 s").waitFor();
  await page.keyboard.press("Shift+N");
  await details(page).getByText("0.055 000 000 s").waitFor();
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}timeline-hits.png` });
  await page.waitForURL(/hits=list/);
  await page.reload();
  await list.getByRole("option").first().waitFor();
  expect(wrongs).toEqual([]);
  await close();
});

test("an arrow is followed both ways, and both its ends are brought into view", async () => {
  const { page, wrongs, close } = await open(served.browser, timeline("?q=sgemm"), {
    viewport: { width: 1200, height: 620 },
  });
  await details(page).waitFor();
  await details(page).getByRole("button", { name: "cudaLaunchKernel", exact: true }).click();
  await details(page).getByRole("heading", { name: "cudaLaunchKernel" }).waitFor();
  await details(page)
    .getByRole("button", { name: /^Show both ends/ })
    .click();
  const both = await page.waitForFunction(() => {
    const now = window.__stepscopeTimeline?.view();
    return (
      now &&
      now.start <= 1_100_000 &&
      now.end >= 8_000_000 &&
      now.end - now.start < 12_000_000 &&
      window.__stepscopeTimeline?.complete()
    );
  });
  expect(await both.jsonValue()).toBe(true);
  // The op around the call shows what it launched, too.
  await details(page).getByRole("button", { name: "aten::mm" }).click();
  await details(page)
    .getByText(/launch inside/)
    .waitFor();
  await page.screenshot({ path: `${shots}timeline-both-ends.png` });
  expect(wrongs).toEqual([]);
  await close();
});

test("tracks are pinned and moved by keys, and a link keeps it", async () => {
  const { page, wrongs, close } = await open(served.browser, timeline("?filter=worker-1"));
  await drawn(page);
  const tracks = page.getByRole("group", { name: "Tracks" });
  const names = async () => (await tracks.locator(".row.track .name").allInnerTexts()).map((name) => name.trim());
  const before = await names();
  await tracks.getByRole("button", { name: "Move worker-1 down", exact: true }).focus();
  await page.keyboard.press("Enter");
  await expect.poll(names).toEqual([before[1], before[0], ...before.slice(2)]);
  await tracks.getByRole("button", { name: "Pin worker-12", exact: true }).focus();
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await names())[0]).toBe("worker-12");
  await page.waitForURL(/pin=\d+.*order=|order=.*pin=\d+/);
  const after = await names();
  await page.reload();
  await drawn(page);
  expect(await names()).toEqual(after);
  expect(wrongs).toEqual([]);
  await close();
});

test("tracks without an event in view are folded away, and come back", async () => {
  const { page, wrongs, close } = await open(served.browser, timeline("?view=40000000~60000000"));
  await drawn(page);
  const tracks = page.getByRole("group", { name: "Tracks" });
  const heights = () => page.locator(".spacer").evaluate((spacer) => spacer.clientHeight);
  const before = await heights();
  await page.getByRole("button", { name: "Hide empty" }).click();
  await tracks.getByText("worker-0", { exact: true }).waitFor({ state: "detached" });
  expect(await heights()).toBeLessThan(before);
  expect(await tracks.getByText("stream 7").count()).toBe(1);
  await page.waitForURL(/empty=hide/);
  await page.screenshot({ path: `${shots}timeline-hide-empty.png` });
  await page.getByRole("button", { name: "Whole trace" }).click();
  await tracks.getByText("worker-0", { exact: true }).waitFor();
  expect(asked(page, "empty")).toBe("hide");
  expect(wrongs).toEqual([]);
  await close();
});

test("a finger that rests before it moves selects an area", async () => {
  const { page, wrongs, close } = await open(served.browser, timeline(), {
    viewport: { width: 390, height: 800 },
    hasTouch: true,
  });
  await drawn(page);
  const box = await plotOf(page).boundingBox();
  if (!box) throw new Error("the timeline has no size");
  const touch = await page.context().newCDPSession(page);
  const finger = (type: "touchStart" | "touchMove" | "touchEnd", share?: number) =>
    touch.send("Input.dispatchTouchEvent", {
      type,
      touchPoints: share === undefined ? [] : [{ x: box.x + box.width * share, y: box.y + 60 + 100 * share }],
    });
  await finger("touchStart", 0.2);
  await page.waitForTimeout(600);
  for (let part = 1; part <= 8; part += 1) await finger("touchMove", 0.2 + part * 0.08);
  await finger("touchEnd");
  await page.getByRole("region", { name: "Selected area" }).getByRole("row").nth(1).waitFor();
  expect(asked(page, "view"), "the finger panned instead").toBeNull();
  expect(wrongs).toEqual([]);
  await close();
});

test("collectives of several ranks show who waits for whom", async () => {
  const ranks = torchTrace(2);
  const both = await serve("serve", ranks);
  const { runs } = (await (await fetch(`${both.address}/api/s/0/collectives`)).json()) as {
    runs: { waited_ns: number; last: boolean }[];
  };
  const waits = (last: boolean) => new Set(runs.filter((run) => run.last === last).map((run) => run.waited_ns));
  expect([...waits(true)]).toEqual([0]);
  expect([...waits(false)]).toEqual([500_000]);
  const { page, wrongs, close } = await open(
    served.browser,
    `${both.address}/#/s/0/timeline?q=nccl&view=38000000~40500000`,
  );
  await drawn(page);
  const tip = page.locator(".tip");
  const box = await plotOf(page).boundingBox();
  if (!box) throw new Error("the timeline has no size");
  // Down the middle of the exchange, until the pointer is on one of its two ends.
  const said = async (text: RegExp) => {
    for (let y = 4; y < 200; y += 6) {
      await page.mouse.move(box.x + ((39_000_000 - 38_000_000) / 2_500_000) * box.width, box.y + y);
      await page.waitForTimeout(30);
      if ((await tip.count()) > 0 && text.test(await tip.innerText())) return true;
    }
    return false;
  };
  expect(await said(/Waited 500 µs for the last rank/)).toBe(true);
  expect(await said(/The last rank to arrive/)).toBe(true);
  await page.screenshot({ path: `${shots}timeline-collectives.png` });
  expect(wrongs).toEqual([]);
  await close();
  await both.stop();
  rmSync(ranks, { recursive: true });
});
