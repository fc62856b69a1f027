// Picking a point shows the part of the page that was written for it; nothing is computed here.
(function () {
  "use strict";
  const points = [...document.querySelectorAll(".point")];
  const choices = [...document.querySelectorAll("[data-choice]")];
  const rows = [...document.querySelectorAll("tr[data-k]")];
  const tip = document.getElementById("tip");
  const said = document.getElementById("said");

  function pick(k, focus) {
    points.forEach((point, j) => {
      point.setAttribute("aria-checked", String(j === k));
      point.setAttribute("tabindex", j === k ? "0" : "-1");
    });
    choices.forEach((part) => { part.hidden = Number(part.dataset.choice) !== k; });
    rows.forEach((row, j) => row.setAttribute("aria-current", String(j === k)));
    if (focus) points[k].focus();
    said.textContent = points[k].getAttribute("aria-label");
    history.replaceState(null, "", "#" + points[k].dataset.key);
  }

  points.forEach((point, k) => {
    point.addEventListener("click", () => pick(k, true));
    point.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const last = points.length - 1;
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
      tip.style.left = Math.min(event.clientX + 14, window.innerWidth - 260) + "px";
      tip.style.top = event.clientY + 14 + "px";
    });
    point.addEventListener("pointerleave", () => { tip.hidden = true; });
  });
  document.querySelectorAll("button.pick").forEach((button) => {
    button.addEventListener("click", () => pick(Number(button.dataset.k), false));
  });
  const wanted = points.findIndex((point) => "#" + point.dataset.key === location.hash);
  if (wanted >= 0) pick(wanted, false);
})();
