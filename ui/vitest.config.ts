import { mergeConfig } from "vitest/config";
import page from "./vite.config.ts";

/** Unit tests. */
export default mergeConfig(page, { test: { include: ["src/**/*.test.ts"] } });
