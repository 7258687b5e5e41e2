// Keys. A page registers its own with `onKey`; the first that returns true has used the key.
import { $, $$, isTyping } from "./dom.js";

const GO_MS = 1200;
const handlers = [];
let wentG = -Infinity;

export const onKey = (handle) => handlers.push(handle);

// The rows that J and K walk along.
const STOPS = "main .asks .what, main a.row, main .rail a, main .card summary, main [data-diff] summary";

function walk(step) {
  const stops = $$(STOPS).filter((node) => node.checkVisibility());
  const at = stops.indexOf(document.activeElement);
  const to = stops[at + step] ?? (at < 0 ? stops[0] : undefined);
  to?.focus();
  to?.scrollIntoView({ block: "nearest" });
}

function common(key, event) {
  if (performance.now() - wentG < GO_MS) {
    wentG = -Infinity;
    const link = $(`.nav [data-go="${CSS.escape(key)}"]`);
    if (link) {
      location.href = link.href;
      return true;
    }
  }
  if (key === "g") {
    wentG = performance.now();
    return true;
  }
  if (key === "?") {
    $("[data-help-dialog]").showModal();
    return true;
  }
  if (key === "/") {
    const field = $("main input[type=search]");
    if (field) event.preventDefault();
    field?.focus();
    field?.select();
    return true;
  }
  if (key === "j" || key === "k") {
    walk(key === "j" ? 1 : -1);
    return true;
  }
  return false;
}

// A held Enter must not arm and confirm in one go.
document.addEventListener(
  "keydown",
  (event) => {
    if (event.repeat && event.key === "Enter") event.preventDefault();
  },
  true,
);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || $("dialog[open]")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const typing = isTyping(event.target);
  if (typing && key === "Escape" && event.target.type === "search") event.target.blur();
  if (event.repeat && key !== "j" && key !== "k") return;
  if (!typing && performance.now() - wentG < GO_MS && common(key, event)) return;
  for (const handle of handlers) if (handle(key, event, typing)) return;
  if (!typing) common(key, event);
});
