"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const toolbar = byId("toolbar"), search = byId("search"), count = byId("count"), theme = byId("theme");
  const items = all(".filterable"), trials = all("details.trial");
  let wanted = "";

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const item of items) {
      const verdicts = item.dataset.verdict.split(" ");
      // A row stands for several trials: it stays while one of them has the verdict.
      const cells = item.tagName === "TR" ? all(".cell." + (wanted || "none"), item).length : 0;
      const fits = (!wanted || verdicts.includes(wanted) || cells > 0) && words.every((word) => item.dataset.text.includes(word));
      item.hidden = !fits;
      if (fits && item.tagName !== "TR") shown += 1;
    }
    count.textContent = shown === trials.length ? "" : `${shown} of ${trials.length} trials`;
  };

  for (const button of all("[data-filter]", toolbar)) {
    button.addEventListener("click", () => {
      wanted = button.dataset.filter;
      for (const other of all("[data-filter]", toolbar)) other.setAttribute("aria-pressed", String(other === button));
      filter();
    });
  }
  search.addEventListener("input", filter);
  byId("collapse").addEventListener("click", () => { for (const trial of trials) trial.open = false; });

  const jump = (step) => {
    const bad = trials.filter((trial) => !trial.hidden && (trial.classList.contains("fail") || trial.classList.contains("error")));
    if (!bad.length) return;
    const now = bad.findIndex((trial) => "#" + trial.id === location.hash);
    const next = now < 0 ? (step > 0 ? 0 : bad.length - 1) : (now + step + bad.length) % bad.length;
    if (now >= 0) bad[now].open = false;
    location.hash = bad[next].id;
  };
  byId("next").addEventListener("click", () => jump(1));
  byId("previous").addEventListener("click", () => jump(-1));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target === search) {
      if (event.key === "Escape") { search.value = ""; filter(); search.blur(); }
      return;
    }
    if (event.key === "/") { event.preventDefault(); search.focus(); }
    if (event.key === "n") jump(1);
    if (event.key === "p") jump(-1);
  });

  const reveal = () => {
    const target = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
    if (!target || target.tagName !== "DETAILS") return;
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
    target.querySelector("summary").focus({ preventScroll: true });
  };
  window.addEventListener("hashchange", reveal);
  // A cell of the trial that is shown already changes no hash.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) reveal();
  });

  const sortable = (table) => {
    const body = table.tBodies[0], heads = all("thead th", table);
    const key = (row, column) => {
      const cell = row.cells[column];
      const text = cell.dataset.v || cell.textContent.trim();
      // What has no value comes last.
      return heads[column].classList.contains("num") ? (parseFloat(text.replace(/,/g, "")) || (text.startsWith("0") ? 0 : -Infinity)) : text.toLowerCase();
    };
    heads.forEach((head, column) => {
      if (head.dataset.sort === "none" || body.rows.length < 2) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        const rows = [...body.rows].map((row) => [key(row, column), row]);
        rows.sort((a, b) => sign * (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
        body.append(...rows.map((pair) => pair[1]));
      });
    });
  };
  all("table.sortable").forEach(sortable);

  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  toolbar.hidden = trials.length < 2;
  theme.hidden = false;
  reveal();
})();
