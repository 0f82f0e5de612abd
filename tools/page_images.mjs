// Pictures of every page for docs/page.md, from the fixtures, in headless Chromium.
//
//   node tools/page_images.mjs [--binary target/debug/stepscope] [--out docs/images] [--only NAME] [--curves LOGDIR]
//
// LOGDIR: event files, e.g. of a Keras fit with the TensorBoard callback, for the picture of the curves.
// What the fixtures do not have is simulated: `scene:NAME` is a run that the example `scene` of crates/testkit writes.
// Needs Chromium and the packages of ui/ (`npm ci` there). Run it after a change of what pages look like, and look at them.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const { chromium } = createRequire(new URL("../ui/package.json", import.meta.url))("playwright-core");
const root = new URL("../", import.meta.url).pathname;
const option = (name, usual) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : usual);
const binary = option("--binary", `${root}target/debug/stepscope`);
const out = option("--out", `${root}docs/images`);
const cache = mkdtempSync(join(tmpdir(), "stepscope-images-"));

// The name of the picture, the fixture, the page, and what to do before it is taken.
const row = (page) => page.locator("tbody tr:not([aria-hidden])").first().click();
const PICTURES = [
  ["home", "*", "home", async (page) => page.waitForFunction(() => !/verdicts/.test(document.querySelector("main").innerText), null, { timeout: 120_000 })],
  ["steps", "tf-input-bound", "steps"],
  ["ops", "tf-train", "ops", row],
  ["scopes", "tf-train", "scopes"],
  ["functions", "tf-train", "functions"],
  ["input", "tf-input-bound", "input"],
  ["inference", "scene:requests", "inference"],
  ["critical-path", "scene:ranks", "path"],
  ["ranks", "scene:ranks", "timeline?view=175000000~215000000&path=critical", async (page) => page.getByText(/Critical path of step/).waitFor()],
  ["memory", "tf-train", "memory"],
  ["devices", "torch-train", "devices"],
  ["kernels", "nsys-tables", "kernels"],
  ["health", "tf-input-bound", "health"],
  ["model", "tf-session", "model"],
  ["compare", "tf-input-bound,tf-train", "compare"],
  ["sql", "tf-train", "sql"],
  ["fleet", "*", "fleet"],
  ["curves", option("--curves") && resolve(option("--curves")), "curves"],
].filter(([name, fixture]) => fixture && (!option("--only") || option("--only") === name));

/** A simulated run, in a folder of its own. */
function scene(name) {
  const folder = join(cache, name);
  execFileSync("cargo", ["run", "-q", "-p", "stepscope-testkit", "--example", "scene", "--", name, folder], { cwd: root });
  return folder;
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
for (const [name, fixture, where, act] of PICTURES) {
  const folders = fixture.startsWith("scene:") ? [scene(fixture.slice(6))] : fixture === "*" ? readdirSync(`${root}fixtures`).filter((one) => !one.includes(".") && one !== "tables") : fixture.split(",");
  const child = spawn(binary, ["serve", ...folders.map((folder) => resolve(`${root}fixtures`, folder)), "--port", "0"], { cwd: root, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, XDG_CACHE_HOME: cache } });
  const address = await new Promise((found) => {
    let said = "";
    const listen = (chunk) => {
      said += chunk;
      const address = /http:\/\/\S+/.exec(said);
      if (address) found(address[0].replace(/\/$/, ""));
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
  });
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  await page.goto(`${address}/#/s/0/${where}`);
  await page.locator("main h1, main h2").first().waitFor();
  await page.waitForTimeout(1500);
  if (act) await act(page);
  await page.waitForTimeout(1500);
  await page.screenshot({ path: `${out}/page-${name}.png` });
  await page.close();
  child.kill("SIGINT");
}
await browser.close();
rmSync(cache, { recursive: true });
