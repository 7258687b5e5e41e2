// A button that asks once more before it does anything: the first press arms it, the second one within the bar confirms,
// Escape disarms. Armed by a pointer, it counts only after a moment: a double click confirms nothing.
const GUARD_MS = 600;

export function whenConfirmed(button, words, act) {
  const foot = button.closest("[data-foot]");
  const rest = { text: button.textContent, class: button.className };
  let isArmed = false;
  let from = 0;
  function disarm() {
    isArmed = false;
    button.textContent = rest.text;
    button.className = rest.class;
    foot?.classList.remove("is-armed");
  }
  button.addEventListener("click", async (event) => {
    if (!isArmed) {
      isArmed = true;
      from = event.detail ? performance.now() + GUARD_MS : 0;
      button.textContent = words();
      button.className = "btn signal";
      foot?.classList.add("is-armed");
      return;
    }
    if (performance.now() < from) return;
    disarm();
    button.disabled = true;
    try {
      await act();
    } finally {
      button.disabled = false;
    }
  });
  button.addEventListener("keydown", (event) => { if (event.key === "Escape") disarm(); });
  button.addEventListener("blur", disarm);
  return disarm;
}
