import { expect, it } from "vitest";
import { bySeverity } from "./severity";

it("findings come worst first, and in the server's order otherwise", () => {
  const found = (["info", "warning", "critical", "warning"] as const).map((severity, at) => ({ severity, at }));
  expect(bySeverity(found).map((one) => one.at)).toEqual([2, 1, 3, 0]);
});
