/**
 * Lets several timelines pan and zoom together. Each member has its own origin (the start of the step it is
 * aligned by); what they share is the window relative to that origin.
 */
import type { Span } from "./types";

export interface Member {
  /** The moment aligned with the others' origins, in ns. */
  origin: number;
  /** Shows a window, in the member's own time. */
  show(window: Span): void;
}

export class ViewLink {
  private readonly members = new Set<Member>();
  /** The last window anyone showed, relative to the origins; newcomers start with it. */
  private last: Span | null = null;

  /** Joins with the window that it opens with; returns the way out. All start at one scale: the shortest window's. */
  join(member: Member, opening: Span): () => void {
    this.members.add(member);
    if (!this.last || length(opening) < length(this.last)) this.moved(member, opening);
    else member.show(own(this.last, member.origin));
    return () => this.members.delete(member);
  }

  /** A member's window changed by its user: the others follow. */
  moved(by: Member, window: Span): void {
    this.last = own(window, -by.origin);
    for (const member of this.members) if (member !== by) member.show(own(this.last, member.origin));
  }
}

function length(window: Span): number {
  return window.end - window.start;
}

function own(window: Span, origin: number): Span {
  return { start: window.start + origin, end: window.end + origin };
}
