// Picking a point, or a limit, shows the part of the page that was written for it; nothing is computed here.
(function () {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const charts = all("svg.front"); // one for wide windows and one for narrow ones, of which CSS shows one
  const points = all(".point", charts[0]);
  const limits = all(".limit");
  const tip = document.getElementById("tip");
  const said = document.getElementById("said");
  const seen = (chart) => chart.getClientRects().length > 0;
  let now = points.findIndex((point) => point.getAttribute("aria-checked") === "true");

  function pick(k, chart) {
    now = k;
    all(".point").forEach((point) => {
      const picked = Number(point.dataset.k) === k;
      point.setAttribute("aria-checked", String(picked));
      point.setAttribute("tabindex", picked ? "0" : "-1");
    });
    all("[data-choice]").forEach((part) => { part.hidden = Number(part.dataset.choice) !== k; });
    all("tr[data-k]").forEach((row) => row.setAttribute("aria-current", String(Number(row.dataset.k) === k)));
    if (chart) all(".point", chart)[k].focus();
    said.textContent = points[k].getAttribute("aria-label");
    history.replaceState(null, "", "#" + points[k].dataset.key);
    arrange();
  }

  function arrange() { // names that the picked point's would overprint step aside; what can be scrolled can be reached
    charts.filter(seen).forEach((chart) => {
      const names = all(".name", chart);
      const mine = names[now].getBBox();
      names.forEach((name, k) => {
        const box = name.getBBox();
        const apart = box.x > mine.x + mine.width || mine.x > box.x + box.width ||
          box.y > mine.y + mine.height || mine.y > box.y + box.height;
        name.classList.toggle("away", k !== now && !apart);
      });
    });
    all(".scroll").forEach((part) => part.toggleAttribute("tabindex", part.scrollWidth > part.clientWidth));
    all(".scroll[tabindex]").forEach((part) => part.setAttribute("tabindex", "0"));
  }

  function limitTo(value) { // the best ranking among the models within the limit
    const most = Number(limits[0].getAttribute("aria-valuemax"));
    const limit = Math.round(1000 * Math.min(Math.max(value, 0), most)) / 1000;
    const within = points.filter((point) => Number(point.dataset.size) <= limit &&
      !point.classList.contains("collapsed"));
    const best = within.sort((a, b) => Number(b.dataset.auc) - Number(a.dataset.auc))[0];
    const words = "at most " + limit.toFixed(3);
    if (best) pick(Number(best.dataset.k));
    said.textContent = words + ": " + (best ? best.getAttribute("aria-label") : "no model here is within this limit");
    limits.forEach((slider) => {
      const { zero, top } = slider.dataset;
      slider.setAttribute("transform", `translate(0 ${Number(zero) + (limit / most) * (top - zero)})`);
      slider.setAttribute("aria-valuenow", String(limit));
      slider.setAttribute("aria-valuetext", said.textContent);
      slider.querySelector(".most").textContent = limit.toFixed(3);
    });
  }

  limits.forEach((slider) => {
    const chart = slider.closest("svg");
    slider.addEventListener("pointerdown", (event) => { slider.setPointerCapture(event.pointerId); });
    slider.addEventListener("pointermove", (event) => {
      if (!slider.hasPointerCapture(event.pointerId)) return;
      const box = chart.getBoundingClientRect();
      const y = (event.clientY - box.top) * chart.viewBox.baseVal.height / box.height;
      const { zero, top } = slider.dataset;
      limitTo(Number(slider.getAttribute("aria-valuemax")) * (zero - y) / (zero - top));
    });
    slider.addEventListener("keydown", (event) => {
      const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10,
        Home: -1e6, End: 1e6 }[event.key];
      if (!step) return;
      limitTo(Number(slider.getAttribute("aria-valuenow")) + 0.001 * step);
      event.preventDefault();
    });
  });

  all(".point").forEach((point) => {
    const k = Number(point.dataset.k), chart = point.closest("svg"), last = points.length - 1;
    point.addEventListener("click", () => pick(k, chart));
    point.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) pick((k + step + points.length) % points.length, chart);
      else if (event.key === "Home") pick(0, chart);
      else if (event.key === "End") pick(last, chart);
      else if (event.key === " " || event.key === "Enter") pick(k, chart);
      else return;
      event.preventDefault();
    });
    point.addEventListener("pointermove", (event) => {
      tip.textContent = point.getAttribute("aria-label");
      tip.hidden = false;
      tip.style.left = Math.max(0, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 4)) + "px";
      tip.style.top = event.clientY + 14 + "px";
    });
    point.addEventListener("pointerleave", () => { tip.hidden = true; });
  });

  all("button.pick").forEach((button) => {
    button.addEventListener("click", () => pick(Number(button.dataset.k)));
  });
  all("button.copy").forEach((button) => {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      getSelection().selectAllChildren(code);
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch { // a browser that does not allow it: the command is selected
        button.textContent = "Press Ctrl+C";
      }
    });
  });
  window.addEventListener("resize", arrange);
  let shut = []; // on paper nothing is folded away
  window.addEventListener("beforeprint", () => {
    shut = all("details:not([open])");
    shut.forEach((part) => { part.open = true; });
  });
  window.addEventListener("afterprint", () => shut.forEach((part) => { part.open = false; }));
  const wanted = points.findIndex((point) => "#" + point.dataset.key === location.hash);
  if (wanted >= 0) pick(wanted);
  else arrange();
})();
