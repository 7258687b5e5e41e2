// Undo from here on: all runs of a plan in one step, after one more question.
import { inWorkspace, Problem, send } from "./api.js";
import { whenConfirmed } from "./arming.js";
import { $, whenShown } from "./dom.js";

whenShown("[data-undo-runs]", (plan) => {
  const button = $("[data-arm]", plan);
  if (!button) return;
  const says = $("[data-says]", plan);
  whenConfirmed(button, () => `Confirm: ${button.textContent.toLowerCase()}`, async () => {
    try {
      const done = await send("POST", inWorkspace("undo"), { runs: plan.dataset.undoRuns.split(" ") });
      if (done.conflicts.length || done.error) {
        says.textContent = done.error?.message ?? "There is a conflict now. Nothing was undone.";
        return;
      }
      sessionStorage.setItem("haft-said", "Undone.");
      location.href = plan.dataset.then;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      says.textContent = `${error.message}${error.hint ? `. ${error.hint}` : ""}`;
    }
  });
});
