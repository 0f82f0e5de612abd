import { expect, test } from "vitest";
import { workWords } from "./words";

const none = { kernels: null, kernelMs: null, streams: null, concurrency: null, bytesIn: null, bytesOut: null };

test("one stream is not said to run concurrently", () => {
  expect(workWords({ ...none, kernels: 300, kernelMs: 7.9, streams: 1, concurrency: 1 })).toBe(
    "300 kernels, 7.90 ms each · 1 stream",
  );
  expect(workWords({ ...none, streams: 4, concurrency: 1.5, bytesIn: 2_000_000 })).toBe(
    "4 streams · 1.50 of them at once · 2.00 MB copied in",
  );
  expect(workWords(none)).toBe("");
});
