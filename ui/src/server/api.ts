/**
 * Calls that several pages share (`crates/serve/API.md`). A page with calls of its own has them in its folder, in
 * `calls.ts`.
 */
import { ask, askOnce, query, token } from "./ask";
import type { Category, Info, Report, Sessions } from "./types";
import type { MembersOf, View, ViewInfo } from "./views";

export const api = {
  sessions: (signal?: AbortSignal) => ask<Sessions>("sessions", signal),
  views: (signal?: AbortSignal) => ask<ViewInfo[]>("views", signal),
  categories: (signal?: AbortSignal) => ask<Category[]>("categories", signal),
  report: (session: number, signal?: AbortSignal) => askOnce<Report>(session, "report", signal),
  info: (session: number, signal?: AbortSignal) => askOnce<Info>(session, "info", signal),
  view: <Name extends string>(session: number, name: Name, by?: string, signal?: AbortSignal, step?: string) =>
    askOnce<View<MembersOf<Name>>>(session, `view/${name}${query({ by, step })}`, signal),
  /** Download URL of a view; a link cannot have a header, so the token is part of the URL. */
  csv: (session: number, name: string, by?: string, step?: string) =>
    `api/s/${session}/csv/${name}${query({ by, step, token: token ?? undefined })}`,
};
