/** The SQL console without its page: colours of a query, links of an answer, and whether it can be drawn. */
import type { Query } from "../../state/route";

export type SqlValue = number | string | null;

export interface SqlAnswer {
  columns: string[];
  rows: SqlValue[][];
  /** Whether rows are missing because of a limit. */
  truncated: boolean;
}

export interface SqlTables {
  tables: { name: string; about: string; columns: { name: string; type: string; about: string }[] }[];
  functions: { call: string; about: string }[];
  examples: { question: string; sql: string }[];
}

export type Sort = "keyword" | "text" | "number" | "comment" | "plain";

const KEYWORDS = new Set(
  (
    "all and as asc between by case cast cross desc distinct else end except exists from full glob group having in inner intersect is join left like limit not null offset " +
    "on or order outer over partition recursive regexp right rows select then union using values when where window with"
  ).split(" "),
);
const PIECES =
  /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?)|(\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b)|([a-z_][a-z_0-9]*)|([\s\S])/giy;

/** A query in pieces, each with its colour; together they are the query. */
export function pieces(sql: string): { text: string; sort: Sort }[] {
  const found: { text: string; sort: Sort }[] = [];
  for (const [text, comment, quoted, number, word] of sql.matchAll(PIECES)) {
    const keyword = word !== undefined && KEYWORDS.has(word.toLowerCase());
    const sort: Sort = comment ? "comment" : quoted ? "text" : number ? "number" : keyword ? "keyword" : "plain";
    const last = found.at(-1);
    if (last?.sort === sort) last.text += text;
    else found.push({ text, sort });
  }
  return found;
}

const EVENT = /^(id|event_id|(call|work|out|in|parent)_(event|id))$/;

/** The columns whose values are numbers of events. `id` is one unless the query is about something else. */
export function eventColumns(answer: SqlAnswer, sql: string): number[] {
  const ofEvents = /\b(event|slice|launch|flow|arg|CUPTI_ACTIVITY_KIND_\w+|NVTX_EVENTS)\b/i.test(sql);
  return ofEvents ? answer.columns.flatMap((name, place) => (EVENT.test(name) ? [place] : [])) : [];
}

/** Track and event of an event's number. */
export function placeOf(id: number): { track: number; event: number } {
  return { track: Math.floor(id / 2 ** 32), event: id % 2 ** 32 };
}

/** The timeline around an event. */
export function eventQuery(id: number, startNs: number, durNs: number): Query {
  const { track, event } = placeOf(id);
  return {
    from: String(Math.floor(startNs)),
    to: String(Math.ceil(startNs + Math.max(durNs, 1))),
    sel: `${track}.${event}`,
  };
}

export interface Drawing {
  x: string;
  y: string;
  data: [number[], number[]];
}

/** Two columns of numbers, the first of which grows, can be drawn as a line. */
export function drawing(answer: SqlAnswer): Drawing | null {
  const [x, y] = answer.columns;
  if (answer.columns.length !== 2 || x === undefined || y === undefined || answer.rows.length < 2) return null;
  const points = answer.rows.filter((row): row is [number, number] => row.every((value) => typeof value === "number"));
  const grows = points.every((point, index) => index === 0 || point[0] > (points[index - 1]?.[0] ?? -Infinity));
  if (points.length < answer.rows.length || !grows) return null;
  return { x, y, data: [points.map((point) => point[0]), points.map((point) => point[1])] };
}

/** A text and a number per row can be drawn as bars. */
export function bars(answer: SqlAnswer): { label: string; value: number; share: number }[] | null {
  if (answer.columns.length !== 2 || answer.rows.length < 2 || answer.rows.length > 60) return null;
  const all = answer.rows.map(([label, value]) => ({
    label: typeof label === "string" ? label : label === null ? "(none)" : null,
    value,
  }));
  if (!all.every((row) => row.label !== null && typeof row.value === "number" && row.value >= 0)) return null;
  const known = all as { label: string; value: number }[];
  const most = Math.max(...known.map((row) => row.value), Number.MIN_VALUE);
  return known.map((row) => ({ ...row, share: row.value / most }));
}

/** A value as people read it: digits are grouped only where nothing is identified by them. */
export function shown(value: SqlValue): string {
  if (value === null) return "";
  if (typeof value === "string") return value;
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(7)));
}

export interface Completion {
  /** Where the word that is being typed starts. */
  from: number;
  options: string[];
}

/** Options at a time. */
const OPTIONS = 8;

/** What the word before the caret may become: columns of the tables that the query names come first, then tables, functions and
 * other columns; behind `table.` only its columns. */
export function complete(sql: string, caret: number, known: SqlTables | undefined): Completion {
  const before = sql.slice(0, caret);
  const word = /[a-z_][a-z_0-9]*$/i.exec(before)?.[0] ?? "";
  const from = caret - word.length;
  const owner = /([a-z_][a-z_0-9]*)\.$/i.exec(before.slice(0, from))?.[1];
  if (!known || (word === "" && !owner)) return { from, options: [] };
  const named = (table: string) => new RegExp(`\\b${table}\\b`, "i").test(sql);
  const columns = (tables: SqlTables["tables"]) =>
    tables.flatMap((table) => table.columns.map((column) => column.name));
  const all = owner
    ? columns(known.tables.filter((table) => table.name === owner))
    : [
        ...columns(known.tables.filter((table) => named(table.name))),
        ...known.tables.map((table) => table.name),
        ...known.functions.map((one) => `${one.call.split("(")[0]}(`),
        ...columns(known.tables),
      ];
  const start = word.toLowerCase();
  const fitting = [...new Set(all)].filter((one) => one.toLowerCase().startsWith(start) && one !== word);
  return { from, options: fitting.slice(0, OPTIONS) };
}

export interface SavedQuery {
  name: string;
  sql: string;
}

/** Saved queries from what the browser kept; anything else is none. */
export function readSaved(text: string | null): SavedQuery[] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(found)) return [];
    return found.filter(
      (one): one is SavedQuery =>
        typeof (one as SavedQuery)?.name === "string" && typeof (one as SavedQuery)?.sql === "string",
    );
  } catch {
    return [];
  }
}

/** The list with a query added; the same name is replaced. */
export function withSaved(list: readonly SavedQuery[], name: string, sql: string): SavedQuery[] {
  return [...list.filter((one) => one.name !== name), { name, sql }].sort((a, b) => a.name.localeCompare(b.name));
}
