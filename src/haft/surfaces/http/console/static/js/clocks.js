// Clocks: what is left counts down, what runs counts up. The server says the seconds when it makes the page.
import { $$ } from "./dom.js";

const made = performance.now();

function asClock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const two = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

// The server's clock now. A patch keeps the attribute of the page that is shown, so one offset holds for all.
const serverAt = Number(document.body.dataset.at);
export const now = () => serverAt + (performance.now() - made) / 1000;

function tick() {
  for (const node of $$("[data-until]")) node.textContent = asClock(Number(node.dataset.until) - now());
  for (const node of $$("[data-since]")) node.textContent = asClock(now() - Number(node.dataset.since));
}
tick();
setInterval(tick, 1000);
