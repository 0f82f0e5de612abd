/**
 * Runs before anything is drawn: sets the colours that were chosen, and asks the server for what every page needs while
 * the page's own script is still on its way. `src/lib/api.ts` takes the answers over, each once.
 */
(() => {
  try {
    const theme = localStorage.getItem("stepscope.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be forbidden.
  }
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
