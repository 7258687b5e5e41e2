// The form for a grant: what one call may reach beyond its sandbox. Lists are typed with commas or on lines of their own.
//
//   const grant = grantForm(element, { hosts: ["packages.example.org:443"], env: ["CI"] });
//   grant.value();      {network: […], read: […], write: […], env: […]}; empty ones are left out
//   grant.words();      what it opens, in a sentence

import { element } from "./form.js";

const LISTS = [
  ["network", "Hosts", "Only these hosts, such as registry.example:443. A host without a port means 443 and 80."],
  ["write", "May write", "Paths outside the workspace, or protected ones inside it, such as .git/hooks/."],
  ["read", "May read", "Paths that the sandbox hides, such as ~/.pgpass."],
  ["env", "Variables", "Names of environment variables, such as CI. Their values stay on the server."],
];
let numbers = 0;

export function grantForm(root, offered = {}) {
  const id = `g${++numbers}`;
  const controls = new Map();
  const fields = LISTS.map(([name, title, about]) => {
    const control = element("textarea", {
      class: "field code", rows: 1, id: `${id}-${name}`, "aria-describedby": `${id}-${name}-about`, spellcheck: "false",
    });
    control.value = (offered[name] ?? []).join("\n");
    controls.set(name, control);
    return element("div", { class: "input" }, element("label", { for: control.id }, title), control,
      element("p", { class: "about", id: `${id}-${name}-about` }, about));
  });
  const whole = element("input", { type: "checkbox", id: `${id}-whole` });
  const network = element("div", { class: "input wide ticked" }, element("span", { class: "tick" }, whole,
    element("label", { for: whole.id }, "The whole network, not only these hosts")));
  const sync = () => { controls.get("network").disabled = whole.checked; };
  whole.addEventListener("change", sync);
  root.replaceChildren(element("div", { class: "grant" }, ...fields, network));
  const list = (name) => controls.get(name).value.split(/[\n,]+/).map((text) => text.trim()).filter(Boolean);
  function value() {
    const made = {};
    if (whole.checked) made.network = true;
    for (const [name] of LISTS) {
      if (name === "network" && whole.checked) continue;
      const found = list(name);
      if (found.length) made[name] = found;
    }
    return made;
  }
  return {
    value,
    focus: () => controls.get("network").focus(),
    words() {
      const { network: hosts, write, read, env } = value();
      const parts = [];
      if (hosts === true) parts.push("the whole network");
      else if (hosts) parts.push(`only ${hosts.join(", ")}`);
      if (write) parts.push(`writes to ${write.join(", ")}`);
      if (read) parts.push(`reads ${read.join(", ")}`);
      if (env) parts.push(`${env.join(", ")} from the environment`);
      return parts.length ? `This call only: ${parts.join("; ")}.` : "Nothing is granted yet.";
    },
  };
}
