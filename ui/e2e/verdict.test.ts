/** The answer is the headline, with what makes it less certain beside it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fixtures, open, serve, shots, stage, stumbles } from "./support";

const on = stage();

/** PyTorch's own format: so many steps of one op each. */
function trace(steps: number): string {
  const slice = (name: string, cat: string, ts: number, dur: number) => ({
    ph: "X",
    name,
    cat,
    pid: 7,
    tid: 7,
    ts,
    dur,
  });
  const events = Array.from({ length: steps }, (_, step) => step * 10_000).flatMap((at, step) => [
    slice(`ProfilerStep#${step}`, "user_annotation", at, 10_000),
    slice("aten::mm", "cpu_op", at + 10, 9_900),
  ]);
  return JSON.stringify({ schemaVersion: 1, traceEvents: events });
}

test("an answer from two steps says that it is not proven", async () => {
  const folder = mkdtempSync(join(tmpdir(), "stepscope-e2e-"));
  writeFileSync(join(folder, "host_1.1.pt.trace.json"), trace(2));
  const server = await serve("serve", folder);
  const { page, wrongs, close } = await open(on.browser, server.address);
  const verdict = page.getByRole("region", { name: /^Compute-bound/ });
  await verdict.getByText("from 2 steps: not proven").waitFor();
  expect(await verdict.getByRole("heading", { level: 1 }).textContent()).not.toMatch(/too few/i);
  // What to do about it stands among the findings.
  await page
    .getByRole("region", { name: "Other findings" })
    .getByText(/Too few steps/)
    .first()
    .waitFor();
  const figures = page.getByRole("region", { name: "Step time" });
  expect(await figures.innerText()).not.toMatch(/p90|p99|percentile/);
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}verdict-few-steps.png`, fullPage: true });
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

test("other findings come worst first", async () => {
  const server = await serve("serve", `${fixtures}/torch-plain`);
  const { page, wrongs, close } = await open(on.browser, server.address);
  const cards = page.getByRole("region", { name: "Other findings" }).getByRole("article");
  await cards.nth(1).waitFor();
  const severities = await cards.evaluateAll((all) =>
    all.map((card) => ["critical", "warning", "info"].findIndex((one) => card.classList.contains(one))),
  );
  expect(severities).toEqual([...severities].sort());
  expect(new Set(severities).size).toBeGreaterThan(1);
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("ranges of the program stand below the breakdown", async () => {
  const folder = mkdtempSync(join(tmpdir(), "stepscope-e2e-"));
  const range = (name: string, ts: number, dur: number) => ({
    ph: "X",
    name,
    cat: "user_annotation",
    pid: 7,
    tid: 7,
    ts,
    dur,
  });
  const events = [
    range("read_points", 0, 10_000),
    range("find_centers", 10_000, 60_000),
    range("write_centers", 70_000, 30_000),
  ];
  writeFileSync(join(folder, "host_1.1.pt.trace.json"), JSON.stringify({ schemaVersion: 1, traceEvents: events }));
  const server = await serve("serve", folder);
  const { page, wrongs, close } = await open(on.browser, server.address);
  const ranges = page.getByRole("list", { name: "The program's own ranges" });
  await ranges.waitFor();
  expect(await ranges.getByRole("listitem").allInnerTexts()).toEqual([
    expect.stringMatching(/find_centers\s+60\.0 %\s+60\.0 ms/),
    expect.stringMatching(/write_centers\s+30\.0 %\s+30\.0 ms/),
    expect.stringMatching(/read_points\s+10\.0 %\s+10\.0 ms/),
  ]);
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}verdict-ranges.png`, fullPage: true });
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
  rmSync(folder, { recursive: true });
});
