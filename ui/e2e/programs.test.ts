/** The page of compiled programs: four panes that share one choice, and an address that holds all of it. */
import { expect, test } from "vitest";
import { fixtures, open, serve, shots, stage } from "./support";

const on = stage();

test("panes share the chosen instruction, and the address holds every choice", async () => {
  const server = await serve("serve", `${fixtures}/jax-train`);
  const { page, wrongs, close } = await open(on.browser, `${server.address}/#/s/0/hlo_modules`);
  for (const pane of ["Instructions", "Roofline", "Memory", "Graph", "Instruction"])
    await page.getByRole("region", { name: pane, exact: true }).waitFor();
  const graph = page.getByRole("region", { name: "Graph", exact: true });
  await graph.locator("g.lit").waitFor();
  await page.screenshot({ path: `${shots}/programs.png`, fullPage: true });

  // Another instruction in the graph is chosen everywhere.
  const other = graph.locator("g:not(.lit)[role=button]").first();
  const name = ((await other.getAttribute("aria-label")) ?? "").split(",")[0] ?? "";
  await other.dispatchEvent("click");
  await page
    .getByRole("region", { name: "Instruction", exact: true })
    .getByRole("heading", { name, exact: true })
    .waitFor();
  expect(decodeURIComponent(page.url())).toContain(`op=${name}`);

  const press = (label: string) => page.getByRole("button", { name: label, exact: true }).click();
  await press("Tree");
  await press("Source line");
  await press("Addresses");
  await page.screenshot({ path: `${shots}/programs-tree.png`, fullPage: true });
  await press("At the peak");
  for (const part of ["as=tree", "by=source", "memory=stack"]) expect(page.url()).toContain(part);

  // A link to it shows the same.
  await page.reload();
  await page
    .getByRole("region", { name: "Instruction", exact: true })
    .getByRole("heading", { name, exact: true })
    .waitFor();
  expect(await page.getByRole("button", { name: "Tree", exact: true }).getAttribute("aria-pressed")).toBe("true");
  await page.screenshot({ path: `${shots}/programs-link.png`, fullPage: true });
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});

test("an event on the timeline names its instruction, and leads to its card", async () => {
  const server = await serve("serve", `${fixtures}/jax-train`);
  const { page, wrongs, close } = await open(on.browser, `${server.address}/#/s/0/hlo_ops`);
  await page.getByRole("button", { name: "Find on the timeline" }).click();
  const details = page.getByRole("article", { name: "Selected event" });
  const facts = details.getByRole("table", { name: "Instruction of a compiled program" });
  await facts.waitFor();
  await page.screenshot({ path: `${shots}/timeline-instruction.png` });
  const link = facts.getByRole("link");
  const name = (await link.innerText()).trim();
  await link.click();
  await page
    .getByRole("region", { name: "Instruction", exact: true })
    .getByRole("heading", { name, exact: true })
    .waitFor();
  expect(wrongs).toEqual([]);
  await close();
  await server.stop();
});
