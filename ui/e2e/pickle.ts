/** A pickle of plain values, as PyTorch writes its memory snapshots: protocol 2. */
export type Plain = number | bigint | string | Plain[] | { [key: string]: Plain };

export function pickle(value: Plain): Buffer {
  const parts: Buffer[] = [Buffer.from([0x80, 2])];
  const put = (...bytes: number[]) => parts.push(Buffer.from(bytes));
  const write = (value: Plain): void => {
    if (typeof value === "string") {
      const text = Buffer.from(value);
      const head = Buffer.alloc(5);
      head.write("X");
      head.writeUInt32LE(text.length, 1);
      parts.push(head, text);
    } else if (typeof value === "number" || typeof value === "bigint") {
      // LONG1 with eight bytes.
      const number = Buffer.alloc(8);
      number.writeBigInt64LE(BigInt(value));
      put(0x8a, 8);
      parts.push(number);
    } else if (Array.isArray(value)) {
      parts.push(Buffer.from("](")); // an empty list, a mark
      value.forEach(write);
      parts.push(Buffer.from("e"));
    } else {
      parts.push(Buffer.from("}("));
      for (const [key, member] of Object.entries(value)) {
        write(key);
        write(member);
      }
      parts.push(Buffer.from("u"));
    }
  };
  write(value);
  parts.push(Buffer.from("."));
  return Buffer.concat(parts);
}
