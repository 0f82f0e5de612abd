/** What is shown, as text for others: the command that prints it, and tables in Markdown. */
import { writer } from "../words/format";
import type { Session } from "../server/types";
import type { Column, View } from "../server/views";

/** The command line for a session. */
export function commandFor(command: string, session: Session): string {
  return `stepscope ${command.replace(/ .*/, "")} ${quoted(session.path)}${/ .*/.exec(command)?.[0] ?? ""}`;
}

/** A path for a shell. */
export function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** Rows of a view that are copied. */
const MOST = 20;

/** A view as Markdown: its headline and its first rows. */
export function viewMarkdown(view: View<unknown>, title: string): string {
  const columns = view.columns.filter((column) => !column.hidden && column.values.some((value) => value !== null));
  const head = `**${title}**: ${view.headline ?? ""}`;
  if (columns.length === 0) return `${head}\n`;
  const rows = Array.from({ length: Math.min(MOST, view.rows) }, (_, row) => row);
  return [head, "", table(columns, rows), ...(view.rows > MOST ? ["", `… and ${view.rows - MOST} more`] : []), ""].join(
    "\n",
  );
}

function table(columns: readonly Column[], rows: readonly number[]): string {
  const writers = columns.map((column) => writer(column.format, column.values));
  const line = (cells: string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
  const isText = (column: Column) => column.format === "name" || column.format === "text";
  return [
    line(columns.map((column, at) => [column.title || column.key, writers[at]?.unit].filter(Boolean).join(" "))),
    line(columns.map((column) => (isText(column) ? "---" : "---:"))),
    ...rows.map((row) => line(columns.map((column, at) => writers[at]?.write(column.values[row] ?? null) ?? ""))),
  ].join("\n");
}
