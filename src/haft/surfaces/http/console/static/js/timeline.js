// The timeline: one tab stop a lane, arrows inside it.
import { $$, whenShown } from "./dom.js";

whenShown("[data-lane]", (lane) => {
  lane.addEventListener("keydown", (event) => {
    const bars = $$("a", lane);
    const at = bars.indexOf(document.activeElement.closest("a"));
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: bars.length - 1 }[event.key];
    if (to === undefined || !bars[to]) return;
    event.preventDefault();
    for (const bar of bars) bar.setAttribute("tabindex", "-1");
    bars[to].setAttribute("tabindex", "0");
    bars[to].focus();
  });
});
