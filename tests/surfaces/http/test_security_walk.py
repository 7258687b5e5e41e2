"""Every route of the application is tried by those who must not use it. The routes are taken from the application
itself: a route without a rule, or one that nobody here knows, fails these tests."""

import json
import re

import httpx
import pytest
from starlette.routing import BaseRoute

from haft import tool
from haft.service import ALLOWED, NEVER_FOR_A_PART, ROLES, NamedWorkspace
from haft.surfaces.http.api.endpoint import SMALL
from haft.surfaces.http.api.table import ENDPOINTS
from haft.surfaces.http.app import application
from haft.surfaces.http.rules import GuardedMount, GuardedRoute

from .conftest import serving

PUBLIC = {
    "/healthz",
    "/readyz",
    "/sign-in",
    "/sign-in/sign_in.js",
    "/sign-in/session",
    "/sign-in/out",
    "/sign-in/oidc",
    "/sign-in/oidc/callback",
    "/static/{name:path}",
}
"""What is answered without an identity."""
FOREIGN = {
    "another origin": {"origin": "http://evil.example"},
    "another port": {"origin": "http://127.0.0.1:1"},
    "no origin": {"origin": "null"},
    "another host": {"host": "evil.example"},
    "another host that begins alike": {"host": "127.0.0.1.evil.example"},
    "a page of another site": {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
    "a page on another port": {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "empty"},
    "a frame": {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
}


@tool(readonly=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    directory = tmp_path_factory.mktemp("served")
    (directory / "other").mkdir()
    (directory / "workspace").mkdir()
    workspaces = [
        NamedWorkspace("default", str(directory / "workspace")),
        NamedWorkspace("other", str(directory / "other")),
        NamedWorkspace("closed", str(directory / "other"), users=("olga",)),
    ]
    with serving(directory, workspaces=workspaces[:2], tools=[add]) as found:
        yield found


class Web:
    """Requests from another machine, without a connection: there are very many of them."""

    def __init__(self, running):
        self._running = running
        transport = httpx.ASGITransport(
            application(running.server), client=("203.0.113.7", 1), raise_app_exceptions=False
        )
        self._client = httpx.AsyncClient(transport=transport, base_url=running.url)

    def request(self, method, path, **options):
        return self._running.run(self._client.request(method, path, **options))

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, **options):
        return self.request("POST", path, **options)


@pytest.fixture(scope="module")
def web(running):
    """A client without a token."""
    return Web(running)


@pytest.fixture(scope="module")
def tokens(running):
    """A token of a person for each role."""
    return {role: running.token(f"a-{role}", kind="person", roles=[role]) for role in ROLES}


@pytest.fixture(scope="module")
def known(running):
    """What stands in the paths: a run and a batch of somebody else, and so on."""
    with running.client("ann", kind="person", roles=["caller"]) as client:
        batch = client.post(
            "/api/v1/workspaces/default/batches", json={"calls": [{"tool": "add", "args": {"a": 1, "b": 2}}]}
        ).json()
    run = batch["outcomes"][0]["run"]
    return {"workspace": "default", "run": run, "request": run, "batch": batch["batch"], "tool": "add", "name": "ann"}


def walked(server):
    """Every route of the application. The routes inside a mount are those of the mount."""
    found = []
    for each in application(server)._app.routes:
        assert isinstance(each, GuardedRoute | GuardedMount), f"{each} has no rule"
        found.append(each)
    return found


def path_of(route: BaseRoute, known):
    path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda name: known.get(name[1], "x"), route.path)
    return path if isinstance(route, GuardedRoute) else f"{path}/"


def methods_of(route):
    return sorted((route.methods if isinstance(route, GuardedRoute) else {"GET", "POST"}) - {"HEAD"})


def asked(route, known):
    return [(method, path_of(route, known)) for method in methods_of(route)]


def refused(answer, *statuses):
    told = f"{answer.request.method} {answer.request.url.path} {dict(answer.request.headers)}: {answer.text[:300]}"
    assert answer.status_code in statuses, f"{answer.status_code} {told}"


def test_the_routes_of_the_api_are_those_of_the_table(running):
    made = {(method, each.path) for each in walked(running.server) for method in methods_of(each)}
    assert {(each.method, each.whole_path) for each in ENDPOINTS} <= made
    paths = [each.path for each in walked(running.server)]
    assert len(paths) == len({(each.path, *methods_of(each)) for each in walked(running.server)})


def test_only_these_routes_are_public(running):
    public = {each.path for each in walked(running.server) if each.rule.is_public}
    assert public <= PUBLIC
    elsewhere = {each.path for each in walked(running.server) if each.rule.from_elsewhere}
    assert elsewhere <= {"/sign-in/oidc/callback"}


@pytest.mark.parametrize("kind", FOREIGN)
def test_pages_of_others_are_refused_everywhere(running, web, tokens, known, kind):
    own = {"authorization": f"Bearer {tokens['operator']}"}
    for route in walked(running.server):
        if route.rule.from_elsewhere:
            continue
        for method, path in asked(route, known):
            refused(web.request(method, path, headers={**own, **FOREIGN[kind]}), 403)
    refused(web.get("/nowhere", headers=FOREIGN[kind]), 403)


def test_who_follows_a_link_gets_an_empty_page_that_changes_nothing(running, web, tokens, known):
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    for route in walked(running.server):
        if route.rule.from_elsewhere:
            continue
        for method, path in asked(route, known):
            answer = web.request(method, path, headers={"authorization": f"Bearer {tokens['operator']}", **link})
            if method == "GET":
                assert answer.status_code == 200 and 'http-equiv="refresh"' in answer.text
                assert "<script" not in answer.text and known["run"] not in answer.text
            else:
                refused(answer, 403)


@pytest.mark.parametrize("wrong", ["none", "nonsense", "expired", "revoked", "in the query"])
def test_who_has_no_good_token_is_refused_everywhere(running, web, known, wrong):
    headers, query = {}, {}
    if wrong == "nonsense":
        headers = {"authorization": "Bearer haft_0000000000000000_" + "A" * 43}
    elif wrong == "expired":
        headers = {"authorization": f"Bearer {running.token('late', seconds=0.000001)}"}
    elif wrong == "revoked":
        headers = {"authorization": f"Bearer {running.token('gone')}"}
        (running.home / "tokens").joinpath(*_files_of(running.home, "gone")).unlink()
    elif wrong == "in the query":
        query = {"token": running.token("shown"), "access_token": "x"}
    for route in walked(running.server):
        if not route.rule.is_public:
            for method, path in asked(route, known):
                answer = web.request(method, path, headers=headers, params=query)
                refused(answer, 401, *([303] if route.rule.is_page and method == "GET" else []))
                if answer.status_code == 303:
                    assert answer.headers["location"].startswith("/sign-in")


def _files_of(home, name):
    for file in (home / "tokens").iterdir():
        if json.loads(file.read_text())["name"] == name:
            yield file.name


def test_who_has_the_wrong_role_is_refused_everywhere(running, web, tokens, known):
    tried = 0
    for route in walked(running.server):
        for role in ROLES:
            if route.rule.action is not None and route.rule.action not in ALLOWED[role]:
                for method, path in asked(route, known):
                    headers = {"authorization": f"Bearer {tokens[role]}"}
                    refused(web.request(method, path, headers=headers), 403)
                    tried += 1
    assert tried > 20


def test_the_run_of_another_user_is_not_there(running, web, known):
    caller = running.token("eve", kind="person", roles=["caller"])
    headers = {"authorization": f"Bearer {caller}"}
    tried = 0
    for route in walked(running.server):
        if re.search(r"\{(run|batch)\}", route.path) and (
            route.rule.action is None or route.rule.action in ALLOWED["caller"]
        ):
            for method, path in asked(route, known):
                has_body = method == "POST" and route.rule.body_bytes
                refused(web.request(method, path, headers=headers, **({"json": {}} if has_body else {})), 404)
                tried += 1
    assert tried >= 9
    for path in ("undo", "redo"):
        body = {"runs": [known["run"]]}
        refused(web.post(f"/api/v1/workspaces/default/{path}", headers=headers, json=body), 404)
    assert web.get("/api/v1/workspaces/default/runs", headers=headers).json()["runs"] == []
    assert web.get("/api/v1/workspaces/default/runs?who=ann", headers=headers).json()["runs"] == []


def test_another_workspace_is_not_there(running, web, known):
    elsewhere = running.token("otto", kind="person", roles=["operator"], workspaces=["other"])
    headers = {"authorization": f"Bearer {elsewhere}"}
    tried = 0
    for route in walked(running.server):
        if "{workspace}" in route.path:
            for method, path in asked(route, known):
                has_body = method == "POST" and route.rule.body_bytes
                answer = web.request(method, path, headers=headers, **({"json": {}} if has_body else {}))
                if route.rule.action in NEVER_FOR_A_PART:  # It would reach beyond their workspaces.
                    refused(answer, 403)
                    continue
                if answer.status_code == 303:
                    answer = web.get(answer.headers["location"], headers=headers)
                refused(answer, 404)
                if "problem" in answer.headers["content-type"]:
                    assert answer.json()["code"] == "unknown-workspace"
                tried += 1
    assert tried > 30
    assert web.get("/api/v1/workspaces", headers=headers).json()["workspaces"] == [
        {"name": "other", "path": str(running.home.parent / "other")}
    ]
    assert web.get("/api/v1/audit", headers=headers).json()["entries"] == []
    for method, path in (("GET", "/api/v1/tokens"), ("POST", "/api/v1/tokens/ann/revoke")):
        refused(web.request(method, path, headers=headers), 403)
    refused(web.post("/api/v1/tokens", headers=headers, json={"name": "more"}), 403)
    # The run is of the other workspace: it is not in this one, whoever asks.
    refused(web.get(f"/api/v1/workspaces/other/runs/{known['run']}", headers=headers), 404)


def test_a_get_changes_nothing(running, web, tokens, known):
    headers = {"authorization": f"Bearer {tokens['operator']}"}
    reading = {each.path for each in walked(running.server) if "GET" in methods_of(each)}
    for route in walked(running.server):
        if route.path not in reading:
            for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH"):
                refused(web.request(method, path_of(route, known), headers=headers), 404, 405)
    for endpoint in ENDPOINTS:
        assert endpoint.changes_state == (endpoint.method != "GET")


def test_a_body_that_is_too_long_is_refused_everywhere(running, web, tokens, known):
    headers = {"authorization": f"Bearer {tokens['operator']}", "content-type": "application/json"}

    async def pieces(length):
        yield b"[" * length

    for route in walked(running.server):
        for method, path in asked(route, known):
            most = route.rule.body_bytes
            if most <= SMALL:
                refused(web.request(method, path, headers=headers, content=b"[" * (most + 1)), 413)
                if most:
                    refused(web.request(method, path, headers=headers, content=pieces(most + 1)), 413)
            assert most <= running.server.limits.body_bytes


def test_every_answer_has_the_headers_that_protect_it(running, web, tokens, known):
    for route in walked(running.server):
        if route.rule.is_stream:
            continue
        for method, path in asked(route, known):
            for headers in ({}, {"host": "evil.example"}):
                answer = web.request(method, path, headers=headers)
                policy = answer.headers["content-security-policy"]
                assert "default-src 'none'" in policy and "unsafe" not in policy
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert answer.headers["x-frame-options"] == "DENY"
                assert "access-control-allow-origin" not in answer.headers
