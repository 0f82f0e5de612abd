/** What all end-to-end tests share: a real `stepscope serve`, Debian's Chromium, and an eye on everything that must
 * not happen (requests to another origin, console errors). */
import axe from "axe-core";
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The folder with the project's own small recordings. */
export const fixtures = `${root}fixtures`;

/** Pictures of the pages, made anew by each run. */
export const shots = fileURLToPath(new URL("../test-results/", import.meta.url));

/** The program that is tested. */
export function binary(): string {
  const told = process.env.STEPSCOPE_BIN;
  const built = [told, `${root}target/debug/stepscope`, `${root}target/release/stepscope`];
  const found = built.find((path) => path !== undefined && existsSync(path));
  if (!found) throw new Error("no stepscope to test: run `cargo build` first, or set STEPSCOPE_BIN");
  return found;
}

function browserPath(): string {
  const told = process.env.CHROMIUM;
  const usual = [told, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const found = usual.find((path) => path !== undefined && existsSync(path));
  if (!found) throw new Error("no Chromium found: install it (`apt-get install chromium`), or set CHROMIUM");
  return found;
}

/** A running server. */
export interface Served {
  address: string;
  stop(): Promise<void>;
}

/** Starts the server on a free port and waits until it says where it listens. */
export function serve(...args: string[]): Promise<Served> {
  return serveAt("0", ...args);
}

/** The same on a certain port. */
export async function serveAt(port: string, ...args: string[]): Promise<Served> {
  const child = spawn(binary(), [...args, "--port", port], { stdio: ["ignore", "pipe", "pipe"] });
  const address = await addressOf(child);
  return { address, stop: () => stop(child) };
}

function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    const listen = (chunk: Buffer): void => {
      said += chunk.toString();
      const found = /http:\/\/\S+/.exec(said);
      if (found) resolve(found[0].replace(/\/$/, ""));
    };
    child.stdout?.on("data", listen);
    child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    child.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
  });
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.removeAllListeners("exit");
    child.on("exit", () => resolve());
    child.kill("SIGINT");
  });
}

/** Chromium without the parts that talk to the outside by themselves. */
export function launch(): Promise<Browser> {
  mkdirSync(shots, { recursive: true });
  return chromium.launch({
    executablePath: browserPath(),
    args: [
      "--no-sandbox",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** What the tests of a file share. */
export interface Stage {
  browser: Browser;
  server: Served;
}

/** A browser for the tests of a file, and a server if there are arguments for one. Both end with the last test. */
export function stage(...args: string[]): Stage {
  const made = {} as Stage;
  let server: Served | undefined;
  beforeAll(async () => {
    made.browser = await launch();
    if (args.length > 0) made.server = server = await serve(...args);
  });
  afterAll(async () => {
    await made.browser.close();
    await server?.stop();
  });
  return made;
}

/** Makes folders that are removed after the test. */
export function folders(): () => string {
  const made: string[] = [];
  afterEach(() => made.splice(0).forEach((folder) => rmSync(folder, { recursive: true })));
  return () => {
    const folder = mkdtempSync(join(tmpdir(), "stepscope-e2e-"));
    made.push(folder);
    return folder;
  };
}

/** Serious faults that a screen reader or a keyboard would stumble over. */
export async function stumbles(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = found.violations.filter((one) => one.impact === "serious" || one.impact === "critical");
  return serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" | ")}`);
}

declare global {
  interface Window {
    axe: typeof axe;
  }
}

/** A page, and what went wrong on it so far. */
export interface Watched {
  page: Page;
  /** Requests to another origin, console errors, uncaught exceptions. Empty when all is well. */
  wrongs: string[];
  close(): Promise<void>;
}

/** Opens a page that is watched from its first byte. */
export async function open(browser: Browser, address: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  // A busy machine may take its time; what never comes is found all the same.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const wrongs: string[] = [];
  const origin = new URL(address).origin;
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith("data:") && !url.startsWith("blob:")) {
      wrongs.push(`request to ${url}`);
    }
  });
  page.on("console", (message) => {
    if (message.type() === "error") wrongs.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrongs.push(`exception: ${error.message}`));
  await page.goto(address);
  return { page, wrongs, close: () => context.close() };
}
