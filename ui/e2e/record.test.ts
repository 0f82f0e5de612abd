/** Recording from the page: off by default, with progress, cancelled, failed, opened; and only from the page itself. */
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { profiler } from "./profiler";
import { fixtures, folders, open, serve, shots, stage, stumbles } from "./support";

const on = stage();
const folder = folders();
const PROFILE = `${fixtures}/tf-train/plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb`;

test("without a folder to write to there is no button", async () => {
  const server = await serve("serve", `${fixtures}/tf-train`);
  const { page, wrongs, close } = await open(on.browser, server.address);
  await page.getByRole("link", { name: "Overview" }).waitFor();
  expect(await page.getByRole("button", { name: "Record" }).count()).toBe(0);
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("a capture shows its progress and opens", async () => {
  const [logs, program] = [folder(), await profiler(PROFILE, 1200)];
  const server = await serve("serve", logs, "--record-into", logs);
  const { page, wrongs, close } = await open(on.browser, server.address);
  await page.getByText("No recordings found yet").waitFor();
  await page.getByRole("button", { name: "Record" }).click();
  await page.getByLabel("Address").fill(program.address);
  await page.getByLabel("Seconds").fill("1");
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}record-form.png` });
  await page.getByRole("button", { name: "Start recording" }).click();
  await page.getByText(/^Recording, \d+ s/).waitFor();
  await page.screenshot({ path: `${shots}record-progress.png` });
  await expect.poll(() => page.url(), { timeout: 60_000 }).toMatch(/overview/);
  await page.getByText("Show on the timeline").first().waitFor();
  expect(program.asked()).toBe(1);
  expect(readdirSync(`${logs}/plugins/profile`)).toHaveLength(1);
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
  await program.stop();
});

test("a capture is cancelled, and one that fails says why", async () => {
  const [logs, program] = [folder(), await profiler(PROFILE, Infinity)];
  const server = await serve("serve", `${fixtures}/tf-train`, "--record-into", logs);
  const { page, wrongs, close } = await open(on.browser, server.address, {
    viewport: { width: 390, height: 800 },
  });
  await page.getByRole("button", { name: "Record" }).click();
  await page.getByLabel("Address").fill(program.address);
  await page.getByRole("button", { name: "Start recording" }).click();
  await expect.poll(() => program.asked()).toBe(1);
  await page.screenshot({ path: `${shots}record-390.png` });
  await page.getByRole("button", { name: "Cancel recording" }).click();
  await page.getByRole("button", { name: "Start recording" }).waitFor();
  await program.stop();
  await page.getByRole("button", { name: "Start recording" }).click();
  await page
    .getByRole("alert")
    .getByText(/nothing is listening/i)
    .waitFor();
  await page.screenshot({ path: `${shots}record-failed-390.png` });
  expect(readdirSync(logs)).toEqual([]);
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("a page of another origin cannot record, whatever it sends", async () => {
  const [logs, program] = [folder(), await profiler(PROFILE, 0)];
  const server = await serve("serve", logs, "--record-into", logs);
  const [address = "", token = ""] = server.address.split("/?token=");
  const foreign = createServer((_, response) => response.setHeader("content-type", "text/html").end("<h1>other</h1>"));
  await new Promise<void>((done) => foreign.listen(0, "127.0.0.1", () => done()));
  const context = await on.browser.newContext();
  const page = await context.newPage();
  // The browser has the token in a cookie, as after a visit.
  await page.goto(server.address);
  await page.goto(`http://127.0.0.1:${(foreign.address() as AddressInfo).port}/`);
  const tried = await page.evaluate(
    async ({ address, token, target }) => {
      const url = `${address}/api/record/start?address=${target}&duration_ms=100`;
      const ways: RequestInit[] = [
        { method: "POST", mode: "no-cors", credentials: "include" },
        { method: "POST", credentials: "include" },
        { method: "POST", credentials: "include", headers: { "x-stepscope-action": "1", "x-stepscope-token": token } },
      ];
      const results = ways.map((way) =>
        fetch(url, way).then(
          ({ type }) => type,
          () => "refused",
        ),
      );
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action: `${url}&token=${token}`, target: "there" });
      document.body.append(Object.assign(document.createElement("iframe"), { name: "there" }), form);
      form.submit();
      return Promise.all(results);
    },
    { address, token, target: program.address },
  );
  expect(tried).toEqual(["refused", "refused", "refused"]);
  await page.waitForTimeout(500);
  const about = (await (await fetch(`${address}/api/record`, { headers: { "x-stepscope-token": token } })).json()) as {
    number: number;
  };
  expect([about.number, program.asked(), readdirSync(logs).length]).toEqual([0, 0, 0]);
  await context.close();
  foreign.close();
  await server.stop();
  await program.stop();
});
