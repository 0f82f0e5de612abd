/** What the whole page shares: the address, the sessions, the pages, the categories, the theme. */
import { api } from "../server/api";
import { forget, problemOf, type Problem } from "../server/ask";
import { FLEET, HOME, OVERVIEW, pagesOf } from "./pages";
import * as route from "./route";
import type { Query, Route } from "./route";
import { runNames } from "./runs";
import type { Category, Session, Sessions } from "../server/types";
import type { ViewInfo } from "../server/views";

/** How often to look for new sessions, in milliseconds. */
const POLL_MS = 4000;

export type Theme = "auto" | "light" | "dark";

class App {
  route = $state.raw<Route>(route.parse(location.hash));
  listed = $state.raw<Sessions | null>(null);
  problem = $state.raw<Problem | null>(null);
  views = $state.raw<ViewInfo[] | null>(null);
  categories = $state.raw<Category[]>([]);
  theme = $state.raw<Theme>(storedTheme());
  /** Incremented whenever the server answers again after it did not. */
  reconnected = $state(0);
  /** Incremented whenever colours change; charts that draw on a canvas read it. */
  repaint = $state(0);
  /** The newest session when the page was opened, or the newest one visited since. */
  #seen = $state(-1);
  /** The session for a URL without one: the newest when the page was opened. New sessions are offered, not opened automatically. */
  #first = $state<number | null>(null);
  /** Whether there were several sessions when the page was opened: an address without a page is then the list of them. */
  #several = $state(false);

  sessions = $derived(this.listed?.sessions ?? []);
  /** The names of all runs, by session. */
  names = $derived(runNames(this.sessions));
  session = $derived.by(() => this.#chosen());
  /** Whether there is more than one host to speak of. */
  hasFleet = $derived(
    this.listed?.fleet === true ||
      this.sessions.length > 1 ||
      this.sessions.some((session) => session.hosts.length > 1),
  );
  /** All pages, in the order of the navigation. */
  pages = $derived(pagesOf(this.views ?? []));
  /** The page that the address names; the overview if there is none of that name. */
  page = $derived(
    isBare(this.route) && this.listed?.fleet
      ? FLEET
      : this.#several && isBare(this.route)
        ? HOME
        : (this.pages.find((page) => page.name === this.route.page) ?? OVERVIEW),
  );
  /** The page that the address names, if there is no such page. */
  unknownPage = $derived(
    this.views !== null && !this.pages.some((page) => page.name === this.route.page) ? this.route.page : null,
  );
  colors = $derived(new Map(this.categories.map((category) => [category.key, category])));
  appeared = $derived(
    this.sessions.find((session) => session.appeared && session.id > this.#seen && session.id !== this.session?.id),
  );

  #chosen(): Session | undefined {
    if (this.route.session !== "") return route.find(this.route.session, this.sessions);
    return this.sessions.find((session) => session.id === this.#first) ?? this.sessions[0];
  }

  /** The label of a session. */
  label(session: Session): string {
    return this.names.get(session.id)?.name ?? session.name;
  }

  /** A URL within the page; of the current session by default. */
  link(page: string, query: Query = {}, session: Session | undefined = this.session): string {
    return route.format({ session: session ? route.keyOf(session, this.sessions) : "", page, query });
  }

  go(page: string, query: Query = {}, session: Session | undefined = this.session): void {
    location.hash = this.link(page, query, session);
  }

  /** Changes the query without a new entry in the history. */
  setQuery(query: Query): void {
    const hash = this.link(this.page.name, query);
    if (hash === location.hash) return;
    history.replaceState(null, "", hash);
    this.route = route.parse(hash);
  }

  dismissAppeared(): void {
    this.#seen = Math.max(this.#seen, ...this.sessions.map((session) => session.id));
  }

  /** A part of the page could not reach the server; the next answer shows that it is back. */
  lost(problem: Problem): void {
    this.problem = problem;
  }

  async refresh(): Promise<void> {
    try {
      const [listed] = await Promise.all([api.sessions(), this.views === null ? this.#describe() : undefined]);
      if (this.#first === null) this.#first = listed.current;
      if (this.listed === null) this.#several = listed.sessions.length > 1;
      if (this.listed === null) this.#seen = Math.max(-1, ...listed.sessions.map((session) => session.id));
      for (const { id, revision } of listed.sessions) {
        if (this.sessions.some((known) => known.id === id && known.revision !== revision)) forget(id);
      }
      if (JSON.stringify(listed) !== JSON.stringify(this.listed)) this.listed = listed;
      if (this.problem !== null) this.reconnected++;
      this.problem = null;
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  /** What stays the same while the server runs. */
  async #describe(): Promise<void> {
    const [views, categories] = await Promise.all([api.views(), api.categories()]);
    this.views = views;
    this.categories = categories;
  }

  /** Follows the URL, the server's sessions and the system's colour scheme until the page is closed. */
  start(): void {
    addEventListener("hashchange", () => (this.route = route.parse(location.hash)));
    systemDark().addEventListener("change", () => {
      applyTheme(this.theme);
      this.repaint++;
    });
    applyTheme(this.theme);
    void this.refresh();
    setInterval(() => {
      if (!document.hidden) void this.refresh();
    }, POLL_MS);
  }

  nextTheme(): void {
    const dark = isDark();
    this.theme = this.theme === "auto" ? (dark ? "light" : "dark") : "auto";
    try {
      if (this.theme === "auto") localStorage.removeItem("stepscope.theme");
      else localStorage.setItem("stepscope.theme", this.theme);
    } catch {
      // Storage may be disabled; the choice then lasts as long as the page.
    }
    applyTheme(this.theme);
    this.repaint++;
  }
}

/** An address that names neither a session nor a page. */
function isBare({ session, page, query }: Route): boolean {
  return session === "" && page === "overview" && Object.keys(query).length === 0;
}

function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem("stepscope.theme");
    return stored === "light" || stored === "dark" ? stored : "auto";
  } catch {
    return "auto";
  }
}

const systemDark = (): MediaQueryList => matchMedia("(prefers-color-scheme: dark)");

function applyTheme(theme: Theme): void {
  const system = systemDark().matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme === "auto" ? system : theme;
}

/** Whether the dark theme is active. */
export function isDark(): boolean {
  return document.documentElement.dataset.theme === "dark";
}

/** The value of a CSS variable. */
export function cssVar(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export const app = new App();
