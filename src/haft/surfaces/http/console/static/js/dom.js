// Short names for what every module does with the page.

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// Whether keys typed at this element are text.
export const isTyping = (target) =>
  target.matches?.("input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]") ?? false;

// Shows a message for some seconds; a screen reader reads it.
let toastTimer;
export function say(text) {
  const toast = $("[data-toast]");
  toast.textContent = text;
  toast.classList.add("show");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => toast.classList.remove("show"), 6000);
}

// Says something to screen readers only.
export function announce(text) {
  $("[data-announcer]").textContent = text;
}

// The parts of a page register here what they do with elements that are there now, or that a patch brings later.
const starters = [];
export function whenShown(selector, start) {
  starters.push([selector, start, new WeakSet()]);
}
export function startShown(root = document) {
  for (const [selector, start, started] of starters) {
    const found = $$(selector, root);
    if (root !== document && root.matches?.(selector)) found.unshift(root);
    for (const element of found) {
      if (started.has(element)) continue;
      started.add(element);
      start(element);
    }
  }
}
