/**
 * Runs before anything is drawn: sets the chosen or system colour scheme, and requests what every page needs while the
 * page's own script is still loading. `src/server/ask.ts` uses each answer once.
 */
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("stepscope.theme");
  } catch {
    // Storage may be disabled.
  }
  if (theme !== "light" && theme !== "dark")
    theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme;
  const token = new URLSearchParams(location.search).get("token");
  const headers = token === null ? {} : { "x-stepscope-token": token };
  const answers = (window.__stepscopeEarly = new Map());
  for (const path of ["api/sessions", "api/views", "api/categories"]) {
    const answer = fetch(path, { headers });
    // The code that uses it reports errors.
    answer.catch(() => undefined);
    answers.set(path, answer);
  }
})();
