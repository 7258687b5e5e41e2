// The approval card: A or R arms, Enter confirms, Escape disarms.
//
// Keys count only GUARD_MS after a card appeared, and an armed answer never moves to another card. Armed by a press or
// tap, the confirm button stands where the finger is: then it counts only after the guard, too. The answer carries the
// digest of what the page shows; if that changed, or if somebody else was first, the page says so.
import { $, $$, announce, isTyping, say, whenShown } from "./dom.js";
import { inWorkspace, send } from "./api.js";
import { schemaForm } from "./form.js";
import { grantForm } from "./grant.js";
import { onKey } from "./keys.js";
import { isPageLive, onPage, refresh } from "./live.js";
import { patchPage } from "./patch.js";

const GUARD_MS = 600;
let card = null;
let shownAt = 0;
let armed = null;
let confirmFrom = 0;
let isSending = false;
let grant = null;
let edited = null;

const isGuarded = () => performance.now() - shownAt < GUARD_MS;
const chosen = () => $(".scopes input:checked", card);

whenShown("[data-card]", (shown) => {
  card = shown;
  armed = null;
  grant = null;
  edited = null;
  isSending = false;
  shownAt = performance.now();
  const bar = $("[data-answer]", card);
  bar?.classList.add("guarding");
  setTimeout(() => bar?.classList.remove("guarding"), GUARD_MS);
  $("h1", card).focus({ preventScroll: true });
  for (const part of $$("[data-part]", card)) heat(part, $(`[data-seg="${part.dataset.part}"]`, card));
});

// Pointing at the decision about a part marks the part in the command, and the other way round.
function heat(line, piece) {
  if (!piece) return;
  for (const node of [line, piece]) {
    for (const [event, isHot] of [
      ["mouseenter", true],
      ["mouseleave", false],
    ]) {
      node.addEventListener(event, () => {
        line.classList.toggle("hot", isHot);
        piece.classList.toggle("hot", isHot);
      });
    }
  }
}

function disarm() {
  if (!card) return;
  armed = null;
  const rest = $("[data-rest]", card);
  if (rest) rest.hidden = false;
  for (const form of $$("[data-armed]", card)) form.hidden = true;
}

function arm(kind, { byPointer = false } = {}) {
  const form = card && $(`[data-armed="${kind}"]`, card);
  if (!form || isGuarded() || isSending) return;
  if (!isPageLive()) {
    say("This page is not live. Answers are off until it is.");
    return;
  }
  disarm();
  armed = kind;
  confirmFrom = byPointer ? performance.now() + GUARD_MS : 0;
  $("[data-rest]", card).hidden = true;
  form.hidden = false;
  // Arming must not move what is being judged.
  $(kind === "reject" ? "input" : "button[type=submit]", form).focus({ preventScroll: true });
}

function goOn(selector) {
  disarm();
  $(selector, card).focus({ preventScroll: true });
}

// ---- how far the approval reaches ----

function choose(radio) {
  const form = $('[data-armed="approve"]', card);
  const value = radio.value;
  const words = value === "once" ? "" : ` ${radio.dataset.words}`;
  $("[data-confirm]", form).textContent = `Confirm approve${words}`;
  $("[data-extra]", form).textContent = value === "once" ? onceWords(radio) : radio.dataset.detail;
  const offers = $("[data-offers]", form);
  if (offers) offers.hidden = value !== "thread" && value !== "always";
  const grantPlace = $("[data-grant]", form);
  const editedPlace = $("[data-edited]", form);
  grantPlace.hidden = value !== "grant";
  editedPlace.hidden = value !== "edited";
  if (value === "grant") {
    if (!grant) {
      grant = grantForm(grantPlace);
      grantPlace.addEventListener("input", () => {
        $("[data-extra]", form).textContent = grant.words();
      });
    }
    grant.focus();
  }
  if (value === "edited") {
    const schema = JSON.parse(editedPlace.dataset.schema) ?? { type: "object" };
    edited ??= schemaForm(editedPlace, schema, JSON.parse(editedPlace.dataset.arguments));
    edited.focus();
  }
}

// A trial run can be committed in part: the armed bar says what goes in and what stays out.
function onceWords(radio) {
  const boxes = $$("[data-pick]", card);
  const out = boxes.filter((box) => !box.checked).map((box) => box.dataset.pick);
  if (!out.length) return radio.dataset.detail;
  if (out.length === boxes.length) return "Nothing is chosen: reject the call, or choose a file.";
  const named = out.length > 3 ? `${out.slice(0, 3).join(", ")} and ${out.length - 3} more` : out.join(", ");
  return `Commits ${boxes.length - out.length} of ${boxes.length} changes. Leaves out ${named}.`;
}

document.addEventListener("change", (event) => {
  if (!card) return;
  if (event.target.matches(".scopes input")) choose(event.target);
  if (event.target.matches("[data-pick]") && chosen()?.value === "once") {
    $("[data-extra]", card).textContent = onceWords(chosen());
  }
});

// ---- the answer ----

function answerFacts(form) {
  const facts = { digest: card.dataset.digest };
  if (form.dataset.armed === "reject") {
    const message = $("input", form).value.trim();
    return message ? { ...facts, message } : facts;
  }
  const boxes = $$("[data-pick]", card);
  const picked = boxes.filter((box) => box.checked).map((box) => box.dataset.pick.replace(/\/$/, ""));
  if (picked.length < boxes.length) facts.paths = picked;
  const scope = chosen().value;
  if (scope === "thread" || scope === "always") {
    facts.scope = scope;
    facts.allow = Number($("select[name=allow]", form)?.value ?? 0);
  }
  if (scope === "grant") facts.grants = grant.value();
  if (scope === "edited") facts.args = edited.value();
  return facts;
}

