// The frame of every page: dark or light, the list of keys, menus, and signing out.
import { $, $$, say } from "./dom.js";
import { send } from "./api.js";

function switchTheme() {
  const root = document.documentElement;
  const chosen = root.dataset.theme;
  const isDark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try {
    localStorage.setItem("haft-theme", root.dataset.theme);
  } catch {
    // A private window keeps nothing.
  }
}

document.addEventListener("click", async (event) => {
  const at = (selector) => event.target.closest(selector);
  const help = $("[data-help-dialog]");
  if (at("[data-theme-toggle]")) switchTheme();
  if (at("[data-help]")) help.showModal();
  if (at("[data-close]")) at("dialog").close();
  if (at("[data-copy]")) {
    await navigator.clipboard.writeText(at("[data-copy]").dataset.copy);
    say("Copied.");
  }
  if (at("[data-sign-out]")) {
    await send("POST", "/sign-in/out");
    location.href = "/sign-in";
  }
});

// A menu stands below its button; without this, a popover stands in the middle of the window.
for (const menu of $$("[popover]")) {
  menu.addEventListener("beforetoggle", (event) => {
    if (event.newState !== "open") return;
    const button = $$(`[popovertarget="${menu.id}"]`).find((one) => one.checkVisibility());
    const box = button?.getBoundingClientRect();
    if (!box) return;
    const isLow = box.top > innerHeight / 2;
    menu.style.top = isLow ? "auto" : `${box.bottom + 4}px`;
    menu.style.bottom = isLow ? `${innerHeight - box.top + 4}px` : "auto";
    const isRight = box.left > innerWidth / 2;
    menu.style.left = isRight ? "auto" : `${box.left}px`;
    menu.style.right = isRight ? `${innerWidth - box.right}px` : "auto";
  });
}
