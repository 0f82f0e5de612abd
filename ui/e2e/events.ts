/** Event files, record by record, as programs log them for TensorBoard. */
import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  return crc >>> 0;
});

function masked(bytes: Buffer): Buffer {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = ((TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8)) >>> 0;
  crc = (crc ^ 0xffffffff) >>> 0;
  const out = Buffer.alloc(4);
  out.writeUInt32LE((((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0);
  return out;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return Buffer.from([...bytes, left]);
    bytes.push((left % 128) | 0x80);
  }
}

const field = (key: number, bytes: Buffer): Buffer => Buffer.concat([Buffer.from([key]), varint(bytes.length), bytes]);

function double(key: number, value: number): Buffer {
  const out = Buffer.alloc(9);
  out[0] = key;
  out.writeDoubleLE(value, 1);
  return out;
}

/** One record with one number. */
export function scalar(wallS: number, step: number, tag: string, value: number): Buffer {
  const number = Buffer.alloc(5);
  number[0] = 0x15;
  number.writeFloatLE(value, 1);
  return record(wallS, step, tag, number);
}

/** One record with a distribution, as PyTorch writes it: upper bounds and counts. */
export function histogram(wallS: number, step: number, tag: string, limits: number[], counts: number[]): Buffer {
  const packed = (values: number[]) => Buffer.concat(values.map((value) => double(0, value).subarray(1)));
  const message = [
    double(0x09, limits[0]! - 1),
    double(0x11, limits.at(-1)!),
    field(0x32, packed(limits)),
    field(0x3a, packed(counts)),
  ];
  return record(wallS, step, tag, field(0x2a, Buffer.concat(message)));
}

function record(wallS: number, step: number, tag: string, value: Buffer): Buffer {
  const time = double(0x09, wallS);
  const summary = field(0x2a, field(0x0a, Buffer.concat([field(0x0a, Buffer.from(tag)), value])));
  const event = Buffer.concat([time, Buffer.from([0x10]), varint(step), summary]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(event.length));
  return Buffer.concat([length, masked(length), event, masked(event)]);
}

/** Appends records to a run's file. */
export function log(folder: string, records: Buffer[]): void {
  const file = `${folder}/events.out.tfevents.1800000000.e2e`;
  mkdirSync(dirname(file), { recursive: true });
  appendFileSync(file, Buffer.concat(records));
}
