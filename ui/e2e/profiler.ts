/** A profiler server as TensorFlow and JAX start it in a program: gRPC, one call, a profile from a file. */
import { readFileSync } from "node:fs";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";

export interface Profiler {
  address: string;
  /** Requests for a profile so far. */
  asked(): number;
  stop(): Promise<void>;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (; value > 0x7f; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80);
  return [...bytes, value];
}

/** Answers after `delay` milliseconds; never if that is infinite. */
export function profiler(file: string, delay: number): Promise<Profiler> {
  const profile = readFileSync(file);
  const message = Buffer.concat([Buffer.from([(8 << 3) | 2, ...varint(profile.length)]), profile]);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  let asked = 0;
  const open = new Set<ServerHttp2Stream>();
  const server = createServer();
  server.on("stream", (stream, headers) => {
    open.add(stream);
    stream.on("close", () => open.delete(stream));
    stream.on("error", () => {});
    stream.resume();
    if (headers[":path"] !== "/tensorflow.ProfilerService/Profile") {
      stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "12" }, { endStream: true });
      return;
    }
    asked++;
    if (!Number.isFinite(delay)) return;
    setTimeout(() => {
      if (stream.destroyed) return;
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(Buffer.concat([head, message]));
    }, delay);
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () =>
      resolve({
        address: `localhost:${(server.address() as AddressInfo).port}`,
        asked: () => asked,
        stop: () =>
          new Promise((done) => {
            open.forEach((stream) => stream.destroy());
            server.close(() => done());
          }),
      }),
    );
  });
}
