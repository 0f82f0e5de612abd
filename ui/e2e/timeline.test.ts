/** The timeline under hands and hardware: fingers, trackpads, and graphics cards that come and go. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type {} from "../src/timeline/draw/hook";
import { fixtures, open, stage } from "./support";

const on = stage("serve", `${fixtures}/tf-input-bound`);

const drawn = (page: Page) => page.waitForFunction(() => window.__stepscopeTimeline?.complete() === true);
const plotOf = (page: Page) => page.getByRole("application", { name: "Events over time" });
const address = (renderer = "auto") => `${on.server.address}/?renderer=${renderer}#/s/0/timeline`;

/** What is shown, in nanoseconds. */
interface Shown {
  from: number;
  width: number;
  /** As it stands in the address. */
  view: string;
}

/**
 * What is shown once all movement has ended: the address, which is written a little after things changed, says what the
 * picture shows. After a gesture, `before` is what was shown until then.
 */
async function shown(page: Page, before?: Shown): Promise<Shown> {
  const settled = await page.waitForFunction((before) => {
    const view = new URLSearchParams(location.hash.split("?")[1] ?? "").get("view");
    const now = window.__stepscopeTimeline?.view();
    if (!view || view === before || !now) return false;
    const [from, to] = view.split("~").map(Number);
    const near = (a: number | undefined, b: number) =>
      Math.abs((a ?? Number.NaN) - b) <= 2 + (now.end - now.start) * 1e-6;
    return near(from, now.start) && near(to, now.end) ? view : false;
  }, before?.view ?? "");
  const view = String(await settled.jsonValue());
  const [from, to] = view.split("~").map(Number);
  return { from: from ?? Number.NaN, width: (to ?? Number.NaN) - (from ?? Number.NaN), view };
}

async function place(page: Page): Promise<{ x: number; y: number; width: number }> {
  const box = await plotOf(page).boundingBox();
  if (!box) throw new Error("the timeline has no size");
  return { x: box.x, y: box.y, width: box.width };
}

/** Takes the context away, as a driver that starts anew does. */
const lose = (page: Page, back: boolean) =>
  page.evaluate(async (back) => {
    const canvas = document.querySelectorAll<HTMLCanvasElement>(".plot canvas")[1];
    const card = canvas?.getContext("webgl2")?.getExtension("WEBGL_lose_context");
    if (!canvas || !card) throw new Error("no WebGL to lose");
    const frames = window.__stepscopeTimeline?.frames.length ?? 0;
    const lost = new Promise((resolve) => canvas.addEventListener("webglcontextlost", resolve, { once: true }));
    card.loseContext();
    await lost;
    if (back) setTimeout(() => card.restoreContext(), 50);
    return frames;
  }, back);

test.each([
  ["is given back", true, "webgl"],
  ["stays away", false, "canvas"],
] as const)("a lost graphics context that %s leaves the picture whole", async (_, back, renderer) => {
  const { page, wrongs, close } = await open(on.browser, address("webgl"));
  await drawn(page);
  expect(await page.evaluate(() => window.__stepscopeTimeline?.renderer)).toBe("webgl");
  const before = await plotOf(page).screenshot();
  const frames = await lose(page, back);
  await page.waitForFunction(
    ([frames, renderer]) =>
      (window.__stepscopeTimeline?.frames.length ?? 0) > frames && window.__stepscopeTimeline?.renderer === renderer,
    [frames, renderer] as const,
  );
  await drawn(page);
  const after = await plotOf(page).screenshot();
  // The two ways of drawing may differ in a shade; the same way may not.
  if (back) expect(after.equals(before)).toBe(true);
  else expect(Math.abs(after.length - before.length)).toBeLessThan(before.length / 5);
  expect(await page.getByRole("alert").count()).toBe(0);
  expect(wrongs).toEqual([]);
  await close();
});

test("two fingers zoom where they are and pan where they go", async () => {
  const { page, wrongs, close } = await open(on.browser, address(), {
    viewport: { width: 390, height: 800 },
    hasTouch: true,
  });
  await drawn(page);
  const { x, y, width } = await place(page);
  const touch = await page.context().newCDPSession(page);
  const fingers = (type: "touchStart" | "touchMove" | "touchEnd", ...at: number[]) =>
    touch.send("Input.dispatchTouchEvent", {
      type,
      touchPoints: at.map((share, id) => ({ x: x + width * share, y: y + 60, id })),
    });
  await fingers("touchStart", 0.4, 0.6);
  for (let part = 1; part <= 10; part += 1) await fingers("touchMove", 0.4 - part * 0.03, 0.6 + part * 0.03);
  await fingers("touchEnd");
  const whole = (await (await fetch(`${on.server.address}/api/s/0/timeline`)).json()) as { end_ns: number };
  const zoomed = await shown(page);
  expect(zoomed.width / whole.end_ns).toBeCloseTo(0.25, 1);
  await fingers("touchStart", 0.5, 0.8);
  for (let part = 1; part <= 10; part += 1) await fingers("touchMove", 0.5 - part * 0.02, 0.8 - part * 0.02);
  await fingers("touchEnd");
  const moved = await shown(page, zoomed);
  expect(moved.width / zoomed.width).toBeCloseTo(1, 2);
  expect((moved.from - zoomed.from) / zoomed.width).toBeCloseTo(0.2, 1);
  expect(await page.getByRole("article", { name: "Selected event" }).count()).toBe(0);
  expect(wrongs).toEqual([]);
  await close();
});

test("a trackpad's pinch zooms the timeline, not the page", async () => {
  const { page, wrongs, close } = await open(on.browser, address());
  await drawn(page);
  const { x, y, width } = await place(page);
  await page.mouse.move(x + width / 2, y + 60);
  await page.keyboard.down("Control");
  for (let part = 0; part < 20; part += 1) await page.mouse.wheel(0, -4);
  await page.keyboard.up("Control");
  const first = await shown(page);
  expect(await page.evaluate(() => window.visualViewport?.scale)).toBe(1);
  await page.mouse.wheel(width / 4, 0);
  const second = await shown(page, first);
  expect((second.from - first.from) / first.width).toBeCloseTo(0.25, 1);
  expect(wrongs).toEqual([]);
  await close();
});

test("the keys that are listed do what is said, and their list goes with Escape", async () => {
  const { page, wrongs, close } = await open(on.browser, address());
  await drawn(page);
  const { x, y, width } = await place(page);
  await page.mouse.move(x + width / 2, y + 60);
  const keys = page.getByRole("dialog", { name: "Timeline keys" });
  await page.keyboard.press("?");
  await keys.waitFor();
  await page.keyboard.press("w");
  await page.keyboard.press("Escape");
  await keys.waitFor({ state: "detached" });
  expect(page.url(), "a key that was meant for the list moved the view").not.toContain("view=");
  await page.keyboard.press("w", { delay: 300 });
  const near = await shown(page);
  await page.keyboard.press("d", { delay: 150 });
  const right = await shown(page, near);
  expect(right.from).toBeGreaterThan(near.from);
  await page.keyboard.press("ArrowLeft", { delay: 150 });
  const left = await shown(page, right);
  expect(left.from).toBeLessThan(right.from);
  await page.keyboard.press("s", { delay: 150 });
  expect((await shown(page, left)).width).toBeGreaterThan(near.width);
  await page.keyboard.press("/");
  expect(await page.evaluate(() => document.activeElement?.getAttribute("type"))).toBe("search");
  expect(wrongs).toEqual([]);
  await close();
});
