// The undo plan: U opens it in place. Nothing happens before it is armed and confirmed.
import { $, $$, say, startShown, whenShown } from "./dom.js";
import { inWorkspace, send } from "./api.js";
import { onKey } from "./keys.js";
import { refresh } from "./live.js";

const GUARD_MS = 600;
let armedAt = null;

async function open(link) {
  const address = link.href;
  const answer = await fetch(address, { headers: { accept: "text/html" }, credentials: "same-origin" });
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  const plan = $("[data-plan]", next);
  if (!plan) {
    await refresh();
    return;
  }
  $("[data-plan-place]").replaceChildren(document.importNode(plan, true));
  history.replaceState(null, "", address);
  link.setAttribute("aria-expanded", "true");
  startShown();
  const first = $(".ways input", document) ?? $("[data-undo-arm]") ?? $("#plan-title");
  first.focus();
}

function close() {
  $("[data-plan-place]").replaceChildren();
  const here = new URL(location.href);
  here.searchParams.delete("plan");
  history.replaceState(null, "", here);
  const opener = $("[data-undo]");
  opener?.setAttribute("aria-expanded", "false");
  opener?.focus();
}

const way = () => $("input[name=way]:checked", $("[data-plan]"));

function rest() {
  const plan = $("[data-plan]");
  const button = $("[data-undo-arm]", plan);
  armedAt = null;
  $("[data-foot]", plan)?.classList.remove("is-armed");
  if (!button) return;
  const chosen = way();
  button.disabled = !chosen;
  button.className = chosen ? "btn solid" : "btn";
  button.textContent = chosen ? chosen.dataset.say : button.textContent;
  $("[data-undo-say]", plan).textContent = chosen
    ? "Asks once more before anything happens."
    : "Choose how to settle the conflict first.";
}

function arm(byPointer) {
  const plan = $("[data-plan]");
  const button = $("[data-undo-arm]", plan);
  // Armed by a press, the second press of a double click must not confirm.
  armedAt = performance.now() + (byPointer ? GUARD_MS : 0);
  $("[data-foot]", plan).classList.add("is-armed");
  button.className = "btn signal";
  button.textContent = `Confirm: ${way().dataset.say}`;
  $("[data-undo-say]", plan).textContent = "Armed. Enter confirms, Esc disarms.";
  button.focus();
}

async function confirm() {
  const plan = $("[data-plan]");
  const direction = plan.dataset.direction;
  const chosen = way();
  armedAt = null;
  try {
    const done = await send("POST", inWorkspace(direction), {
      runs: chosen.dataset.runs.split(" "),
      force: "force" in chosen.dataset,
    });
    if (done.error) throw new Error(`${done.error.message}.`);
    close();
    say(direction === "undo" ? "Undone. Redo brings it back." : "Redone. Undo takes it back again.");
    await refresh();
  } catch (problem) {
    rest();
    say(problem.hint ? `${problem.message}. ${problem.hint}` : problem.message);
  }
}

function start(plan) {
  for (const radio of $$("input[name=way]", plan)) radio.addEventListener("change", rest);
  plan.addEventListener("click", (event) => {
    if (event.target.closest("[data-plan-close]")) {
      event.preventDefault();
      close();
    }
    const button = event.target.closest("[data-undo-arm]");
    if (!button || button.disabled) return;
    if (armedAt === null) arm(event.detail > 0);
    else if (performance.now() >= armedAt) confirm();
  });
  plan.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches(".ways input") && way()) {
      event.preventDefault();
      if (armedAt === null) arm(false);
    }
    if (event.key !== "Escape") return;
    event.stopPropagation();
    if (armedAt === null) close();
    else rest();
  });
}
whenShown("[data-plan]", (plan) => start(plan));

document.addEventListener("click", async (event) => {
  const opener = event.target.closest("[data-undo]");
  if (opener && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    if ($("[data-plan]")) close();
    else await open(opener);
  }
  const settle = event.target.closest("[data-settle]");
  const cancel = event.target.closest("[data-cancel]");
  if (settle) await act(settle, settle.dataset.settle, settle.dataset.settle === "apply" ? "Applied." : "Dropped.");
  if (cancel) await act(cancel, "cancel", "Cancelled.");
});

// A button that does something to the run of this page: the first press asks, the second does it.
async function act(button, verb, words) {
  if (!button.dataset.armed) {
    button.dataset.armed = button.textContent;
    button.classList.add("signal");
    button.lastChild.textContent = `Confirm: ${button.textContent.trim().toLowerCase()}`;
    setTimeout(() => {
      button.lastChild.textContent = button.dataset.armed;
      button.classList.remove("signal");
      delete button.dataset.armed;
    }, 5000);
    return;
  }
  const run = $("[data-output]").dataset.run;
  try {
    const done = await send("POST", inWorkspace(`runs/${run}/${verb}`), {});
    say(done.error ? done.error.message : words);
  } catch (problem) {
    say(problem.message);
  }
  await refresh();
}

// The opener is a link that looks like a button, so Space presses it too.
document.addEventListener("keydown", (event) => {
  if (event.key !== " " || event.repeat || !event.target.matches?.("[data-undo]")) return;
  event.preventDefault();
  event.target.click();
});

onKey((key, _event, typing) => {
  const opener = $("[data-undo]");
  if (typing || key !== "u" || !opener) return false;
  opener.click();
  return true;
});
