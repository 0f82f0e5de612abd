/** Table logic: filtering, sorting, the visible window, and copying to a spreadsheet. */
import type { Column, Value } from "../server/views";

export interface Sorting {
  key: string;
  descending: boolean;
}

/** The sort order in a URL: a column's key, followed by `:asc` for ascending order. */
export function sortingOf(wish: string | undefined): Sorting | undefined {
  if (!wish) return undefined;
  const [key = "", way] = wish.split(":");
  return { key, descending: way !== "asc" };
}

/** The same the other way round. */
export function sortWords(sorting: Sorting | undefined): string {
  return sorting ? `${sorting.key}${sorting.descending ? "" : ":asc"}` : "";
}

/** Numbers of rows whose text contains `text`, ignoring case; `/…/` is a regular expression. All rows if it is empty. */
export function matching(columns: readonly Column[], rows: number, text: string): Uint32Array {
  const all = Uint32Array.from({ length: rows }, (_, row) => row);
  const test = matcher(text.trim());
  if (!test) return all;
  const texts = columns.filter((column) => column.format === "name" || column.format === "text");
  return all.filter((row) =>
    texts.some((column) => {
      const value = column.values[row];
      return typeof value === "string" && test(value);
    }),
  );
}

function matcher(text: string): ((value: string) => boolean) | null {
  if (text === "") return null;
  const pattern = /^\/(.+)\/$/.exec(text)?.[1];
  if (pattern !== undefined) {
    try {
      const regex = new RegExp(pattern, "i");
      return (value) => regex.test(value);
    } catch {
      // Still being typed: used literally until it is valid.
    }
  }
  const lower = text.toLowerCase();
  return (value) => value.toLowerCase().includes(lower);
}

/** The rows sorted by a column; equal ones keep their order, and unknown values come last in either direction. */
export function sorted(rows: Uint32Array, column: Column | undefined, descending: boolean): Uint32Array {
  if (!column) return rows;
  const { values } = column;
  const sign = descending ? -1 : 1;
  const texts = rows.length > LONG ? plainly : new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;
  return Uint32Array.from(rows).sort((a, b) => {
    const [left, right] = [values[a] ?? null, values[b] ?? null];
    if (left === null || right === null) return (left === null ? 1 : 0) - (right === null ? 1 : 0) || a - b;
    return sign * compare(left, right, texts) || a - b;
  });
}

/** Beyond this many rows, names are compared by code unit, because natural sorting would take seconds. */
const LONG = 30_000;

function plainly(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

function compare(
  left: NonNullable<Value>,
  right: NonNullable<Value>,
  texts: (left: string, right: string) => number,
): number {
  if (typeof left === "number" && typeof right === "number") return left - right;
  if (typeof left === "boolean" && typeof right === "boolean") return Number(left) - Number(right);
  return texts(String(left), String(right));
}

export interface Window {
  /** The first row that is drawn. */
  first: number;
  /** One past the last row that is drawn. */
  end: number;
  /** Empty space above and below, in pixels. */
  above: number;
  below: number;
}

/** The rows to draw, a few more than visible, so that scrolling shows no gap. */
export function visible(rows: number, height: number, scrolled: number, viewport: number, spare = 12): Window {
  const first = Math.max(0, Math.min(rows, Math.floor(scrolled / height) - spare));
  const end = Math.max(first, Math.min(rows, Math.ceil((scrolled + viewport) / height) + spare));
  return { first, end, above: first * height, below: (rows - end) * height };
}

/** Scroll position that makes a row fully visible below a header of `head` pixels; `scrolled` if it already is. */
export function reveal(row: number, height: number, scrolled: number, viewport: number, head: number): number {
  const [top, bottom] = [row * height, (row + 1) * height];
  if (top < scrolled) return top;
  const room = viewport - head;
  return bottom > scrolled + room ? bottom - room : scrolled;
}

/** Rows as tab-separated text with a header line and bare values. */
export function tsv(columns: readonly Column[], rows: Iterable<number>): string {
  const lines = [columns.map((column) => clean(column.title)).join("\t")];
  for (const row of rows) lines.push(columns.map((column) => cell(column.values[row])).join("\t"));
  return lines.join("\n");
}

function cell(value: Value | undefined): string {
  if (value === null || value === undefined) return "";
  return clean(typeof value === "object" ? JSON.stringify(value) : String(value));
}

function clean(text: string): string {
  return text.replace(/[\t\r\n]+/g, " ");
}

/** A column's head. */
export interface Head {
  key: string;
  title: string;
  unit?: string;
  about?: string;
  /** Right-aligned. */
  number: boolean;
  /** Minimum width in pixels. */
  least: number;
  /** It takes the remaining width. */
  flexible: boolean;
}

/** A column that can be shown. */
export interface Choice {
  key: string;
  title: string;
  about?: string;
  shown: boolean;
}
