import { defineConfig } from "vitest/config";

/** End-to-end tests: a real server and a real browser, so one file at a time and with patience. */
export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    fileParallelism: false,
  },
});
