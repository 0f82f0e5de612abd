/** What changes while the page is open: a server that stops and comes back, files that are still being written, and the order of two recordings. */
import { copyFileSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { fixtures, folders, open, serve, serveAt, shots, stage } from "./support";

const PROFILE = "plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb";
const on = stage();
const folder = folders();

/** A session of a log directory, copied from a fixture. */
function session(logs: string, stamp: string, fixture: string): string {
  const place = join(logs, "plugins", "profile", stamp);
  mkdirSync(place, { recursive: true });
  copyFileSync(`${fixtures}/${fixture}/${PROFILE}`, join(place, "trainer.xplane.pb"));
  return join(place, "trainer.xplane.pb");
}

test("a stopped server is named as such, and the page goes on when it is back", async () => {
  const server = await serve("serve", `${fixtures}/tf-input-bound`);
  const { page, close } = await open(on.browser, server.address);
  await page.getByRole("heading", { level: 1, name: /^Input-bound/ }).waitFor();
  await server.stop();
  const pages = page.getByRole("navigation", { name: "Pages" });
  for (const name of ["Memory", "Ops", "Timeline"]) {
    await pages.getByRole("link", { name, exact: true }).click();
    await page.getByRole("alert").getByText("The server is not responding").waitFor();
    expect(await page.locator("main").innerText()).not.toMatch(/module|import|fetch/i);
  }
  await page.screenshot({ path: `${shots}server-stopped.png` });
  await pages.getByRole("link", { name: "Ops", exact: true }).click();
  const again = await serveAt(new URL(server.address).port, "serve", `${fixtures}/tf-input-bound`);
  await page.getByRole("grid", { name: "Ops" }).waitFor();
  await close();
  await again.stop();
});

test("a half-written recording heals when it is complete", async () => {
  const logs = folder();
  const file = session(logs, "2026_01_01_00_00_00", "tf-input-bound");
  const whole = readFileSync(file);
  writeFileSync(file, whole.subarray(0, 150_000));
  const server = await serve("serve", logs);
  const { page, wrongs, close } = await open(on.browser, server.address);
  const damage = page.getByRole("alert").getByText(/This recording is damaged/);
  await damage.waitFor();
  writeFileSync(file, whole);
  await damage.waitFor({ state: "detached", timeout: 60_000 });
  await page.getByRole("heading", { level: 1, name: /^Input-bound/ }).waitFor();
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("two recordings are compared as given on the command line, whatever their times", async () => {
  // Recorded after the other, and the newer file: neither counts.
  const [before, after] = [folder(), folder()];
  session(before, "2026_01_02_00_00_00", "tf-input-bound");
  utimesSync(session(after, "2026_01_01_00_00_00", "tf-train"), new Date(0), new Date(0));
  const server = await serve("serve", before, after);
  for (const shown of [0, 1]) {
    const { page, wrongs, close } = await open(on.browser, `${server.address}/#/s/${shown}/compare`);
    const chosen = (name: string) => page.getByRole("combobox", { name }).locator("option:checked").textContent();
    await page.getByRole("heading", { level: 1, name: /faster/i }).waitFor();
    expect([await chosen("Before"), await chosen("After")]).toEqual([basename(before), basename(after)]);
    await page.getByRole("button", { name: "Swap before and after" }).click();
    await page.getByRole("heading", { level: 1, name: /slower/i }).waitFor();
    expect([await chosen("Before"), await chosen("After")]).toEqual([basename(after), basename(before)]);
    expect(wrongs).toEqual([]);
    await close();
  }
  await server.stop();
});

test("recordings of one log directory are compared in the order in which they were made", async () => {
  const logs = folder();
  // The names say otherwise.
  session(logs, "2026_01_01_00_00_00", "tf-input-bound");
  session(logs, "2026_01_02_00_00_00", "tf-train");
  const server = await serve("serve", logs);
  const { page, wrongs, close } = await open(on.browser, `${server.address}/#/s/0/compare`);
  await page.getByRole("heading", { level: 1, name: /slower/i }).waitFor();
  expect(await page.getByRole("combobox", { name: "Before" }).locator("option:checked").textContent()).toBe(
    "2026-01-02 00:00:00",
  );
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});
