"use strict";
/* Sort a table by a column; what is folded is opened for print. */
(function () {
  document.querySelectorAll("table.rows").forEach(sortable);

  function sortable(table) {
  const body = table.tBodies[0];
  const original = Array.from(body.rows);

  function key(row, column) {
    const cell = row.cells[column];
    if (!cell) return null;
    const text = cell.firstChild ? cell.firstChild.textContent.trim() : "";
    const number = parseFloat(text.replace("−", "-").replace(/\s*×\s*10/, "e").replace(/[⁻⁰¹²³⁴-⁹]/g, (one) => "-0123456789"["⁻⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(one)]));
    return { text: text, number: number, missing: text === "–" || text === "" };
  }

  Array.from(table.tHead.rows[0].cells).forEach(function (head, column) {
    const numeric = head.classList.contains("number");
    const button = document.createElement("button");
    button.className = "sort";
    button.textContent = head.textContent;
    head.textContent = "";
    head.appendChild(button);
    button.addEventListener("click", function () {
      const state = head.getAttribute("aria-sort");
      /* Numbers are wanted from the largest, names from the first letter; a third click restores. */
      const order = numeric ? ["descending", "ascending", null] : ["ascending", "descending", null];
      const next = order[(order.indexOf(state) + 1) % 3];
      Array.from(table.tHead.rows[0].cells).forEach((one) => one.removeAttribute("aria-sort"));
      const rows = original.slice();
      if (next) {
        head.setAttribute("aria-sort", next);
        const sign = next === "ascending" ? 1 : -1;
        rows.sort(function (first, second) {
          const a = key(first, column), b = key(second, column);
          const gone = (one) => !one || one.missing || (numeric && Number.isNaN(one.number));
          if (gone(a) || gone(b)) return gone(a) - gone(b);
          return sign * (numeric ? a.number - b.number : a.text.localeCompare(b.text, undefined, { numeric: true }));
        });
      }
      rows.forEach((row) => body.appendChild(row));
    });
  });

  }

  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
  });
})();
