/** The page shows what the command line reports: every figure of the overview, and the rows of every view. */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { ms, percent } from "../src/words/format";
import { binary, fixtures, open, serve, stage } from "./support";

interface Report {
  steps: { count: number; mean_ms: number | null; p90_ms: number | null; stddev_ms: number | null };
  breakdown: { ms_per_step: number; fraction: number }[];
  findings: { summary: string; gain_ms_per_step: number | null }[];
  devices: { id: string; busy_fraction: number | null }[];
}

const on = stage();

const told = <T>(...args: string[]): T =>
  JSON.parse(
    execFileSync(binary(), [...args, "--json"], { stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 28 }).toString(),
  ) as T;
/** Quotes and spaces differ between a terminal and a page. */
const plain = (text: string) => text.replaceAll("`", "").replace(/\s+/g, " ").toLowerCase();

test.each(["tf-input-bound", "tf-train", "jax-train", "torch-train", "keras-fit"])(
  "%s: the figures of the overview are those of the report",
  async (fixture) => {
    const path = `${fixtures}/${fixture}`;
    const report = told<Report>("report", path);
    const server = await serve("serve", path);
    const { page, wrongs, close } = await open(on.browser, server.address);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.locator("#environment-title").waitFor();
    const shown = plain(await page.locator("main").innerText());
    const { steps } = report;
    expect(shown).toContain(plain(ms(steps.mean_ms)));
    expect(shown).toContain(plain(`± ${ms(steps.stddev_ms)}`));
    for (const row of report.breakdown) {
      expect(shown).toContain(plain(ms(row.ms_per_step)));
      expect(shown).toContain(plain(percent(row.fraction)));
    }
    for (const finding of report.findings) {
      expect(shown).toContain(plain(finding.summary));
      if (finding.gain_ms_per_step) expect(shown).toContain(plain(`at most ${ms(finding.gain_ms_per_step)}`));
    }
    for (const device of report.devices.slice(0, 8))
      if (device.busy_fraction !== null) expect(shown).toContain(plain(percent(device.busy_fraction)));
    expect(wrongs).toEqual([]);
    await close();
    await server.stop();
  },
);

test.each(["tf-input-bound", "torch-train"])("%s: every view has the rows of its command", async (fixture) => {
  const path = `${fixtures}/${fixture}`;
  const server = await serve("serve", path);
  const { page, wrongs, close } = await open(on.browser, server.address);
  await page.getByRole("heading", { level: 1 }).waitFor();
  const views = (await (await fetch(`${server.address}/api/views`)).json()) as { name: string }[];
  for (const { name } of views) {
    // The views of compiled programs are commands below `hlo`.
    const command = name.startsWith("hlo_") ? ["hlo", name.slice(4)] : [name];
    const { rows } = told<{ rows: Record<string, unknown>[] }>(...command, path);
    const view = (await (await fetch(`${server.address}/api/s/0/view/${name}`)).json()) as {
      rows: number;
      columns: { key: string; values: unknown[] }[];
    };
    expect([name, view.rows]).toEqual([name, rows.length]);
    for (const column of view.columns) {
      const said = rows.map((row) => row[column.key] ?? null);
      expect([name, column.key, column.values]).toEqual([name, column.key, said]);
    }
  }
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});
