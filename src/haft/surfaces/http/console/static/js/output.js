// The output of a run: search that leaves the text as it is, following, and lines as they come.
import { $, $$, whenShown } from "./dom.js";
import { followRun, onEvent, refresh } from "./live.js";

const MOST_LINES = 20_000; // Then the first lines go: a page must stay quick.
const UNSEEN =
  /\x1b\[[0-9;?]*[ -/]*[@-~]|[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{e0100}-\u{e01ef}]/gu;

// Characters that show nothing, as the server writes them.
function codeOf(text) {
  return [...text]
    .map((character) => {
      const code = character.codePointAt(0);
      if (code >= 0x20 && code < 0x7f) return character;
      if (code < 0x100) return { 9: "\\t", 10: "\\n", 13: "\\r" }[code] ?? `\\x${code.toString(16).padStart(2, "0")}`;
      return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
    })
    .join("");
}

function write(into, text) {
  let at = 0;
  for (const found of text.matchAll(UNSEEN)) {
    if (found[0] === " " || found[0] === "\t") continue;
    into.append(text.slice(at, found.index));
    const code = document.createElement("span");
    code.className = "unseen";
    code.textContent = codeOf(found[0]);
    into.append(code);
    at = found.index + found[0].length;
  }
  into.append(text.slice(at));
}

// Many test runners mark what passed and what failed.
function mark(row, stream) {
  if (stream === "stderr" || row.className) return;
  const first = row.lastElementChild.textContent.trimStart()[0];
  if ("✓✔".includes(first)) row.className = "good";
  else if ("✗✘✖×".includes(first)) row.className = "poor";
}

class Log {
  constructor(section) {
    this.section = section;
    this.log = $("[data-log]", section);
    this.run = section.dataset.run;
    this.last = Number(section.dataset.seq);
    this.number = Number(section.dataset.number);
    this.open = "endsOpen" in section.dataset ? this.log.lastElementChild : null;
    this.stream = this.open?.classList.contains("err") ? "stderr" : "stdout";
    this.follow = $("[data-follow]", section);
    if (!("isOpen" in section.dataset)) return;
    this.log.scrollTop = this.log.scrollHeight;
    followRun(this.run, () => this.last);
    this.follow?.addEventListener("click", () => this.setFollow(!this.isFollowing));
    // Scrolling up stops following, scrolling to the end begins again.
    this.log.addEventListener("wheel", () => this.scrolled(), { passive: true });
    this.log.addEventListener("keydown", () => this.scrolled());
  }

  get isFollowing() {
    return this.follow?.getAttribute("aria-pressed") === "true";
  }

  setFollow(isOn) {
    this.follow.setAttribute("aria-pressed", String(isOn));
    if (isOn) this.log.scrollTop = this.log.scrollHeight;
  }

  scrolled() {
    requestAnimationFrame(() => {
      const { scrollTop, scrollHeight, clientHeight } = this.log;
      if (this.follow) this.follow.setAttribute("aria-pressed", String(scrollHeight - scrollTop - clientHeight < 8));
    });
  }

  received({ kind, data }) {
    if (data.run !== this.run) return;
    if (kind === "gap") {
      this.gap();
      return;
    }
    if (!(data.seq > this.last)) return;
    this.last = data.seq;
    if (kind === "stdout" || kind === "stderr") this.append(kind, data.text, data.skipped);
  }

  append(stream, text, skipped) {
    $(".empty", this.log)?.remove();
    if (skipped) this.gap(skipped);
    if (stream !== this.stream) this.open = null;
    this.stream = stream;
    const pieces = text.split("\n");
    pieces.forEach((piece, at) => {
      const isLast = at === pieces.length - 1;
      if (piece || !isLast) {
        this.open ??= this.line(stream);
        write(this.open.lastElementChild.firstElementChild, piece);
        mark(this.open, stream);
      }
      if (!isLast) this.open = null;
    });
    while (this.log.children.length > MOST_LINES) this.log.firstElementChild.remove();
    $("[data-lines]", this.section).textContent =
      `${this.number.toLocaleString("en")} ${this.number === 1 ? "line" : "lines"}`;
    if (this.isFollowing) this.log.scrollTop = this.log.scrollHeight;
  }

  line(stream) {
    this.number += 1;
    const row = document.createElement("div");
    if (stream === "stderr") row.className = "err";
    const number = document.createElement("i");
    number.textContent = this.number;
    const text = document.createElement("span");
    text.append(document.createElement("bdi"));
    row.append(number, text);
    this.log.append(row);
    return row;
  }

  gap(skipped) {
    const row = document.createElement("p");
    row.className = "gap";
    row.textContent = skipped
      ? `${skipped.toLocaleString("en")} bytes were left out while the page was behind. `
      : "Some output was left out while the page was behind. ";
    const load = document.createElement("button");
    load.type = "button";
    load.className = "btn small";
    load.textContent = "Load them";
    load.addEventListener("click", () => location.reload());
    row.append(load);
    this.log.append(row);
    this.open = null;
  }
}

const logs = new Set();
whenShown("[data-output]", (section) => {
  const log = new Log(section);
  if ("isOpen" in section.dataset) logs.add(log);
});
onEvent((event) => {
  for (const log of logs) {
    log.received(event);
    if (event.kind === "outcome" && event.data.run === log.run) refresh();
  }
});

// ---- search ----

document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-find]") || !CSS.highlights) return;
  const section = event.target.closest("[data-output]");
  const wanted = event.target.value.toLowerCase();
  const ranges = [];
  if (wanted) {
    const walker = document.createTreeWalker($("[data-log]", section), NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.parentElement.localName === "i") continue;
      const text = node.data.toLowerCase();
      for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + wanted.length);
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set("find", new Highlight(...ranges));
  $("[data-find-count]", section).textContent = wanted ? `${ranges.length.toLocaleString("en")} found` : "";
  ranges[0]?.startContainer.parentElement.scrollIntoView({ block: "nearest" });
});
