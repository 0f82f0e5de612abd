/**
 * Adapts the server's sentences for this page: `…` is code, a command that shows a view becomes a link to its page, and
 * a category gets the title that it has everywhere else on the page.
 * `stepscope kernels PATH` is written for the terminal; here that page is one click away.
 */
import type { PageInfo } from "../state/pages";
import type { Query } from "../state/route";

export type Part =
  { kind: "text" | "code" | "category"; text: string } | { kind: "link"; text: string; page: string; query: Query };

/** Splits a text; an unmatched backtick is an ordinary character. Commands of these pages become links. */
export function parse(text: string, pages: readonly PageInfo[]): Part[] {
  const pieces = text.split("`");
  const parts: Part[] = [];
  for (let index = 0; index < pieces.length; index += 1) {
    const piece = pieces[index] ?? "";
    const before = parts.at(-1);
    if (index % 2 === 0) {
      // A terminal has a hyphen for a minus; the figures beside the sentence have the sign.
      if (piece !== "") parts.push({ kind: "text", text: piece.replace(/(?<![^\s(])-(?=\d)/g, "−") });
    } else if (index === pieces.length - 1) {
      parts.push({ kind: "text", text: `\`${piece}` });
    } else {
      const link = ofHost(piece) ?? command(piece, pages);
      // Pages are opened, commands are run.
      if (link && before?.kind === "text")
        before.text = before.text.replace(/\brun $/, "open ").replace(/\bRun $/, "Open ");
      parts.push(link ?? { kind: isCategory(pieces, index) ? "category" : "code", text: piece });
    }
  }
  return parts;
}

/** There is no page for one host's report; the timeline shows what it does. */
function ofHost(code: string): Part | null {
  const name = /^stepscope report \S+ --host (.+)$/.exec(code)?.[1];
  if (name === undefined) return null;
  const host = unquoted(name);
  return { kind: "link", text: `the timeline of ${host}`, page: "timeline", query: { filter: host } };
}

/** Whether the sentence refers to a category; elsewhere the same word may be a name from the recording. */
function isCategory(pieces: readonly string[], index: number): boolean {
  if (/^ (?:can fall by|to drop by|varies most) /.test(pieces[index + 1] ?? "")) return true;
  // Of several, the words before the first say what they are: "the host spends `input` 69 ms and `python` 3 ms".
  let first = index;
  while (first > 1 && /^(?: [^`]*?)?(?:, | and )$/.test(pieces[first - 1] ?? "")) first -= 2;
  return /(?:(?:Begin|Start) with|Expect|the host spends) $/.test(pieces[first - 1] ?? "");
}

/** The page for a command; null if there is none. */
function command(code: string, pages: readonly PageInfo[]): Part | null {
  const [tool, name, ...rest] = code.trim().split(/\s+/);
  const page = pages.find((page) => page.name === name);
  if (tool !== "stepscope" || page === undefined) return null;
  const query: Query = {};
  let words = page.title;
  for (let at = 0; at < rest.length; at += 1) {
    const option = rest[at];
    if (option !== "--filter" && option !== "--sort" && option !== "--by") continue;
    const value = unquoted(option === "--filter" ? rest.slice(at + 1).join(" ") : (rest[at + 1] ?? ""));
    query[option.slice(2)] = value;
    if (option === "--filter") {
      words += ` with “${value}”`;
      break;
    }
    if (option === "--sort") words += `, ${order(value)} first`;
  }
  return { kind: "link", text: words, page: page.name, query };
}

function order(wish: string): string {
  const [most, least] = wish.includes("_ms") ? ["longest", "shortest"] : ["most", "least"];
  return wish.endsWith(":asc") ? least : most;
}

function unquoted(value: string): string {
  return /^(['"]).*\1$/.test(value) ? value.slice(1, -1) : value;
}
