/** Small helpers over a view's columns. */
import type { Column, Value, View } from "../server/views";

/** A column's values by its key; empty if the column is missing. */
export function values(view: View<unknown>, key: string): readonly Value[] {
  return view.columns.find((column) => column.key === key)?.values ?? [];
}

/** A number of a row, or null. */
export function number(view: View<unknown>, key: string, row: number): number | null {
  const value = values(view, key)[row];
  return typeof value === "number" ? value : null;
}

/** A text of a row, or empty. */
export function text(view: View<unknown>, key: string, row: number): string {
  const value = values(view, key)[row];
  return typeof value === "string" ? value : "";
}

/** Creates a column. */
export function column(key: string, title: string, format: Column["format"], values: Value[], hidden = false): Column {
  return { key, title, format, values, hidden, optional: false };
}

/** Only these rows of a view's columns. */
export function only(columns: readonly Column[], rows: readonly number[]): Column[] {
  return columns.map((column) => ({ ...column, values: rows.map((row) => column.values[row] ?? null) }));
}

/** A view's columns for the page: without text bars, and with titles derived from keys if they have none. */
export function drawable(columns: readonly Column[]): Column[] {
  return columns
    .filter((column) => column.key !== "bar")
    .map((column) => (column.title === column.key ? { ...column, title: readable(column.key) } : column));
}

/** `total_ms_per_step` → `total per step`: units follow the titles anyway. */
function readable(key: string): string {
  return key === "fraction" ? "share" : key.replace("_ms", "").replaceAll("_", " ");
}
