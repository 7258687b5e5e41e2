// Calls of the API. The answer is what the API says; an error has its `code`, `detail` and `hint`.
const workspace = document.body.dataset.workspace;

export const inWorkspace = (path) => `/api/v1/workspaces/${encodeURIComponent(workspace)}/${path}`;

export class Problem extends Error {
  constructor(status, facts) {
    super(facts.detail ?? `The server answered ${status}.`);
    this.status = status;
    this.code = facts.code ?? "";
    this.hint = facts.hint ?? "";
  }
}

export async function send(method, address, body) {
  const options = { method, headers: { accept: "application/json" }, credentials: "same-origin" };
  if (body !== undefined) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(address, options);
  } catch {
    throw new Problem(0, { detail: "The server cannot be reached.", code: "unreachable" });
  }
  if (answer.status === 401) {
    const from = encodeURIComponent(location.pathname + location.search);
    location.href = `/sign-in?to=${from}`;
    throw new Problem(401, { detail: "Sign in first.", code: "unauthenticated" });
  }
  const text = await answer.text();
  let facts = {};
  try {
    facts = text ? JSON.parse(text) : {};
  } catch {
    facts = { detail: text };
  }
  if (!answer.ok) throw new Problem(answer.status, facts);
  return facts;
}
