/** The search as the user sees it: its text, how many hits there are, the one that was stepped to, and the list of all. */
import type { Engine } from "../draw/engine";
import type { Hit } from "../model/types";

interface Around {
  engine(): Engine;
  select(hit: Hit): Promise<void>;
  /** The URL should be updated soon. */
  changed(): void;
  say(text: string): void;
  fail(error: unknown): void;
}

const NOTHING = { total: 0, names: 0, at: -1, running: false };

export class Finder {
  text = $state.raw("");
  /** `at` is the number of the hit that was stepped to, -1 before the first step. */
  state = $state.raw<{ total: number; names: number; at: number; running: boolean }>(NOTHING);
  /** The list of hits is open. */
  listed = $state.raw(false);

  constructor(private readonly around: Around) {}

  /** Searches; `jump` also selects the first hit, for links that name an event and no place. */
  async search(text: string, jump = false): Promise<void> {
    const engine = this.around.engine();
    const { search } = engine;
    this.text = text;
    this.state = { ...NOTHING, running: text !== "" };
    this.around.changed();
    try {
      if (!(await search.start(text))) return;
      this.state = { total: search.total, names: search.names, at: -1, running: false };
      if (text !== "") this.around.say(`${search.total} hits`);
      if (jump) await this.show(await search.first());
    } catch (error) {
      this.state = NOTHING;
      this.around.fail(error);
    }
    engine.invalidate();
  }

  /** Goes to the next or previous hit; first to the one after what is in view. */
  async step(by: 1 | -1): Promise<void> {
    const { search, bounds, window } = this.around.engine();
    const share = (window.start - bounds.start) / (bounds.end - bounds.start);
    await this.follow(search.step(by, share));
  }

  /** Goes to a hit by its number. */
  async goTo(at: number): Promise<void> {
    await this.follow(this.around.engine().search.hit(at));
  }

  /** The loaded hits from one number to another; asks for the others and calls `loaded` when they are there. */
  hits(from: number, to: number, loaded: () => void): (Hit | undefined)[] {
    const { search } = this.around.engine();
    const missing = search.missing(from, to);
    if (missing.length > 0)
      Promise.all(missing.map((page) => search.load(page))).then(loaded, (error) => this.around.fail(error));
    return Array.from({ length: Math.max(0, to - from) }, (_, i) => search.loaded(from + i));
  }

  setListed(listed: boolean): void {
    this.listed = listed;
    this.around.changed();
  }

  private async follow(found: Promise<Hit | null>): Promise<void> {
    try {
      await this.show(await found);
    } catch (error) {
      this.around.fail(error);
    }
  }

  private async show(hit: Hit | null): Promise<void> {
    this.state = { ...this.state, at: this.around.engine().search.at };
    if (hit) await this.around.select(hit);
  }
}
