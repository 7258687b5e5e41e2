// A form made from a JSON Schema, for the arguments of a tool: on the page Tools, and for an edited call.
//
//   const form = schemaForm(element, schema, value);
//   form.value();        what was entered, as JSON; empty optional fields are left out
//   form.fill(value);    false if the form cannot say this value, which then needs JSON
//
// What a form cannot say (free objects, mixed arrays, schemas that are too deep) is a field for JSON. All texts of the
// schema were written by a tool: they are only ever text.

const DEEPEST = 6;
const LONG_TEXT = new Set(["command", "content", "prompt", "old_string", "new_string", "text", "body", "query", "context", "patch"]);
let numbers = 0;

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

export function schemaForm(root, schema, value) {
  const whole = { root: schema, top: objectField(schema, schema, "", 0, true) };
  root.replaceChildren(whole.top.node);
  if (value !== undefined) whole.top.fill(value);
  return {
    value: () => whole.top.value() ?? {},
    fill: (other) => isObject(other) && whole.top.fill(other),
    problem: () => firstProblem(root),
    // Whether something that the call needs is not entered yet.
    isEmpty: () => [...root.querySelectorAll("[aria-required]")].some((control) => control.value === "" && control.checkVisibility()),
    focus: () => root.querySelector("input, textarea, select")?.focus(),
  };
}

