import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

/** While developing, `npm run dev` shows the page and passes its questions on to a running `stepscope serve`. */
const server = process.env.STEPSCOPE_SERVER ?? "http://127.0.0.1:6200";

export default defineConfig({
  plugins: [svelte()],
  base: "./",
  build: { target: "es2022", assetsInlineLimit: 0, cssCodeSplit: false, reportCompressedSize: false },
  server: { host: "127.0.0.1", proxy: { "/api": { target: server, changeOrigin: true } } },
});
