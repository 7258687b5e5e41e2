// The layout of diffs: unified or side by side. It is part of the address, and the next page keeps it.
import { $, $$, whenShown } from "./dom.js";
import { onKey } from "./keys.js";

const KEPT = "haft-layout";
const stored = () => {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
};

function layout(kind) {
  for (const diff of $$("[data-diff]")) diff.classList.toggle("split", kind === "split");
  for (const button of $$("[data-layout]")) button.setAttribute("aria-pressed", String(button.dataset.layout === kind));
}

function choose(kind) {
  layout(kind);
  const here = new URL(location.href);
  here.searchParams.set("layout", kind);
  history.replaceState(null, "", here);
  try {
    localStorage.setItem(KEPT, kind);
  } catch {
    // A private window keeps nothing.
  }
}

whenShown("[data-diff]", () => {
  if (!new URL(location.href).searchParams.has("layout") && stored()) layout(stored());
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-layout]");
  if (button) choose(button.dataset.layout);
});
onKey((key, _event, typing) => {
  const split = $("[data-layout=split]");
  if (typing || key !== "s" || !split) return false;
  choose(split.getAttribute("aria-pressed") === "true" ? "unified" : "split");
  return true;
});