// ---- the schema ----

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Follows `$ref` within the document, and drops `null` where a field may also be left out.
function resolved(schema, root, depth = 0) {
  if (!isObject(schema)) return {};
  if (typeof schema.$ref === "string" && schema.$ref.startsWith("#/") && depth < DEEPEST) {
    const path = schema.$ref.slice(2).split("/").map((key) => decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~"));
    const found = path.reduce((here, key) => (isObject(here) && Object.hasOwn(here, key) ? here[key] : undefined), root);
    const { $ref, ...more } = schema;
    return resolved({ ...(isObject(found) ? found : {}), ...more }, root, depth + 1);
  }
  if (Array.isArray(schema.allOf) && schema.allOf.length === 1) {
    const { allOf, ...more } = schema;
    return resolved({ ...resolved(allOf[0], root, depth + 1), ...more }, root, depth + 1);
  }
  const kinds = variantsOf(schema);
  if (kinds) {
    const some = kinds.filter((kind) => resolved(kind, root, depth + 1).type !== "null");
    if (some.length === 1 && some.length < kinds.length && depth < DEEPEST) {
      const { anyOf, oneOf, ...more } = schema;
      return resolved({ ...resolved(some[0], root, depth + 1), ...more }, root, depth + 1);
    }
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((type) => type !== "null");
    if (types.length === 1) return { ...schema, type: types[0] };
  }
  return schema;
}

function variantsOf(schema) {
  return Array.isArray(schema.oneOf) ? schema.oneOf : Array.isArray(schema.anyOf) ? schema.anyOf : null;
}

function typeOf(schema) {
  if (Array.isArray(schema.enum)) return "enum";
  if (Object.hasOwn(schema, "const")) return "const";
  if (variantsOf(schema)) return "variants";
  if (typeof schema.type === "string") return schema.type;
  if (isObject(schema.properties)) return "object";
  return "any";
}

// ---- fields: each has a node, value() and fill(value) ----

function field(schema, root, name, depth, isRequired) {
  const known = resolved(schema, root);
  if (depth > DEEPEST) return jsonField(known, isRequired);
  switch (typeOf(known)) {
    case "enum": return choiceField(known, isRequired);
    case "const": return constantField(known);
    case "variants": return variantField(known, root, name, depth, isRequired);
    case "boolean": return booleanField(known, isRequired);
    case "integer":
    case "number": return numberField(known, isRequired);
    case "string": return textField(known, name, isRequired);
    case "array": return known.items && !Array.isArray(known.items) ? arrayField(known, root, name, depth, isRequired) : jsonField(known, isRequired);
    case "object": return isObject(known.properties) && Object.keys(known.properties).length > 0
      ? objectField(known, root, name, depth, isRequired) : jsonField(known, isRequired);
    default: return jsonField(known, isRequired);
  }
}

function labelled(inner, schema, name, isRequired) {
  const id = `f${++numbers}`;
  const hint = hintOf(schema);
  const about = hint ? element("p", { class: "about", id: `${id}-about` }, hint) : null;
  const problem = element("p", { class: "problem", id: `${id}-problem`, hidden: true });
  const control = inner.control;
  if (control) {
    control.id = id;
    const described = [hint ? `${id}-about` : "", `${id}-problem`].join(" ").trim();
    control.setAttribute("aria-describedby", described);
    if (isRequired) control.setAttribute("aria-required", "true");
  }
  const words = element("span", { class: "key" }, name);
  const more = isRequired ? element("span", { class: "needed" }, "required") : null;
  const title = control ? element("label", { for: id }, words, more) : element("div", { class: "label" }, words, more);
  return element("div", { class: `input${inner.isGroup ? " group" : inner.isTick ? " ticked" : ""}` }, title, about, inner.node, problem);
}

function hintOf(schema) {
  const parts = [];
  if (typeof schema.description === "string") parts.push(schema.description);
  const bounds = [];
  if (Number.isFinite(schema.minimum)) bounds.push(`at least ${schema.minimum}`);
  if (Number.isFinite(schema.maximum)) bounds.push(`at most ${schema.maximum}`);
  if (Number.isFinite(schema.minLength) && schema.minLength > 1) bounds.push(`at least ${schema.minLength} characters`);
  if (Number.isFinite(schema.maxLength)) bounds.push(`at most ${schema.maxLength} characters`);
  if (typeof schema.pattern === "string") bounds.push(`matches ${schema.pattern}`);
  if (schema.default !== undefined && !isObject(schema.default) && schema.default !== "" && schema.default !== null) bounds.push(`default ${JSON.stringify(schema.default)}`);
  if (bounds.length) parts.push(`${parts.length ? "" : ""}${bounds.join(", ").replace(/^./, (letter) => letter.toUpperCase())}.`);
  return parts.join(" ");
}

function objectField(schema, root, name, depth, isRequired) {
  const known = resolved(schema, root);
  const required = new Set(Array.isArray(known.required) ? known.required : []);
  const keys = Object.keys(known.properties ?? {}).sort((one, other) => Number(required.has(other)) - Number(required.has(one)));
  const fields = new Map(keys.map((key) => [key, field(known.properties[key], root, key, depth + 1, required.has(key))]));
  const node = element(depth ? "fieldset" : "div", { class: "fields" },
    depth ? element("legend", { class: "sr" }, name) : null,
    ...keys.map((key) => labelled(fields.get(key), resolved(known.properties[key], root), key, required.has(key))));
  return {
    node,
    isGroup: true,
    value() {
      const made = {};
      for (const [key, one] of fields) {
        const value = one.value();
        if (value !== undefined) made[key] = value;
      }
      return Object.keys(made).length || isRequired ? made : undefined;
    },
    fill(value) {
      if (value !== undefined && !isObject(value)) return false;
      const isKnown = Object.keys(value ?? {}).every((key) => fields.has(key));
      let isFilled = isKnown;
      for (const [key, one] of fields) isFilled = one.fill(value?.[key]) && isFilled;
      return isFilled;
    },
  };
}

function textField(schema, name, isRequired) {
  const isLong = LONG_TEXT.has(name) || schema.contentMediaType || (schema.maxLength ?? 0) > 200;
  const control = isLong
    ? element("textarea", { class: "field code", rows: 1, spellcheck: "false", autocomplete: "off" })
    : element("input", { class: "field code", type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
  if (typeof schema.default === "string" && !isRequired) control.placeholder = schema.default;
  if (typeof schema.default === "string" && isRequired) control.value = schema.default;
  return {
    node: control,
    control,
    // An empty text that is required is sent: a tool can want one.
    value: () => (control.value === "" && !isRequired ? undefined : control.value),
    fill(value) {
      if (value !== undefined && value !== null && typeof value !== "string") return false;
      control.value = value ?? "";
      return value !== "" || isRequired;
    },
  };
}

function numberField(schema, isRequired) {
  const control = element("input", {
    class: "field code short", type: "text", inputmode: schema.type === "integer" ? "numeric" : "decimal", autocomplete: "off",
  });
  if (schema.default !== undefined && !isRequired) control.placeholder = String(schema.default);
  return {
    node: control,
    control,
    value() {
      const text = control.value.trim();
      if (text === "") return undefined;
      const number = Number(text);
      const isRight = Number.isFinite(number) && (schema.type !== "integer" || Number.isInteger(number));
      say(control, isRight ? "" : schema.type === "integer" ? "Enter a whole number." : "Enter a number.");
      return isRight ? number : text;
    },
    fill(value) {
      if (value !== undefined && value !== null && typeof value !== "number") return false;
      control.value = value ?? "";
      return true;
    },
  };
}

function booleanField(schema, isRequired) {
  if (!isRequired && schema.default === undefined) {
    const control = element("select", { class: "field short" }, element("option", { value: "" }, "not set"),
      element("option", { value: "true" }, "yes"), element("option", { value: "false" }, "no"));
    return {
      node: control,
      control,
      value: () => (control.value === "" ? undefined : control.value === "true"),
      fill(value) {
        control.value = typeof value === "boolean" ? String(value) : "";
        return value === undefined || typeof value === "boolean";
      },
    };
  }
  const control = element("input", { type: "checkbox" });
  control.checked = schema.default === true;
  return {
    node: element("span", { class: "tick" }, control),
    control,
    isTick: true,
    value: () => (control.checked === (schema.default ?? null) && !isRequired ? undefined : control.checked),
    fill(value) {
      control.checked = value ?? (schema.default === true);
      return value === undefined || typeof value === "boolean";
    },
  };
}

function choiceField(schema, isRequired) {
  const values = schema.enum.filter((value) => value !== null || isRequired);
  const control = element("select", { class: "field" }, isRequired ? null : element("option", { value: "" }, "not set"),
    ...values.map((value, index) => element("option", { value: String(index) }, typeof value === "string" ? value : JSON.stringify(value))));
  const first = values.findIndex((value) => same(value, schema.default));
  if (first >= 0) control.value = String(first);
  return {
    node: control,
    control,
    value: () => (control.value === "" ? undefined : values[Number(control.value)]),
    fill(value) {
      const at = values.findIndex((one) => same(one, value));
      if (at >= 0) control.value = String(at);
      else if (!isRequired) control.value = "";
      return at >= 0 || value === undefined;
    },
  };
}

function constantField(schema) {
  return {
    node: element("code", {}, JSON.stringify(schema.const)),
    control: null,
    value: () => schema.const,
    fill: (value) => value === undefined || same(value, schema.const),
  };
}

function variantField(schema, root, name, depth, isRequired) {
  const kinds = variantsOf(schema).map((kind) => resolved(kind, root)).filter((kind) => kind.type !== "null" || isRequired);
  const fields = kinds.map((kind) => field(kind, root, name, depth + 1, true));
  const control = element("select", { class: "field" }, isRequired ? null : element("option", { value: "" }, "not set"),
    ...kinds.map((kind, index) => element("option", { value: String(index) }, variantName(kind, index))));
  const place = element("div", { class: "variant" });
  const show = () => place.replaceChildren(...(control.value === "" ? [] : [fields[Number(control.value)].node]));
  control.addEventListener("change", show);
  fields.forEach((one, index) => one.control?.setAttribute("aria-label", `${name}, ${variantName(kinds[index], index)}`));
  show();
  return {
    node: element("div", { class: "variants" }, control, place),
    control,
    value: () => (control.value === "" ? undefined : fields[Number(control.value)].value()),
    fill(value) {
      if (value === undefined) {
        if (!isRequired) control.value = "";
        show();
        return true;
      }
      const at = fields.findIndex((one) => one.fill(value));
      if (at >= 0) control.value = String(at);
      show();
      return at >= 0;
    },
  };
}

function variantName(schema, index) {
  if (typeof schema.title === "string") return schema.title;
  if (typeof schema.type === "string") return { object: "several values", array: "a list", string: "text", integer: "whole number", boolean: "yes or no", null: "nothing" }[schema.type] ?? schema.type;
  return Array.isArray(schema.enum) ? schema.enum.slice(0, 3).join(", ") : `form ${index + 1}`;
}

function arrayField(schema, root, name, depth, isRequired) {
  const rows = [];
  const list = element("ol", { class: "rows" });
  const add = element("button", { class: "btn small", type: "button" }, `Add to ${name}`);
  const node = element("div", { class: "array" }, list, add);
  function append(value) {
    const inner = field(schema.items, root, name, depth + 1, true);
    const remove = element("button", { class: "btn small quiet", type: "button", "aria-label": `Remove entry ${rows.length + 1} of ${name}` }, "Remove");
    const row = { inner, item: element("li", {}, element("div", {}, inner.node), remove) };
    inner.control?.setAttribute("aria-label", `${name}, entry ${rows.length + 1}`);
    remove.addEventListener("click", () => {
      rows.splice(rows.indexOf(row), 1);
      row.item.remove();
      add.focus();
      node.dispatchEvent(new Event("input", { bubbles: true }));
    });
    rows.push(row);
    list.append(row.item);
    return value === undefined || inner.fill(value);
  }
  add.addEventListener("click", () => {
    append();
    rows.at(-1).item.querySelector("input, textarea, select")?.focus();
    node.dispatchEvent(new Event("input", { bubbles: true }));
  });
  for (let number = 0; number < Math.min(schema.minItems ?? 0, 5); number += 1) append();
  return {
    node,
    isGroup: true,
    value: () => (rows.length || isRequired ? rows.map((row) => row.inner.value() ?? null) : undefined),
    fill(value) {
      if (value !== undefined && !Array.isArray(value)) return false;
      for (const row of rows.splice(0)) row.item.remove();
      return (value ?? []).map((one) => append(one)).every(Boolean);
    },
  };
}

function jsonField(schema, isRequired) {
  const control = element("textarea", { class: "field code", rows: 2, spellcheck: "false", placeholder: schema.type === "array" ? "[…]" : "JSON" });
  return {
    node: control,
    control,
    value() {
      if (control.value.trim() === "") return isRequired ? null : undefined;
      try {
        const value = JSON.parse(control.value);
        say(control, "");
        return value;
      } catch {
        say(control, "This is no JSON.");
        return control.value;
      }
    },
    fill(value) {
      control.value = value === undefined ? "" : JSON.stringify(value, null, 2);
      return true;
    },
  };
}

function say(control, text) {
  const problem = document.getElementById(`${control.id}-problem`);
  if (text) control.setAttribute("aria-invalid", "true"); else control.removeAttribute("aria-invalid");
  if (problem) {
    problem.textContent = text;
    problem.hidden = !text;
  }
}

function firstProblem(root) {
  return root.querySelector("[aria-invalid]");
}

function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}
