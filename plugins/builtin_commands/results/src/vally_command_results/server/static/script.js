"use strict";
// Everything is readable without this file; it adds filtering as one types, tooltips, keys and renewal.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const say = (text) => { byId("live").textContent = text; };
  const isTyping = (target) => target instanceof Element && target.closest("input, select, textarea, [contenteditable]");

  const localTimes = (root) => {
    for (const element of all("time[datetime]", root)) {
      const moment = new Date(element.dateTime);
      if (!Number.isNaN(moment.valueOf())) element.title = `${moment.toLocaleString()} local time`;
    }
  };

  // A field above long tables that hides rows without the text.
  const liveFilter = (table) => {
    const rows = all("tbody tr", table);
    if (rows.length < 8 || table.dataset.filtered) return;
    table.dataset.filtered = "yes";
    const field = make("input", { type: "search", placeholder: "Filter these rows", autocomplete: "off", spellcheck: false });
    field.setAttribute("aria-label", "Filter these rows");
    const holder = make("div", { className: "live-filter field" }, field);
    (table.closest(".listing") || table.closest(".scroll")).before(holder);
    field.addEventListener("input", () => {
      const needle = field.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = needle !== "" && !row.textContent.toLowerCase().includes(needle);
        shown += row.hidden ? 0 : 1;
      }
      say(needle ? `${shown} of ${rows.length} rows` : "");
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault();
    });
  };

  const findInTimeline = () => {
    const field = document.querySelector("[data-find]");
    if (!field) return;
    const events = all(".events > li");
    const started = field.value.trim();
    field.addEventListener("input", () => {
      const needle = field.value.trim().toLowerCase();
      // What the server has chosen already is not chosen again.
      for (const item of events) item.hidden = needle !== "" && needle !== started.toLowerCase() && !item.textContent.toLowerCase().includes(needle);
      for (const turn of all(".turn")) turn.hidden = !turn.querySelector(".events > li:not([hidden])");
      say(needle ? `${events.filter((item) => !item.hidden).length} of ${events.length} rows` : "");
    });
    const button = byId("unfold");
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(open));
      button.textContent = open ? "Fold all" : "Unfold all";
      for (const details of all(".event details")) details.open = open;
    });
  };

  // Long texts are fetched into their place; without this their link opens them.
  const showWhole = () => {
    document.addEventListener("click", async (event) => {
      const link = event.target instanceof Element ? event.target.closest("[data-more] .more a") : null;
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      const block = link.closest("[data-more]");
      try {
        const answer = await fetch(link.href);
        if (!answer.ok) throw new Error(String(answer.status));
        const text = await answer.text();
        // More than this is slow to lay out; a page of its own bears it better.
        if (text.length > 1000000) { location.href = link.href; return; }
        block.querySelector("pre").textContent = text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (sign) => `[U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
        link.parentElement.remove();
        block.querySelector("pre").focus();
      } catch {
        location.href = link.href;
      }
    });
  };

  const tooltips = () => {
    const tip = make("div", { className: "tooltip", hidden: true });
    tip.setAttribute("aria-hidden", "true");
    document.body.append(tip);
    const titles = new WeakMap();
    document.addEventListener("pointermove", (event) => {
      const mark = event.target instanceof Element ? event.target.closest("svg.chart rect, svg.chart path, svg.chart circle") : null;
      const title = mark && (mark.querySelector(":scope > title") || titles.get(mark));
      if (!title) { tip.hidden = true; return; }
      // Kept aside so that the browser does not show its own as well.
      if (title.parentNode) { titles.set(mark, title); mark.setAttribute("aria-label", title.textContent); title.remove(); }
      tip.textContent = title.textContent;
      tip.hidden = false;
      const left = Math.min(event.pageX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
      // The object model of styles is not what the content policy forbids.
      tip.style.left = `${Math.max(4, left)}px`;
      tip.style.top = `${event.pageY + 16}px`;
    });
  };

  const choosing = () => {
    const form = byId("compare-form");
    if (!form) return;
    const button = byId("compare-button"), hint = byId("compare-hint");
    const update = () => {
      const count = all("input[name=runs]:checked", form).length;
      hint.textContent = count < 2 ? "Choose 2 to 6." : count > 6 ? `${count} are chosen; 6 at most.` : `${count} chosen.`;
      button.setAttribute("aria-disabled", String(count < 2 || count > 6));
      for (const box of all("input[name=runs]", form)) box.closest("tr").classList.toggle("selected-row", box.checked);
    };
    form.addEventListener("change", update);
    form.addEventListener("submit", (event) => {
      if (button.getAttribute("aria-disabled") === "true") { event.preventDefault(); say(hint.textContent); }
    });
    update();
  };

  const keys = () => {
    const pages = { r: "/", t: "/outcomes", c: "/compare", g: "/graders", e: "/trends" };
    const help = make("dialog", {});
    help.setAttribute("aria-labelledby", "keys-title");
    const rows = [["/", "search"], ["j, k", "next, previous row of a table"], ["n, p", "next, previous failing trial"], ["g then r, t, c, g, e", "runs, trials, compare, graders, trends"], ["?", "this help"]];
    help.append(make("h2", { id: "keys-title", textContent: "Keys" }), make("dl", {}, ...rows.flatMap(([key, what]) => [make("dt", {}, make("kbd", { textContent: key })), make("dd", { textContent: what })])), make("form", { method: "dialog" }, make("button", { textContent: "Close" })));
    document.body.append(help);
    for (const element of all(".keys")) element.hidden = false;
    let waiting = 0;
    const step = (direction) => {
      const links = all("main tbody th[scope=row] a").filter((link) => link.offsetParent);
      const place = links.indexOf(document.activeElement);
      const next = links[place < 0 ? (direction > 0 ? 0 : links.length - 1) : place + direction];
      if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
    };
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || help.open) return;
      if (Date.now() - waiting < 1200 && pages[event.key]) { location.href = pages[event.key]; return; }
      waiting = 0;
      if (event.key === "g") waiting = Date.now();
      else if (event.key === "/") { event.preventDefault(); byId("site-search").focus(); }
      else if (event.key === "?") help.showModal();
      else if (event.key === "j") step(1);
      else if (event.key === "k") step(-1);
      else {
        const link = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
        if (link) link.click();
      }
    });
  };

  // A run that is not finished is renewed part by part; focus, scroll and what is unfolded stay.
  const renewing = () => {
    const seconds = Number(document.body.dataset.refresh);
    if (!seconds) return;
    const bar = byId("refresh"), pause = byId("refresh-pause");
    let paused = false, tag = document.body.dataset.etag;
    if (bar) bar.hidden = false;
    if (pause) pause.addEventListener("click", () => {
      paused = !paused;
      pause.setAttribute("aria-pressed", String(paused));
      say(paused ? "Renewal is paused" : "Renewal goes on");
    });
    const replace = (text) => {
      const page = new DOMParser().parseFromString(text, "text/html");
      let changed = 0;
      for (const part of all("[data-live]")) {
        const fresh = page.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
        if (!fresh || part.contains(document.activeElement) || part.dataset.seen === fresh.innerHTML) continue;
        const open = all("details", part).map((details) => details.open);
        const seen = fresh.innerHTML;
        part.replaceChildren(...fresh.childNodes);
        part.dataset.seen = seen;
        all("details", part).forEach((details, place) => { if (place < open.length) details.open = open[place]; });
        localTimes(part);
        changed += 1;
      }
      if (changed) say("The page was renewed");
      if (!page.body.dataset.refresh) { paused = true; if (bar) bar.hidden = true; say("The run is finished"); }
    };
    const renew = async () => {
      if (!paused && !document.hidden) {
        try {
          const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
          const now = answer.headers.get("etag");
          if (answer.ok && now !== tag) { tag = now; replace(await answer.text()); }
        } catch { /* the server may be gone for a moment */ }
      }
      setTimeout(renew, seconds * 1000);
    };
    setTimeout(renew, seconds * 1000);
  };

  localTimes(document);
  all("table[data-filterable]").forEach(liveFilter);
  findInTimeline();
  showWhole();
  tooltips();
  choosing();
  keys();
  renewing();
})();