function outcomeWords(form, facts) {
  const name = card.dataset.name;
  if (form.dataset.armed === "reject") return facts.message ? "Rejected. The agent was told why." : "Rejected.";
  const out = $$("[data-pick]:not(:checked)", card).length;
  return `Approved ${chosen().dataset.words}${out ? `, ${out} left out` : ""}. ${name} goes on.`;
}

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("[data-armed]");
  if (!form) return;
  event.preventDefault();
  const isRight = armed === form.dataset.armed && card.contains(form);
  if (!isRight || isSending || performance.now() < confirmFrom) return;
  if (!isPageLive()) {
    say("This page is not live. Your answer was not sent.");
    return;
  }
  if (armed === "approve" && $$("[data-pick]", card).length && !$("[data-pick]:checked", card)) {
    say("Nothing is chosen. Reject the call, or choose a file.");
    return;
  }
  const facts = answerFacts(form);
  const words = outcomeWords(form, facts);
  isSending = true;
  $("[data-answer]", card).classList.add("sent");
  try {
    const address = `inbox/${encodeURIComponent(card.id)}/${armed === "reject" ? "reject" : "approve"}`;
    await send("POST", inWorkspace(address), facts);
    moveOn(words);
  } catch (problem) {
    isSending = false;
    $("[data-answer]", card)?.classList.remove("sent");
    disarm();
    if (problem.status === 409 || problem.status === 404) await refresh();
    else say(problem.hint ? `${problem.message}. ${problem.hint}` : problem.message);
  }
});

// To the next call that waits, which begins with nothing armed.
function moveOn(words) {
  const next = card.dataset.next;
  const isLast = next.endsWith(`/${card.id}`);
  sessionStorage.setItem("haft-said", words);
  location.replace(isLast ? inPage("approve") : next);
}
const inPage = (path) => `/w/${encodeURIComponent(document.body.dataset.workspace)}/${path}`;

const said = sessionStorage.getItem("haft-said");
if (said) {
  sessionStorage.removeItem("haft-said");
  say(said);
}

// ---- live: the card may change, or somebody else may answer ----

function notice(title, text) {
  const banner = document.createElement("div");
  banner.className = "panel banner ask-again";
  banner.setAttribute("role", "alert");
  banner.innerHTML =
    '<svg class="i i-wait" viewBox="0 0 16 16" aria-hidden="true"><path d="M8 1.2 14.8 8 8 14.8 1.2 8z"/></svg>';
  const strong = document.createElement("strong");
  strong.textContent = title;
  const p = document.createElement("p");
  p.textContent = text;
  banner.append(strong, p);
  return banner;
}

onPage((next) => {
  const isAllClear = $("[data-clear]") && $("[data-card]", next);
  if (!card && !isAllClear) return false;
  const other = $("[data-card]", next);
  if (isAllClear) {
    // A call arrived while nothing waited.
    history.replaceState(null, "", inPage(`approve/${other.id}`));
    $("main").replaceWith(document.importNode($("main", next), true));
    return patchPage(next) || true;
  }
  if (isSending) return true;
  if (other && other.id === card.id && other.dataset.digest === card.dataset.digest) return false;
  const wasArmed = armed !== null;
  if (other && other.id === card.id) {
    const said = wasArmed ? "Your answer was not sent. " : "";
    card.replaceWith(document.importNode(other, true));
    $("[data-notice]").replaceChildren(notice("This call changed while you looked.", `${said}Read what it shows now.`));
    patchPage(next);
    return true;
  }
  // It was answered, or it ended: the page says by whom and how.
  card = null;
  armed = null;
  document.body.classList.remove("has-answer");
  $("main").replaceWith(document.importNode($("main", next), true));
  patchPage(next);
  const heading = $("main h1");
  heading?.focus({ preventScroll: true });
  announce($("main .banner")?.textContent.trim() ?? heading?.textContent ?? "");
  return true;
});

// ---- pointer and keys ----

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-arm]");
  if (button && card?.contains(button)) arm(button.dataset.arm, { byPointer: event.detail > 0 });
  if (event.target.closest("[data-disarm]")) goOn("h1");
});

// In the form for a grant, Enter confirms as everywhere on the card; Shift and Enter begins a new line.
document.addEventListener("keydown", (event) => {
  const isLine = event.key === "Enter" && !event.shiftKey && !event.isComposing && !event.repeat;
  if (!isLine || !event.target.matches("[data-grant] textarea")) return;
  event.preventDefault();
  event.target.form.requestSubmit();
});

onKey((key, event, typing) => {
  if (!card) return false;
  if (key === "Escape" && armed) {
    goOn("h1");
    return true;
  }
  if (typing) return false;
  if (!armed && (key === "a" || key === "r")) {
    event.preventDefault();
    arm(key === "a" ? "approve" : "reject");
    return true;
  }
  if (armed === "approve" && /^[1-5]$/.test(key)) {
    const radio = $$(".scopes input", card)[Number(key) - 1];
    if (radio && !radio.disabled) {
      event.preventDefault();
      radio.checked = true;
      choose(radio);
    }
    return true;
  }
  if (key === "[" || key === "]") {
    const to = key === "]" ? card.dataset.next : card.dataset.previous;
    if (!armed && !isSending && !to.endsWith(`/${card.id}`)) location.href = to;
    return true;
  }
  if (key === "x") {
    document.activeElement.closest(".pickable")?.querySelector("[data-pick]").click();
    return true;
  }
  return false;
});
