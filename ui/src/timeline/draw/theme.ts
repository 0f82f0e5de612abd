/** Colours of everything around the spans, read from the page's style sheet so that canvas and page agree, light or dark. */

export interface Theme {
  dark: boolean;
  ink: string;
  soft: string;
  line: string;
  back: string;
  head: string;
  accent: string;
  band: string;
  hatch: string;
  mark: string;
  area: string;
  hit: string;
  counter: string;
  transfer: string;
  critical: string;
}

const VARIABLES: Record<Exclude<keyof Theme, "dark">, string> = {
  ink: "--tl-ink",
  soft: "--tl-soft",
  line: "--tl-line",
  back: "--tl-back",
  head: "--tl-head",
  accent: "--tl-accent",
  band: "--tl-band",
  hatch: "--tl-hatch",
  mark: "--tl-mark",
  area: "--tl-area",
  hit: "--tl-hit",
  counter: "--tl-counter",
  transfer: "--tl-transfer",
  critical: "--tl-critical",
};

/** Custom properties come back unresolved; a probe's `color` comes back as numbers. */
export function readTheme(root: HTMLElement): Theme {
  const probe = document.createElement("span");
  probe.hidden = true;
  root.append(probe);
  const theme = { dark: false } as Theme;
  for (const [key, variable] of Object.entries(VARIABLES)) {
    probe.style.color = `var(${variable})`;
    theme[key as keyof typeof VARIABLES] = getComputedStyle(probe).color;
  }
  probe.remove();
  const [r = 255, g = 255, b = 255] = (theme.back.match(/[\d.]+/g) ?? []).map(Number);
  theme.dark = r * 0.3 + g * 0.59 + b * 0.11 < 128;
  return theme;
}

/** Calls back when the page's colour scheme changes; returns a function that stops it. */
export function watchTheme(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["class", "style", "data-theme"] });
  return () => observer.disconnect();
}
