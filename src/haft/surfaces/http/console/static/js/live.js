// Live updates. All tabs of a browser share one stream: one tab leads, reads the stream, and tells the others what came.
// A tab that is hidden needs nothing, so when all are hidden, the stream is closed. Tabs that are shown load their page
// again and patch it.
//
// While there is no stream, the page says since when it shows the past, and answers are off.
import { $, announce } from "./dom.js";
import { patchPage } from "./patch.js";

const workspace = document.body.dataset.workspace;
const STREAM = "/api/v1/events";
const LOCK = "haft-stream";
const QUIET_MS = 120; // Events come in bursts: one patch for all of them.
const SLOWEST_MS = 900;
const REST = 4; // A page that takes long to make is asked for less often: it rests this many times as long.
const HELD_MS = 700; // What waited for the pointer to leave is tried again after this.

const listeners = new Set(); // What pages do with events beside patching.
const shownRuns = new Map(); // The runs whose output this tab shows: a function for the number of the last event.
export const onEvent = (listen) => listeners.add(listen);

const channel = workspace ? new BroadcastChannel("haft-events") : null;
const tab = crypto.randomUUID();
let isLive = false;
let lostAt = null;
let source = null;
let letGo = null; // Ends this tab's lead.
const others = new Map(); // For the leader: the runs that each other tab shows.

// ---- the state of this tab ----

function setLive(now) {
  if (now === isLive && now) return;
  if (now) {
    const wasLost = lostAt !== null;
    isLive = true;
    lostAt = null;
    document.documentElement.classList.remove("not-live");
    const line = $("[data-live]");
    if (!line.hidden) {
      line.hidden = true;
      line.replaceChildren();
      announce("Live again.");
    }
    if (wasLost) soon();
    return;
  }
  isLive = false;
  lostAt ??= new Date();
  const at = lostAt;
  // A stream that comes back at once is not worth a word.
  setTimeout(() => {
    if (lostAt === at && !document.hidden) showLost(at);
  }, 1500);
}

function showLost(at) {
  document.documentElement.classList.add("not-live");
  const line = $("[data-live]");
  const words = document.createElement("strong");
  words.textContent = `Not live since ${at.toTimeString().slice(0, 8)}.`;
  const more = document.createElement("span");
  more.textContent = "The page shows the last known state. Answers are off until it is live again.";
  const again = document.createElement("button");
  again.type = "button";
  again.className = "btn small";
  again.textContent = "Try now";
  again.addEventListener("click", () => channel.postMessage({ type: "again" }) ?? open());
  line.replaceChildren(words, more, again);
  line.hidden = false;
}

export const isPageLive = () => isLive;

// ---- patching ----

let timer = null;
let firstAsked = 0;
let loading = false;
let missed = false;
let nextAt = 0;
const patchers = []; // What a page does with the new page before the common patch; true ends it.
export const onPage = (handle) => patchers.push(handle);

export function soon() {
  if (document.hidden) {
    missed = true;
    return;
  }
  const now = performance.now();
  if (timer === null) firstAsked = now;
  clearTimeout(timer);
  const quiet = Math.min(QUIET_MS, Math.max(0, SLOWEST_MS - (now - firstAsked)));
  timer = setTimeout(refresh, Math.max(quiet, nextAt - now));
}

export async function refresh() {
  timer = null;
  if (loading) {
    missed = true;
    return;
  }
  loading = true;
  missed = false;
  const began = performance.now();
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, credentials: "same-origin" });
    if (answer.redirected && new URL(answer.url).pathname.startsWith("/sign-in")) {
      location.href = answer.url;
      return;
    }
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (answer.status < 500 && !patchers.some((handle) => handle(next, answer)) && patchPage(next)) {
      setTimeout(soon, HELD_MS);
    }
  } catch {
    // The stream says that the server is away.
  } finally {
    loading = false;
    nextAt = performance.now() + REST * (performance.now() - began);
    if (missed) soon();
  }
}

// What goes on moves also when nothing happens: bars grow, time runs out.
const MOVING_MS = 8000;
setInterval(() => {
  if (workspace && isLive && !document.hidden && $("main [data-since], main [data-lane]")) soon();
}, MOVING_MS);

