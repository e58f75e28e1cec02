"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const search = document.getElementById("search");
  if (search) {
    const models = all(".model");
    const state = document.getElementById("state");
    const shown = document.getElementById("shown");
    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const model of models) {
        const text = model.dataset.text.toLowerCase();
        model.hidden = (state.value && model.dataset.state !== state.value) || !words.every((word) => text.includes(word));
        count += model.hidden ? 0 : 1;
      }
      shown.textContent = count === models.length ? "" : `${count} of ${models.length} models`;
    };
    document.getElementById("filter").hidden = false;
    search.addEventListener("input", filter);
    state.addEventListener("change", filter);
  }
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
  let closed = [];
  addEventListener("beforeprint", () => { closed = all("details:not([open])"); for (const each of closed) each.open = true; });
  addEventListener("afterprint", () => { for (const each of closed) each.open = false; });
})();
