// Picking a point, or a limit, shows the part of the page that was written for it; nothing is computed here.
(function () {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const points = all(".point");
  const slider = document.querySelector(".limit");
  const chart = slider.closest("svg");
  const digits = Number(slider.dataset.digits), unit = 10 ** digits;
  const tip = document.getElementById("tip");
  const said = document.getElementById("said");
  let now = points.findIndex((point) => point.getAttribute("aria-checked") === "true");

  function pick(k, focus) {
    now = k;
    points.forEach((point, j) => {
      const picked = j === k;
      point.setAttribute("aria-checked", String(picked));
      point.setAttribute("tabindex", picked ? "0" : "-1");
    });
    all("[data-choice]").forEach((part) => { part.hidden = Number(part.dataset.choice) !== k; });
    all("tr[data-k]").forEach((row) => row.setAttribute("aria-current", String(Number(row.dataset.k) === k)));
    if (focus) points[k].focus();
    said.textContent = points[k].getAttribute("aria-label");
    history.replaceState(null, "", "#" + points[k].dataset.key);
    arrange();
  }

  function arrange() { // a name that touches one before it is hidden, the picked one first
    const names = all(".name"), shown = [];
    [now, 0, ...names.keys()].forEach((k) => {
      const box = names[k].getBBox();
      const apart = shown.every(({ k: j, box: other }) => j === k || box.x > other.x + other.width ||
        other.x > box.x + box.width || box.y > other.y + other.height || other.y > box.y + box.height);
      names[k].classList.toggle("away", !apart);
      if (apart) shown.push({ k, box });
    });
    all(".scroll").forEach((part) => part.toggleAttribute("tabindex", part.scrollWidth > part.clientWidth));
    all(".scroll[tabindex]").forEach((part) => part.setAttribute("tabindex", "0"));
  }

  function limitTo(value) { // the best ranking among the models within the limit
    const most = Number(slider.getAttribute("aria-valuemax"));
    const limit = Math.round(unit * Math.min(Math.max(value, 0), most)) / unit;
    const within = points.filter((point) => Number(point.dataset.size) <= limit &&
      !point.classList.contains("collapsed"));
    const best = within.sort((a, b) => Number(b.dataset.quality) - Number(a.dataset.quality))[0];
    const shown = limit.toFixed(Math.max(digits, 0)), words = "at most " + shown;
    if (best) pick(Number(best.dataset.k));
    said.textContent = words + ": " + (best ? best.getAttribute("aria-label") : "no model here is within this limit");
    const { zero, top } = slider.dataset;
    slider.setAttribute("transform", `translate(0 ${Number(zero) + (limit / most) * (top - zero)})`);
    slider.setAttribute("aria-valuenow", String(limit));
    slider.setAttribute("aria-valuetext", said.textContent);
    slider.querySelector(".most").textContent = shown;
  }

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
    limitTo(Number(slider.getAttribute("aria-valuenow")) + step / unit);
    event.preventDefault();
  });

  points.forEach((point, k) => {
    const last = points.length - 1;
    point.addEventListener("click", () => pick(k, true));
    point.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) pick((k + step + points.length) % points.length, true);
      else if (event.key === "Home") pick(0, true);
      else if (event.key === "End") pick(last, true);
      else if (event.key === " " || event.key === "Enter") pick(k, true);
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