// ---- the stream, in the tab that leads ----

function received(event) {
  for (const listen of listeners) listen(event);
  if (event.kind === "gap" || event.workspace === undefined || event.workspace === workspace) {
    if (event.kind === "run" || event.kind === "inbox" || event.kind === "tools" || event.kind === "gap") soon();
  }
}

function tell(message) {
  channel.postMessage(message);
  handle(message);
}

function handle(message) {
  if (message.type === "event") received(message.event);
  else if (message.type === "live") setLive(message.live);
}

channel?.addEventListener("message", ({ data }) => {
  handle(data);
  if (source === null && letGo === null) return;
  if (data.type === "hello") {
    others.set(data.tab, data.runs);
    channel.postMessage({ type: "live", live: isLive });
    reopenIfNeeded();
  } else if (data.type === "bye") {
    others.delete(data.tab);
    if (others.size === 0 && document.hidden) close();
  } else if (data.type === "again") open();
});

let opened = "";
function wanted() {
  const names = new Map();
  const add = (runs) => {
    for (const [name, after] of runs) names.set(name, Math.min(names.get(name) ?? Infinity, after));
  };
  for (const runs of others.values()) add(runs);
  if (!document.hidden) add(ownRuns());
  return names;
}
const ownRuns = () => [...shownRuns].map(([run, last]) => [`${workspace}/${run}`, last()]);

function reopenIfNeeded() {
  const names = [...wanted().keys()].sort().join(" ");
  if (source === null || names !== opened) open();
}

let lastId = null;
function open() {
  if (letGo === null) return;
  source?.close();
  const runs = wanted();
  opened = [...runs.keys()].sort().join(" ");
  const query = new URLSearchParams();
  for (const [name, after] of runs) query.append("run", `${name}:${after}`);
  if (lastId) query.set("after", lastId);
  source = new EventSource(`${STREAM}?${query}`);
  source.addEventListener("open", () => tell({ type: "live", live: true }));
  source.addEventListener("error", () => {
    tell({ type: "live", live: false });
    // A browser gives up on an answer that is no stream: try again later.
    if (source?.readyState === EventSource.CLOSED) setTimeout(open, 3000);
  });
  const kinds = [
    "run",
    "inbox",
    "tools",
    "gap",
    "ready",
    "status",
    "stdout",
    "stderr",
    "progress",
    "child",
    "connection",
    "outcome",
    "end",
  ];
  for (const kind of kinds) {
    source.addEventListener(kind, (event) => {
      if (event.lastEventId) lastId = event.lastEventId;
      const data = JSON.parse(event.data);
      tell({ type: "event", event: { kind, workspace: data.workspace, data } });
    });
  }
}

function close() {
  source?.close();
  source = null;
  letGo?.();
  letGo = null;
}

function lead() {
  if (!workspace || letGo !== null) return;
  navigator.locks.request(
    LOCK,
    () =>
      new Promise((resolve) => {
        if (document.hidden) {
          resolve();
          return;
        }
        letGo = resolve;
        channel.postMessage({ type: "who" });
        open();
      }),
  );
}

// A new leader asks who else is there.
channel?.addEventListener("message", ({ data }) => {
  if (data.type === "who" && !document.hidden) greet();
});
const greet = () => channel?.postMessage({ type: "hello", tab, runs: ownRuns() });

function shown() {
  greet();
  lead();
  if (missed) soon();
}
function hidden() {
  channel?.postMessage({ type: "bye", tab });
  // Another tab that is shown takes over: it waits for the lock.
  close();
}

// Shows the output of a run in this tab: the stream gets its events too. `last` returns the number of the last event.
export function followRun(run, last) {
  shownRuns.set(run, last);
  greet();
  if (letGo !== null) reopenIfNeeded();
}
export function unfollowRun(run) {
  shownRuns.delete(run);
}

if (workspace) {
  document.addEventListener("visibilitychange", () => (document.hidden ? hidden() : shown()));
  addEventListener("pagehide", hidden);
  addEventListener("pageshow", (event) => {
    if (event.persisted) {
      missed = true;
      shown();
    }
  });
  if (!document.hidden) shown();
}
