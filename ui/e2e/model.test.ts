/** The model behind runs of classic TensorFlow: its views drawn and as a tree, the graph node by node, the variables. */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { binary, fixtures, open, serve, shots, stage, stumbles } from "./support";

const on = stage("serve", `${fixtures}/tf-session`);

const model = (query = "") => `${on.server.address}/#/s/0/model${query}`;

test("draws the scopes, and the tree says the same", async () => {
  const { page, wrongs, close } = await open(on.browser, model());
  const tree = page.getByRole("treegrid");
  await tree.waitFor();
  expect(await page.getByRole("heading", { level: 1 }).textContent()).toMatch(/nodes, 3 recorded runs/);
  await page
    .getByRole("button", { name: /^conv1: / })
    .first()
    .waitFor();
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}model-flame.png`, fullPage: true });

  await page.getByRole("button", { name: "Treemap" }).click();
  await page
    .getByRole("button", { name: /^gradients: / })
    .first()
    .waitFor();
  await page.screenshot({ path: `${shots}model-treemap.png`, fullPage: true });

  await page.getByRole("combobox", { name: "Measure" }).selectOption("params");
  // The variable and the optimizer's slot.
  await page
    .getByRole("button", { name: /^head: 163,840/ })
    .first()
    .waitFor();
  await tree.getByRole("button", { name: "Parameters" }).click();
  expect(await tree.locator("[aria-sort=ascending], [aria-sort=descending]").count()).toBe(1);
  expect(wrongs).toEqual([]);
  await close();
});

test("opens and closes rows by keyboard, and shows the columns that are picked", async () => {
  const { page, wrongs, close } = await open(on.browser, model());
  const tree = page.getByRole("treegrid");
  await tree.waitFor();
  await page.getByRole("button", { name: "Close all" }).click();
  const rows = () => tree.locator("tbody tr:not([aria-hidden])").count();
  const closed = await rows();
  await tree.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await expect.poll(rows).toBeGreaterThan(closed);
  await page.keyboard.press("ArrowLeft");
  await expect.poll(rows).toBe(closed);
  await page.getByText("Columns", { exact: true }).click();
  await page.getByRole("checkbox", { name: "Peak" }).uncheck();
  expect(await tree.getByRole("columnheader", { name: "Peak" }).count()).toBe(0);
  expect(wrongs).toEqual([]);
  await close();
});

test("filters by expressions, and the command prints the same rows", async () => {
  const { page, wrongs, close } = await open(on.browser, model("?show=head.*&by=params"));
  const tree = page.getByRole("treegrid");
  await tree.waitFor();
  await page.getByText("Print the same in a terminal").click();
  const command = (await page.locator("details.command code").textContent()) ?? "";
  expect(command).toContain("--show_name_regexes 'head.*'");
  const printed = execFileSync("sh", ["-c", command.replace(/^stepscope /, `'${binary()}' `)], { encoding: "utf8" });
  await page.getByRole("button", { name: "Open all" }).click();
  const names =
    printed
      .split("Profile:\n")[1]
      ?.split("\n=====")[0]
      ?.match(/^ +\S+/gm)
      ?.map((name) => name.trim()) ?? [];
  expect(names.length).toBeGreaterThan(1);
  await expect.poll(() => tree.locator("tbody tr:not([aria-hidden])").count()).toBe(names.length);
  const titles = await tree
    .locator("tbody td.name")
    .evaluateAll((cells) => cells.map((cell) => cell.getAttribute("title")?.split(" (")[0]));
  expect(titles.sort()).toEqual(names.sort());

  await page.getByPlaceholder("dense.*,loss/.*").fill("(");
  await page
    .getByText(/regular expression|cannot be read/i)
    .first()
    .waitFor();
  await page.getByPlaceholder("dense.*,loss/.*").fill("nothing");
  await page.getByText(/No name matches/).waitFor();
  // A refused question is an answer, not a fault; the browser logs it all the same.
  expect(wrongs.filter((wrong) => !wrong.includes("400"))).toEqual([]);
  await close();
});

test("a correction shows the fused kernel under its own name", async () => {
  const { page, wrongs, close } = await open(on.browser, model("?tab=op"));
  const tree = page.getByRole("treegrid");
  await tree.waitFor();
  expect(await tree.getByText("_FusedConv2D").count()).toBe(0);
  await page.getByRole("checkbox", { name: /Correct tfprof/ }).check();
  await tree.getByText("_FusedConv2D").first().waitFor();
  await page.screenshot({ path: `${shots}model-ops-fixed.png`, fullPage: true });
  expect(wrongs).toEqual([]);
  await close();
});

test("walks from a node to its inputs and back", async () => {
  const { page, wrongs, close } = await open(on.browser, model("?tab=graph"));
  await page.getByText("Nodes that nobody uses").waitFor();
  await page.getByRole("searchbox", { name: "Find a node" }).fill("head/.*MatMul$");
  const hit = page.getByRole("region", { name: "Found nodes" }).getByRole("button").first();
  await hit.waitFor();
  const name = (await hit.locator("b").textContent()) ?? "";
  await hit.click();
  const node = page.getByRole("region", { name: "Node" });
  await node.getByRole("heading", { name }).waitFor();
  await page.screenshot({ path: `${shots}model-graph.png`, fullPage: true });
  const inputs = page.locator("section", { has: page.getByRole("heading", { name: /^Inputs/ }) });
  const next = (await inputs.getByRole("button").first().locator("b").textContent()) ?? "";
  await inputs.getByRole("button").first().click();
  await node.getByRole("heading", { name: next }).waitFor();
  await page.goBack();
  await node.getByRole("heading", { name }).waitFor();
  expect(await stumbles(page)).toEqual([]);
  expect(wrongs).toEqual([]);
  await close();
});

test("lists the variables with their share", async () => {
  const { page, wrongs, close } = await open(on.browser, model("?tab=variables"));
  const table = page.getByRole("grid", { name: "Variables" });
  await table.waitFor();
  const first = await table.locator("tbody tr:not([aria-hidden])").first().textContent();
  expect(first).toMatch(/head\/kernel.*8192 × 10.*float32.*81,920/);
  expect(await stumbles(page)).toEqual([]);
  await page.screenshot({ path: `${shots}model-variables.png`, fullPage: true });
  expect(wrongs).toEqual([]);
  await close();
});

test.each(["", "?as=treemap", "?tab=code", "?tab=graph&node=loss/Mean", "?tab=variables"])(
  "is as readable in the dark and on a phone: %s",
  async (query) => {
    const name = query.replace(/\W+/g, "-") || "-scope";
    const dark = await open(on.browser, model(query), { colorScheme: "dark" });
    await dark.page.getByRole("heading", { level: 1 }).waitFor();
    await dark.page.waitForLoadState("networkidle");
    expect(await stumbles(dark.page)).toEqual([]);
    await dark.page.screenshot({ path: `${shots}model-dark${name}.png`, fullPage: true });
    await dark.close();

    const phone = await open(on.browser, model(query), { viewport: { width: 390, height: 800 }, hasTouch: true });
    await phone.page.getByRole("heading", { level: 1 }).waitFor();
    await phone.page.waitForLoadState("networkidle");
    const overflow = await phone.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(overflow, "the page is wider than the phone").toBeLessThanOrEqual(0);
    await phone.page.screenshot({ path: `${shots}model-phone${name}.png`, fullPage: true });
    await phone.close();
  },
);

test("a recording of another kind says how to get there", async () => {
  const other = await serve("serve", `${fixtures}/tf-train`);
  const { page, wrongs, close } = await open(on.browser, `${other.address}/#/s/0/model`);
  await page.getByText("The model is known for runs of classic TensorFlow").waitFor();
  expect(wrongs).toEqual([]);
  await close();
  await other.stop();
});
