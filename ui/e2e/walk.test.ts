/**
 * A walk through every page of many recordings: none may show an error box, log an error or stay empty. The recordings are
 * the fixtures and, where `STEPSCOPE_CORPUS` names their folder, those from elsewhere: a sample of them, or all with
 * `STEPSCOPE_WALK=all`.
 */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type {} from "../src/timeline/draw/hook";
import type { Sessions } from "../src/server/types";
import type { ViewInfo } from "../src/server/views";
import { fixtures, launch, open, serve, type Served } from "./support";

/** Recordings of a sample. */
const SAMPLE = 24;
/** A page that takes longer has failed; a recording is read before its first page. */
const PATIENCE_MS = 60_000;
const OTHERS = ["overview", "timeline", "model", "sql"];

const corpus = process.env.STEPSCOPE_CORPUS;
const everything = process.env.STEPSCOPE_WALK === "all";

let browser: Browser;
let server: Served;
beforeAll(async () => {
  browser = await launch();
  server = await serve("serve", fixtures, ...(corpus && existsSync(corpus) ? [corpus] : []));
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

async function ask<T>(path: string): Promise<T> {
  return (await (await fetch(`${server.address}/api/${path}`)).json()) as T;
}

/** Waits until a recording is read; false if it cannot be. Those are for other tests. */
async function readable(id: number): Promise<boolean> {
  for (;;) {
    const { status } = await fetch(`${server.address}/api/s/${id}/report`);
    if (status !== 202) return status === 200;
  }
}

/** Some of each folder in turn, so that all formats are there. */
function sample<T extends { path: string }>(all: T[], most: number): T[] {
  const folders = new Map<string, T[]>();
  for (const one of [...all].sort((a, b) => a.path.localeCompare(b.path))) {
    const folder = dirname(dirname(one.path));
    folders.set(folder, [...(folders.get(folder) ?? []), one]);
  }
  const chosen: T[] = [];
  for (let turn = 0; chosen.length < most && chosen.length < all.length; turn += 1) {
    for (const folder of folders.values()) {
      const one = folder[turn];
      if (one && chosen.length < most) chosen.push(one);
    }
  }
  return chosen;
}

/** Goes to a page as a link does, and waits until it shows what it has; says what is wrong with it. */
async function visit(page: Page, id: number, name: string): Promise<string | null> {
  await page.evaluate((hash) => (location.hash = hash), `/s/${id}/${name}`);
  const settled = await page
    .waitForFunction(
      ([name, timeline]) => {
        const main = document.querySelector("main");
        if (!main || !location.hash.includes(name)) return false;
        const box = main.querySelector(".problem[role=alert]");
        if (box) return `shows an error: ${box.textContent}`;
        if (main.querySelector(".skeleton, .progress")) return false;
        if (timeline && main.querySelector(".plot") && !window.__stepscopeTimeline?.complete()) return false;
        return main.innerText.trim().length > 20 ? "well" : false;
      },
      [`/s/${id}/${name}`, name === "timeline"] as const,
      { timeout: PATIENCE_MS, polling: 20 },
    )
    .then(
      (found) => found.jsonValue(),
      () => "shows nothing, or never ends loading",
    );
  return settled === "well" ? null : String(settled);
}

test("every page of every recording shows something, and no error", async () => {
  const { sessions } = await ask<Sessions>("sessions");
  const views = await ask<ViewInfo[]>("views");
  const names = [...OTHERS, ...views.map((view) => view.name)];
  const chosen = everything ? sessions : sample(sessions, SAMPLE);
  expect(chosen.length).toBeGreaterThan(5);
  const { page, wrongs, close } = await open(browser, server.address);
  const faults: string[] = [];
  let walked = 0;
  const began = performance.now();
  for (const session of chosen) {
    if (!(await readable(session.id))) continue;
    walked += 1;
    for (const name of names) {
      const fault = await visit(page, session.id, name);
      if (fault) faults.push(`${name} of ${session.path} ${fault}`);
      faults.push(...wrongs.splice(0).map((wrong) => `${name} of ${session.path}: ${wrong}`));
    }
  }
  console.log(
    `walked through ${names.length} pages of ${walked} recordings in ${((performance.now() - began) / 1000).toFixed(1)} s`,
  );
  expect(faults).toEqual([]);
  expect(walked).toBeGreaterThan(5);
  await close();
}, 1_800_000);

test("the walk notices a page that fails", async () => {
  const { page, close } = await open(browser, server.address);
  await page.route("**/api/s/*/view/ops*", (route) =>
    route.fulfill({ status: 500, json: { error: { what: "this view failed", found: "", todo: "", hints: [] } } }),
  );
  const { sessions } = await ask<Sessions>("sessions");
  const [first] = sample(sessions, 1);
  expect(first && (await readable(first.id))).toBe(true);
  expect(await visit(page, first?.id ?? 0, "ops")).toMatch(/this view failed/i);
  await close();
});
