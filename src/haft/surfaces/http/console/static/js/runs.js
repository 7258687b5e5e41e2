// The list of runs: the filter is the address, and X chooses two runs to compare.
import { $, $$, announce, whenShown } from "./dom.js";
import { onKey } from "./keys.js";
import { refresh } from "./live.js";

const TYPED_MS = 250;
let timer = null;

whenShown("[data-filter]", (form) => {
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => apply(form), TYPED_MS);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    apply(form);
  });
});

async function apply(form) {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
  await refresh();
}

// ---- two runs to compare ----

const chosen = [];
function choose(link) {
  const at = chosen.indexOf(link.dataset.run);
  if (at >= 0) chosen.splice(at, 1);
  else chosen.push(link.dataset.run);
  if (chosen.length > 2) chosen.shift();
  show();
}
function show() {
  for (const link of $$("a.row[data-run]")) {
    link.closest("tr").classList.toggle("is-chosen", chosen.includes(link.dataset.run));
  }
  const bar = $("[data-chosen-bar]");
  if (!bar) return;
  bar.hidden = chosen.length === 0;
  const compare = $("[data-compare]", bar);
  $("[data-chosen-words]", bar).textContent =
    chosen.length === 2 ? "Two runs are chosen." : "One run is chosen. Choose another.";
  compare.hidden = chosen.length < 2;
  const here = new URL(compare.href);
  here.search = new URLSearchParams({ a: chosen[0] ?? "", b: chosen[1] ?? "" });
  compare.href = here;
  announce($("[data-chosen-words]", bar).textContent);
  if (chosen.length === 2) compare.focus({ preventScroll: true });
}
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-unchoose]")) return;
  chosen.length = 0;
  show();
});
onKey((key, _event, typing) => {
  const link = document.activeElement?.closest?.("a.row[data-run]");
  if (typing || key !== "x" || !link || !$("[data-chosen-bar]")) return false;
  choose(link);
  return true;
});
