// Patches the page that is shown to look like the page as the server would render it now. Elements that are the same
// stay the same elements, so focus, selection, scroll positions and open details stay.
//
// Nothing moves under the finger: while the pointer or the focus is inside a list, its rows stay in their order. Rows
// that would come or go wait until it leaves.
import { announce, startShown } from "./dom.js";

// What the person changed on this page, and the server does not know.
const KEPT = new Set(["open", "tabindex", "aria-pressed", "aria-expanded"]);
const isHeld = (element) => element.matches(":hover") || element.contains(document.activeElement);
const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset?.path || "" : "");

// Patches the elements marked `data-patch` that both pages have. Returns whether something had to wait.
export function patchPage(next) {
  let waits = false;
  for (const element of document.querySelectorAll("[data-patch]")) {
    const other = next.querySelector(`[data-patch="${element.dataset.patch}"]`);
    if (other && patch(element, other)) waits = true;
  }
  if (document.title !== next.title) document.title = next.title;
  document.documentElement.classList.toggle("waiting", next.documentElement.classList.contains("waiting"));
  const icon = document.querySelector("[data-favicon]");
  const nextIcon = next.querySelector("[data-favicon]");
  if (nextIcon && icon.getAttribute("href") !== nextIcon.getAttribute("href")) {
    icon.setAttribute("href", nextIcon.getAttribute("href"));
  }
  startShown();
  tellWaits();
  return waits;
}

// A screen reader hears that another call waits, wherever it reads.
let waiting = Number(document.querySelector("[data-waits]")?.dataset.waits ?? 0);
function tellWaits() {
  const pill = document.querySelector("[data-waits]");
  const now = Number(pill?.dataset.waits ?? 0);
  if (now > waiting) announce(pill.textContent.trim());
  waiting = now;
}

export function patch(element, other) {
  if (element.isEqualNode(other)) return false;
  patchAttributes(element, other);
  return patchChildren(element, other);
}

function patchAttributes(element, other) {
  for (const { name } of [...element.attributes]) {
    if (!other.hasAttribute(name) && !KEPT.has(name)) element.removeAttribute(name);
  }
  for (const { name, value } of other.attributes) {
    if (KEPT.has(name) && element.hasAttribute(name)) continue;
    if (element.getAttribute(name) !== value && !(name === "open" && element.localName === "details")) {
      element.setAttribute(name, value);
    }
  }
}

function patchChildren(element, other) {
  const isList = [...other.children, ...element.children].some((child) => keyOf(child));
  return isList ? patchList(element, other) : patchInOrder(element, other);
}

// Children without keys: the first is the first.
function patchInOrder(element, other) {
  let waits = false;
  const olds = [...element.childNodes];
  const news = [...other.childNodes];
  news.forEach((wanted, at) => {
    const old = olds[at];
    if (!old) element.append(document.importNode(wanted, true));
    else if (old.nodeType !== wanted.nodeType || old.nodeName !== wanted.nodeName) {
      old.replaceWith(document.importNode(wanted, true));
    } else if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== wanted.data) old.data = wanted.data;
    } else if (patch(old, wanted)) waits = true;
  });
  for (const old of olds.slice(news.length)) old.remove();
  return waits;
}

// Children with keys: each is found again by its key.
function patchList(element, other) {
  let waits = false;
  const held = isHeld(element);
  const byKey = new Map();
  for (const child of element.children) if (keyOf(child)) byKey.set(keyOf(child), child);
  const wanted = [...other.children];
  const keys = new Set(wanted.map(keyOf).filter(Boolean));
  for (const [key, child] of byKey) {
    if (keys.has(key)) continue;
    if (held) waits = true;
    else child.remove();
  }
  const plain = [...element.children].filter((child) => !keyOf(child));
  let last = null;
  for (const each of wanted) {
    const key = keyOf(each);
    const known = key ? byKey.get(key) : plain.shift();
    if (known && known.nodeName === each.nodeName) {
      if (patch(known, each)) waits = true;
      const isInPlace = last ? last.nextElementSibling === known : element.firstElementChild === known;
      if (!isInPlace && !held) {
        if (last) last.after(known);
        else element.prepend(known);
      } else if (!isInPlace) waits = true;
      last = known;
    } else if (held) waits = true;
    else {
      const made = document.importNode(each, true);
      if (last) last.after(made);
      else element.prepend(made);
      last = made;
    }
  }
  if (!held) for (const child of plain) child.remove();
  return waits;
}
