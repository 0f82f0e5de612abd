// Tables sort by a click on a heading, or by Enter; a second one turns the order round.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const sort = (head, column) => {
    const down = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending"
      : head.classList.contains("number");
    const key = (row) => {
      const cell = row.cells[column];
      return head.classList.contains("number") ? Number(cell.dataset.value ?? "-Infinity") : cell.textContent;
    };
    const compare = (a, b) => typeof a === "number" ? (a > b) - (a < b) : a.localeCompare(b);
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows.map(([, row]) => row));
  };
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    head.addEventListener("click", () => sort(head, column));
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        sort(head, column);
      }
    });
  });
}
