// What the theme leaves out for readers who use a keyboard or a screen reader.
addEventListener("DOMContentLoaded", () => {
  const all = (what, change) => document.querySelectorAll(what).forEach(change);
  all("p.caption[role=heading]", (node) => node.setAttribute("aria-level", "2"));
  all("pre", (node) => node.setAttribute("tabindex", "0")); // long lines are scrolled
  all("aside.sidebar-drawer", (node) => node.setAttribute("aria-label", "Pages"));
  all("aside.toc-drawer", (node) => node.setAttribute("aria-label", "Contents of this page"));
});
