// The editor of a rule: while it is typed, past calls are decided again; saving asks once more.
import { inWorkspace, Problem, send } from "./api.js";
import { whenConfirmed } from "./arming.js";
import { $, say, whenShown } from "./dom.js";
import { element } from "./form.js";

const TYPING_MS = 350;
const WORDS = { allow: "passed", ask: "needed approval", reject: "was rejected", try: "ran as a trial run first", delegate: "was decided by a program" };
const NOW = { allow: "would pass", ask: "would need approval", reject: "would be rejected", try: "would run as a trial run first", delegate: "would be decided by a program" };

const calls = (count) => `${count.toLocaleString("en")} ${count === 1 ? "call" : "calls"}`;

function subject(args) {
  for (const key of ["command", "path", "pattern", "prompt"]) if (typeof args[key] === "string") return args[key];
  return JSON.stringify(args);
}

function replayed(found) {
  const total = found.lookedAt;
  const flips = found.flips;
  const sentence = flips.length === 0
    ? `None of ${calls(total)} would be decided otherwise.`
    : `${flips.length.toLocaleString("en")} of ${calls(total)} would be decided otherwise.`;
  const runs = `/w/${encodeURIComponent(document.body.dataset.workspace)}/runs/`;
  return [
    element("p", {}, element("strong", {}, sentence)),
    flips.length === 0 ? null : element("ol", { class: "flips", tabindex: "0", "aria-label": "Calls that would be decided otherwise" }, ...flips.map((flip) => element("li", {},
      element("a", { href: runs + encodeURIComponent(flip.run) }, element("b", {}, flip.tool), " ", element("code", {}, subject(flip.args).slice(0, 160))),
      element("span", { class: "then" }, `${WORDS[flip.was] ?? flip.was}, `, element("b", {}, NOW[flip.now] ?? flip.now))))),
  ].filter(Boolean);
}

whenShown("[data-rule]", (form) => {
  const source = form.dataset.rule || null;
  const text = $("[data-text]", form);
  const place = $("[data-replayed]", form);
  const said = $("[data-said]", form);
  const first = text.value;
  let latest = 0;
  let timer;

  async function replay() {
    const number = ++latest;
    let nodes;
    try {
      nodes = replayed(await send("POST", inWorkspace("permissions/replay-change"), { source, text: text.value }));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      nodes = [element("p", { class: "problem" }, error.message), error.hint ? element("p", { class: "dim" }, error.hint) : null].filter(Boolean);
    }
    if (number === latest) place.replaceChildren(...nodes);
  }
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(replay, TYPING_MS);
  });
  if (!source) replay();

  async function change(work, done) {
    said.textContent = "";
    try {
      const answer = await work();
      sessionStorage.setItem("haft-said", answer.losesTrust ? `${done} The file is not trusted any more: haft trust.` : done);
      location.href = form.dataset.then;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      said.textContent = `${error.message}${error.hint ? `. ${error.hint}` : ""}`;
    }
  }
  const save = $("[data-save]", form);
  if (save) {
    whenConfirmed(save, () => (source ? "Confirm: save the rule" : "Confirm: add the rule"), () => {
      const body = { source, text: text.value };
      if (!source) body.place = form.elements.place.value;
      return change(() => send("POST", inWorkspace("permissions/write"), body), text.value === first && source ? "Nothing was changed." : "Saved.");
    });
  }
  const remove = $("[data-remove]", form);
  if (remove) {
    whenConfirmed(remove, () => "Confirm: remove the rule", () => change(() => send("POST", inWorkspace("permissions/remove"), { source }), "Removed."));
  }
  form.addEventListener("submit", (event) => event.preventDefault());
});

const told = sessionStorage.getItem("haft-said");
if (told) {
  sessionStorage.removeItem("haft-said");
  say(told);
}
