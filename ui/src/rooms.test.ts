import { describe, expect, it } from "vitest";
import { importsOf, ROOMS, wrongImport } from "./rooms";

const SOURCES = import.meta.glob<string>("./**/*.{ts,svelte}", { query: "?raw", import: "default", eager: true });

describe("rooms", () => {
  it("finds imports in the wrong direction", () => {
    expect(wrongImport("pages/ops/Ops.svelte", "table/Table.svelte")).toBeUndefined();
    expect(wrongImport("server/ask.ts", "pages/curves/frame")).toBeDefined();
    expect(wrongImport("parts/Prose.svelte", "table/view")).toBeDefined();
    expect(wrongImport("pages/model/Model.svelte", "pages/overview/Damage.svelte")).toBeDefined();
    expect(wrongImport("pages/model/Model.svelte", "pages/model/types")).toBeUndefined();
    expect(wrongImport("pages/own.ts", "pages/ops/Ops.svelte")).toBeUndefined();
    expect(wrongImport("pages/ops/Ops.svelte", "pages/own")).toBeDefined();
    expect(wrongImport("timeline/panels/Stage.svelte", "timeline/draw/engine")).toBeUndefined();
    expect(wrongImport("timeline/model/tiles.ts", "timeline/draw/scene")).toBeDefined();
    expect(wrongImport("shell/Header.svelte", "App.svelte")).toBeDefined();
    expect(wrongImport("App.svelte", "shell/Header.svelte")).toBeUndefined();
    expect(wrongImport("news/News.svelte", "server/api")).toContain("not in the list");
  });

  it("reads imports of all kinds", () => {
    const text = `import type { A } from "../server/types";\nimport "./app.css";\nconst b = () => import("./b/B.svelte");\nexport * from "./c";`;
    expect(importsOf("pages/own.ts", text)).toEqual(["server/types", "pages/app.css", "pages/b/B.svelte", "pages/c"]);
  });

  it("examines every file", () => {
    const files = Object.entries(SOURCES).map(([path, text]) => [path.replace("./", ""), text] as const);
    const code = files.filter(([file]) => !file.endsWith(".test.ts"));
    expect(new Set(code.flatMap(([file]) => (file.includes("/") ? [file.split("/")[0]] : [])))).toEqual(new Set(ROOMS));
    expect(code.flatMap(([file, text]) => importsOf(file, text).flatMap((to) => wrongImport(file, to) ?? []))).toEqual(
      [],
    );
  });
});
