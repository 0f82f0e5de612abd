/** What user actions need of the page around the timeline. */
export interface Page {
  /** Scrolls a vertical position into view. */
  scrollTo(y: number, height: number): void;
  scrollBy(px: number): void;
  /** Height of the rows that can be seen at once. */
  room(): number;
  focusSearch(): void;
  showKeys(): void;
  /** The URL should be updated soon. */
  changed(): void;
  say(text: string): void;
  calm(): boolean;
}
