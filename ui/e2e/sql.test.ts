/** The SQL console: a query runs, is part of the address and its history, is drawn, and leads to the timeline. */
import { expect, test } from "vitest";
import { fixtures, open, shots, stage, stumbles } from "./support";

const on = stage("serve", `${fixtures}/tf-input-bound`);

test("a query is answered, drawn, kept in the address, and leads to the timeline", async () => {
  const { page, close } = await open(on.browser, `${on.server.address}/#//sql`);
  await page.getByRole("heading", { level: 1, name: "SQL" }).waitFor();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  const table = page.getByRole("table", { name: "Answer" });
  await table.waitFor();
  expect(await table.locator("tbody tr").count()).toBe(20);
  expect(await page.getByRole("list", { name: "self_ms by name" }).locator("li").count()).toBe(20);
  if (shots) await page.screenshot({ path: `${shots}/sql-bars.png` });
  await page
    .getByLabel("Query")
    .fill("SELECT step, ms(dur) AS input_ms FROM breakdown WHERE category = 'input' AND bottleneck = 1 ORDER BY step");
  await page.getByLabel("Query").press("Control+Enter");
  await page.locator(".u-wrap").first().waitFor();
  expect(page.url()).toContain("input_ms");
  if (shots) await page.screenshot({ path: `${shots}/sql-line.png` });
  await page.goBack();
  await page.getByRole("list", { name: "self_ms by name" }).waitFor();
  await page.getByLabel("Query").fill("SELECT id, name, dur FROM event ORDER BY dur DESC LIMIT 3");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect.poll(() => table.locator("tbody tr").count()).toBe(3);
  expect(await stumbles(page)).toEqual([]);
  await table.locator("tbody button").first().click();
  await expect.poll(() => page.url()).toMatch(/timeline\?.*sel=\d+\.\d+/);
  await close();
});

test("a wrong query says why, and the page stays", async () => {
  const { page, wrongs, close } = await open(
    on.browser,
    `${on.server.address}/#//sql?q=${encodeURIComponent("DROP TABLE event")}`,
  );
  await page.getByText(/only SELECT is allowed/i).waitFor();
  expect(await page.getByLabel("Query").inputValue()).toBe("DROP TABLE event");
  wrongs.length = 0; // The server's 400 is what the test is about.
  await close();
});

test("words are completed, queries are saved, and rows become a track", async () => {
  const { page, wrongs, close } = await open(on.browser, `${on.server.address}/#//sql`);
  const query = page.getByLabel("Query", { exact: true });
  await query.fill("");
  await query.pressSequentially("SELECT name, ts, du");
  await page.getByRole("button", { name: "dur", exact: true }).first().waitFor();
  await query.press("Tab");
  await query.pressSequentially(" FROM event ORDER BY dur DESC LIMIT 5");
  expect(await query.inputValue()).toBe("SELECT name, ts, dur FROM event ORDER BY dur DESC LIMIT 5");
  await page.getByLabel("Name", { exact: true }).fill("longest");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("combobox", { name: "Saved" }).waitFor();
  const tables = page.getByRole("complementary", { name: "Tables" });
  await expect.poll(() => tables.innerText()).toMatch(/event\s+[\d,]+/);
  await query.press("Control+Enter");
  await page.screenshot({ path: `${shots}sql-console.png` });
  await page.getByRole("link", { name: "Show as a track on the timeline" }).click();
  const track = page.getByRole("group", { name: "Rows of the query" });
  await expect.poll(() => track.innerText()).toContain("5 rows");
  await page.screenshot({ path: `${shots}sql-track.png` });
  await track.getByRole("button").click();
  await track.waitFor({ state: "detached" });
  expect(wrongs).toEqual([]);
  await close();
});
