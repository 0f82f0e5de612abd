import { get } from "svelte/store";
import { afterEach, expect, it, vi } from "vitest";
import { api } from "./api";
import { ask, forget, Problem, progress } from "./ask";

const answer = (status: number, body: unknown) => new Response(JSON.stringify(body), { status });
const server = (...answers: (Response | Error)[]) => {
  const fetch = vi.fn(() => {
    const next = answers.shift() ?? new Error("asked too often");
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
  });
  vi.stubGlobal("fetch", fetch);
  return fetch;
};

afterEach(() => {
  vi.unstubAllGlobals();
  [1, 2, 3, 4, 5, 6].forEach(forget);
});

it("asks again while a session is being opened, and tells how far it is", async () => {
  const loading = { stage: "reading", bytes: 5, total_bytes: 10, events: 3, hosts: 1, hosts_done: 0 };
  const seen: number[] = [];
  const stop = progress.subscribe((all) => seen.push(all.get(3)?.bytes ?? -1));
  const fetch = server(
    answer(202, { loading }),
    answer(202, { loading: { ...loading, bytes: 9 } }),
    answer(200, { rows: 1 }),
  );
  expect(await ask("s/3/report")).toEqual({ rows: 1 });
  stop();
  expect(fetch).toHaveBeenCalledTimes(3);
  expect(seen).toEqual([-1, 5, 9, -1]);
  expect(get(progress).size).toBe(0);
});

it("turns an error into a problem with the server's words", async () => {
  server(answer(422, { error: { what: "cannot be read", found: "text", todo: "record again", hints: ["a"] } }));
  const problem = await ask("s/1/report").catch((error: unknown) => error);
  expect(problem).toBeInstanceOf(Problem);
  expect(problem).toMatchObject({
    what: "cannot be read",
    found: "text",
    todo: "record again",
    hints: ["a"],
    status: 422,
  });
});

it("says so when the server is gone, or answers nonsense", async () => {
  server(new TypeError("Failed to fetch"));
  await expect(ask("sessions")).rejects.toMatchObject({ what: "The server is not responding", status: 0 });
  server(new Response("<html>", { status: 502 }));
  await expect(ask("sessions")).rejects.toMatchObject({ status: 502 });
});

it("keeps what was answered about a session, but not for ever", async () => {
  const fetch = server(...[1, 2, 3, 4, 5, 6].map((session) => answer(200, { session })));
  await api.report(1);
  await api.report(1);
  expect(fetch).toHaveBeenCalledTimes(1);
  for (const session of [2, 3, 4, 5]) await api.report(session);
  await api.report(1);
  expect(fetch).toHaveBeenCalledTimes(6);
});

it("stops when the page changes", async () => {
  const loading = { stage: "queued", bytes: 0, total_bytes: 1, events: 0, hosts: 1, hosts_done: 0 };
  const fetch = server(answer(202, { loading }));
  const controller = new AbortController();
  const asked = ask("s/2/report", controller.signal);
  setTimeout(() => controller.abort(), 5);
  await expect(asked).rejects.toBeTruthy();
  expect(fetch).toHaveBeenCalledTimes(1);
  expect(get(progress).size).toBe(0);
});

it("takes over what was asked for before, once", async () => {
  vi.stubGlobal("window", {
    __stepscopeEarly: new Map([["api/sessions", Promise.resolve(answer(200, { current: 7 }))]]),
  });
  const fetch = server(answer(200, { current: 8 }));
  expect((await api.sessions()).current).toBe(7);
  expect(fetch).not.toHaveBeenCalled();
  expect((await api.sessions()).current).toBe(8);
});
