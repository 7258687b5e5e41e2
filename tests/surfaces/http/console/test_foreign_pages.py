"""Pages of others try every route of the server in a real browser in which an operator has signed in: a page on another
port of this machine, to which the browser sends the cookie, and a page under another host name. They read nothing, and
they change nothing.
"""

import http.server
import json
import threading

import pytest

from haft.surfaces.http.api.table import ENDPOINTS

VALUES = {"workspace": "corner-shop", "tool": "shell", "name": "mira.okafor"}
PAGES = (
    "",
    "w/corner-shop/now",
    "w/corner-shop/approve",
    "w/corner-shop/files/README.md",
    "w/corner-shop/audit",
    "metrics",
)
HERE = "/w/corner-shop/now"

ATTACK = """
async ([server, routes]) => {
  const got = [];
  const note = (how, route, what) => got.push(`${how} ${route}: ${what}`);
  for (const [method, path] of routes) {
    const address = server + path;
    for (const mode of ["cors", "no-cors"]) {
      for (const type of ["application/json", "text/plain", "application/x-www-form-urlencoded"]) {
        if (mode === "no-cors" && !["GET", "POST"].includes(method)) continue;
        try {
          const body = method === "GET" ? undefined : "{}";
          const headers = body ? { "content-type": type } : {};
          const answer = await fetch(address, { method, mode, credentials: "include", body, headers });
          if (answer.type !== "opaque") note(`fetch ${mode}`, path, `${answer.status} ${await answer.text()}`);
        } catch { /* refused by the browser, because the server did not allow it */ }
        if (method === "GET") break;
      }
    }
    if (method !== "GET") continue;
    const loaded = (name, attributes) => new Promise((done) => {
      const element = document.createElement(name);
      element.onload = () => done("loaded");
      element.onerror = () => done("failed");
      Object.assign(element, attributes);
      document.body.append(element);
      setTimeout(() => done("silent"), 1500);
    });
    const sheet = { rel: "stylesheet", href: address };
    const ways = [["img", { src: address }], ["script", { src: address }], ["link", sheet]];
    for (const [name, attributes] of ways) {
      if (await loaded(name, attributes) === "loaded") note(name, path, "loaded");
    }
    const source = new EventSource(address, { withCredentials: true });
    const opened = await new Promise((done) => {
      source.onopen = () => done(true);
      source.onerror = () => done(false);
      setTimeout(() => done(false), 1500);
    });
    source.close();
    if (opened) note("EventSource", path, "opened");
  }
  return got;
}
"""
FORM = """
([address, method]) => {
  const form = Object.assign(document.createElement("form"), { action: address, method, target: "sink" });
  form.append(Object.assign(document.createElement("input"), { name: "token", value: "x" }));
  const sink = Object.assign(document.createElement("iframe"), { name: "sink" });
  document.body.append(sink, form);
  form.submit();
}
"""


class _Empty(http.server.BaseHTTPRequestHandler):
    """An empty page of somebody else."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><body>")

    def log_message(self, *_arguments):
        pass


@pytest.fixture(scope="module")
def elsewhere():
    """A second server, on another port."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Empty) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def routes(shop):
    """Every route of the API and some pages: method and path."""
    values = VALUES | {"run": shop.runs["cents"], "request": "a_1", "batch": "b_1"}
    found = [(each.method, each.whole_path.format_map(_Defaults(values))) for each in ENDPOINTS]
    return [
        *found,
        *(("GET", f"/{path}") for path in PAGES),
        ("POST", "/sign-in/session"),
        ("POST", "/sign-in/out"),
        ("POST", "/mcp"),
    ]


class _Defaults(dict):
    def __missing__(self, key):
        return "x"


def state(console, client):
    """What an attack could have changed."""
    runs = client.get("/runs", params={"limit": 200}).json()["runs"]
    inbox = client.get("/inbox").json()
    tokens = sorted(each.name for each in (console.home / "tokens").iterdir())
    files = sorted(str(each) for each in console.shop.workspace.rglob("*"))
    own = console.home.parent / "config/haft/haft.toml"
    return (
        json.dumps([[run["id"], run["status"]] for run in runs]),
        json.dumps(inbox, sort_keys=True),
        tokens,
        files,
        own.exists() and own.read_text(),
    )


@pytest.fixture(scope="session")
def operator(console):
    with console.client("watches.the.attack") as client:
        yield client


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "evil.example"])
def test_a_page_of_others_reads_nothing_and_changes_nothing(console, shop, browse, elsewhere, operator, host):
    before = state(console, operator)
    page = browse()
    tried, seen = set(), []
    page.on("request", lambda request: tried.add(request.url.removeprefix(console.url)))
    page.on("response", lambda answer: seen.append((answer.url, answer.status)))
    page.goto(f"http://{host}:{elsewhere}/")
    assert page.evaluate(ATTACK, [console.url, routes(shop)]) == []
    assert {path for _method, path in routes(shop)} <= tried
    # The browser shows a page of others only few of the answers: their headers forbid it to use them.
    assert {status for url, status in seen if url.startswith(console.url)} <= {401, 403, 404, 405}
    assert state(console, operator) == before


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_form_of_others_does_nothing_and_no_page_stands_in_their_frame(
    console, shop, browse, elsewhere, operator, method
):
    before = state(console, operator)
    page = browse()
    for path in (
        f"/api/v1/workspaces/corner-shop/runs/{shop.runs['import']}/cancel",
        "/api/v1/workspaces/corner-shop/undo",
        "/sign-in/out",
        HERE,
    ):
        page.goto(f"http://127.0.0.1:{elsewhere}/")
        with page.expect_response(lambda answer: answer.url.startswith(console.url)) as answer:
            page.evaluate(FORM, [console.url + path, method])
        assert answer.value.status in (403, 404, 405)
        assert "<main" not in answer.value.text()
    page.goto(console.address("now"))
    assert page.url == console.address("now"), "still signed in"
    assert state(console, operator) == before


def test_a_link_from_elsewhere_to_a_page_works_and_one_to_the_api_does_not(console, browse, elsewhere):
    page = browse()
    page.goto(f"http://127.0.0.1:{elsewhere}/")
    page.evaluate("address => { location.href = address; }", console.address("now"))
    page.wait_for_url(console.address("now"))
    page.get_by_role("navigation", name="Main").wait_for()


def test_under_another_name_the_server_answers_nobody(console, browse):
    """A name of the attacker that leads to this address (DNS rebinding)."""
    page = browse()
    answer = page.goto(console.address("now").replace("127.0.0.1", "evil.example"))
    assert answer is not None and answer.status == 403
    assert "corner-shop" not in page.content()
