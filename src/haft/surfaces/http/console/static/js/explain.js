// How haft decides about a call, in the words of `haft permissions test`: the part that decides stands first. All texts
// are only ever text.

import { element } from "./form.js";

const WORDS = { allow: "passes", ask: "needs approval", reject: "is rejected", try: "runs as a trial run first", delegate: "is decided by a program" };
const ICONS = { allow: "done", ask: "held", reject: "rejected", try: "held", delegate: "held" };
const ORDER = ["reject", "ask", "try", "delegate", "allow"];

// A picture that the page keeps in a template, such as `<template data-icon="done">`.
export function icon(name) {
  const kept = document.querySelector(`template[data-icon="${name}"]`);
  return kept ? kept.content.cloneNode(true) : element("span");
}

// Where a rule stands: in a file, or in haft itself.
function where(decision) {
  if (!decision.rule) return null;
  return element("p", { class: "src" }, element("span", { class: "dim" }, decision.rule), " ", element("code", { class: "faint" }, decision.source ?? ""));
}

export function explanation(decision) {
  const verdict = element("p", { class: `verdict is-${decision.action}` }, icon(ICONS[decision.action] ?? "held"),
    element("strong", {}, `This call ${WORDS[decision.action] ?? decision.action}`));
  const nodes = [verdict];
  const first = decision.reason ?? "";
  if (first) nodes.push(element("p", { class: "dim" }, `${first[0].toUpperCase()}${first.slice(1)}`));
  const source = where(decision);
  if (source) nodes.push(source);
  const parts = [...(decision.parts ?? [])].map((part, index) => ({ ...part, number: index + 1 }));
  if (parts.length) {
    parts.sort((one, other) => ORDER.indexOf(one.action) - ORDER.indexOf(other.action));
    nodes.push(element("ol", { class: "parts" }, ...parts.map((part) => element("li", { class: part.action === "allow" ? "passes" : "" },
      element("span", { class: "n" }, String(part.number)),
      element("span", {}, element("code", {}, part.command ?? ""), element("span", { class: "why" }, `${WORDS[part.action] ?? part.action}: ${part.reason ?? ""}`))))));
  }
  return nodes;
}
