// The page Tools: a form made from the schema of the tool, how haft decides about the call as it is typed, and the call.
import { inWorkspace, Problem, send } from "./api.js";
import { $, announce, whenShown } from "./dom.js";
import { explanation } from "./explain.js";
import { element, schemaForm } from "./form.js";

const TYPING_MS = 250;

whenShown("[data-tool-form]", (root) => {
  const tool = root.dataset.toolForm;
  const form = schemaForm($("[data-fields]", root), JSON.parse(root.dataset.schema), JSON.parse(root.dataset.value || "{}"));
  const raw = $("[data-raw]", root);
  const toggles = { form: $("[data-mode=form]"), raw: $("[data-mode=raw]") };
  const said = $("[data-said]", root);
  const decided = $("[data-decided]");
  let isRaw = false;
  let latest = 0;
  let timer;

  function given() {
    return isRaw ? JSON.parse(raw.value) : form.value();
  }

  function show(mode) {
    said.textContent = "";
    if (mode === "raw") {
      raw.value = JSON.stringify(form.value(), null, 2);
    } else {
      let value;
      try {
        value = JSON.parse(raw.value);
      } catch {
        said.textContent = "This is no JSON yet.";
        return;
      }
      if (!form.fill(value)) {
        said.textContent = "The form cannot show these arguments whole. Stay with JSON.";
        return;
      }
    }
    isRaw = mode === "raw";
    raw.hidden = !isRaw;
    $("[data-fields]", root).hidden = isRaw;
    for (const [name, button] of Object.entries(toggles)) button.setAttribute("aria-pressed", String(name === mode));
  }
  for (const [name, button] of Object.entries(toggles)) button.addEventListener("click", () => { if ((name === "raw") !== isRaw) show(name); });

  async function decide() {
    const number = ++latest;
    let nodes;
    if (!isRaw && form.isEmpty()) {
      decided.replaceChildren(element("p", { class: "dim" }, "Enter the arguments: the decision appears here while you type."));
      return;
    }
    try {
      const decision = await send("POST", inWorkspace("permissions/test"), { tool, args: given() });
      nodes = explanation(decision);
    } catch (error) {
      nodes = [element("p", { class: "dim" }, error instanceof Problem ? error.message : "This is no JSON yet.")];
    }
    if (number !== latest) return;
    decided.replaceChildren(...nodes);
    announce(nodes[0].textContent);
  }
  function later() {
    clearTimeout(timer);
    timer = setTimeout(decide, TYPING_MS);
  }
  root.addEventListener("input", later);
  root.addEventListener("change", later);
  if (decided) decide();

  root.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter ?? $("[type=submit]", root);
    said.textContent = "";
    let args;
    try {
      args = given();
    } catch {
      said.textContent = "This is no JSON.";
      raw.focus();
      return;
    }
    const wrong = isRaw ? null : form.problem();
    if (wrong) {
      wrong.focus();
      return;
    }
    button.disabled = true;
    try {
      const run = await send("POST", inWorkspace("calls"), { tool, args, trial: button.value === "trial", wait: 0 });
      location.href = `/w/${encodeURIComponent(document.body.dataset.workspace)}/runs/${encodeURIComponent(run.run)}`;
    } catch (error) {
      said.textContent = error instanceof Problem ? `${error.message}${error.hint ? `. ${error.hint}` : ""}` : String(error);
      button.disabled = false;
    }
  });
});

// The filter of the catalogue narrows the list that is there; Enter opens the first tool.
whenShown("[data-narrow]", (field) => {
  const list = document.getElementById(field.dataset.narrow);
  const rows = [...list.querySelectorAll("[data-text]")];
  const count = $("[data-narrowed]");
  function narrow() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      const fits = words.every((word) => row.dataset.text.includes(word));
      row.hidden = !fits;
      left += Number(fits);
    }
    for (const head of list.querySelectorAll("[data-group]")) {
      head.hidden = !rows.some((row) => !row.hidden && row.dataset.in === head.dataset.group);
    }
    if (count) count.textContent = left === rows.length ? "" : left === 0 ? "No tool matches." : `${left} of ${rows.length}`;
  }
  field.addEventListener("input", narrow);
  field.form?.addEventListener("submit", (event) => {
    event.preventDefault();
    rows.find((row) => !row.hidden)?.querySelector("a")?.click();
  });
  narrow();
});
