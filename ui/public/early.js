/**
 * Runs before anything is drawn: sets the colours that were chosen or are the system's, and asks the server for what every page needs while
 * the page's own script is still on its way. `src/lib/api.ts` takes the answers over, each once.
 */
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("stepscope.theme");
  } catch {
    // Storage may be forbidden.
  }
  if (theme !== "light" && theme !== "dark") theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme;
  const token = new URLSearchParams(location.search).get("token");
  const headers = token === null ? {} : { "x-stepscope-token": token };
  const answers = (window.__stepscopeEarly = new Map());
  for (const path of ["api/sessions", "api/categories"]) {
    const answer = fetch(path, { headers });
    // Whoever takes it over says what went wrong.
    answer.catch(() => undefined);
    answers.set(path, answer);
  }
})();
