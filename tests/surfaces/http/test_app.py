"""The application as a whole: calls, runs, changes, and what strangers get."""

import pytest

W = "/api/v1/workspaces/default"


@pytest.fixture(scope="module")
def operator(running):
    with running.client("olga", kind="person", roles=["operator"]) as found:
        yield found


def call(client, tool, *, status="done", **body):
    answer = client.post(f"{W}/calls", json={"tool": tool, **body})
    assert answer.status_code == 200, answer.text
    outcome = answer.json()
    assert outcome["status"] == status, outcome
    return outcome


def test_a_client_calls_a_tool_and_finds_its_run(client, running):
    (running.workspace / "a.txt").write_text("hello\n")
    tools = client.get(f"{W}/tools").json()["tools"]
    assert "read_file" in [tool["name"] for tool in tools]
    assert client.get(f"{W}/tools/read_file").json()["kind"] == "builtin"

    outcome = call(client, "read_file", args={"path": "a.txt"})
    assert outcome["who"] == "ann"

    runs = client.get(f"{W}/runs").json()
    assert [run["id"] for run in runs["runs"]] == [outcome["run"]]
    assert client.get(f"{W}/runs/{outcome['run']}").json()["outcome"]["status"] == "done"
    page = client.get(f"{W}/runs/{outcome['run']}/output").json()
    assert (page["output"].strip(), page["next"]) == ("hello", None)


def test_a_call_that_waits_is_approved_by_a_person_and_undone(client, operator, running):
    started = client.post(
        f"{W}/calls", json={"tool": "write_file", "args": {"path": "b.txt", "content": "b\n"}, "wait": 0}
    )
    run = started.json()["run"]
    assert started.json()["status"] in ("queued", "blocked-on-user")
    waiting = []
    while not waiting:
        waiting = [each for each in operator.get("/api/v1/inbox").json()["requests"] if each["run"] == run]
    refused = client.post(f"{W}/inbox/{run}/approve", json={})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    answered = operator.post(f"{W}/inbox/{waiting[0]['id']}/approve", json={})
    assert answered.status_code == 200, answered.text
    while operator.get(f"{W}/runs/{run}").json()["endedAt"] is None:
        pass
    diff = client.get(f"{W}/runs/{run}/diff").json()
    assert [(each["path"], each["added"]) for each in diff["files"]] == [("b.txt", 1)]

    plan = client.post(f"{W}/undo", json={"runs": [run], "plan": True}).json()
    assert plan["plan"] == [{"path": "b.txt", "action": "delete"}]
    undone = client.post(f"{W}/undo", json={"runs": [run]}).json()
    assert undone["ended"] and undone["error"] is None
    assert not (running.workspace / "b.txt").exists()
    assert client.post(f"{W}/redo", json={"runs": [run]}).json()["error"] is None
    assert (running.workspace / "b.txt").read_text() == "b\n"


def test_pages_of_runs_miss_nothing_and_repeat_nothing_while_runs_begin(client):
    def page(**query):
        found = client.get(f"{W}/runs", params={"limit": 2, "tool": "list_directory", **query}).json()
        return [run["id"] for run in found["runs"]], found["next"]

    runs = [call(client, "list_directory", args={"path": "."})["run"] for _ in range(5)]
    first, cursor = page()
    call(client, "list_directory", args={"path": "."})
    second, cursor = page(cursor=cursor)
    third, end = page(cursor=cursor)
    assert [*first, *second, *third] == runs[::-1] and end is None
    assert page(who="nobody") == ([], None)


def test_a_batch_runs_in_the_order_of_its_calls(client):
    calls = [{"tool": "read_file", "args": {"path": "a.txt"}, "id": "one"}, {"tool": "list_directory", "args": {}}]
    assert client.post(f"{W}/batch-plans", json={"calls": calls}).json()["groups"]
    batch = client.post(f"{W}/batches", json={"calls": calls}).json()
    assert batch["ended"] and next(each["id"] for each in batch["outcomes"]) == "one"
    assert client.get(f"{W}/batches/{batch['batch']}").json()["ended"]
    assert client.post(f"{W}/batches/{batch['batch']}/cancel").json()["cancelled"] is False


@pytest.mark.parametrize(
    "path",
    [
        f"{W}/definitions?form=mcp",
        f"{W}/permissions",
        f"{W}/held",
        f"{W}/audit",
        f"{W}/doctor",
        f"{W}/inbox",
        "/api/v1/audit?limit=3&type=end",
        "/api/v1/doctor",
        "/api/v1/store",
        "/api/v1/me",
        "/api/v1/workspaces",
        "/api/v1/tokens",
    ],
)
def test_an_operator_reads(operator, path):
    answer = operator.get(path)
    assert answer.status_code == 200, answer.text
    assert isinstance(answer.json(), dict)


def test_rules_are_tested_and_replayed(operator):
    tested = operator.post(
        f"{W}/permissions/test", json={"tool": "shell", "args": {"command": "rm x"}, "explain": True}
    ).json()
    assert tested["action"] == "ask" and tested["steps"]
    text = '[[permissions]]\ntool = "read_file"\naction = "reject"\n'
    replayed = operator.post(f"{W}/permissions/replay", json={"rules": text}).json()
    assert {flip["now"] for flip in replayed["flips"]} == {"reject"}


def test_the_audit_log_is_verified_and_exported(operator):
    assert operator.post("/api/v1/audit/verify", json={}).json()["intact"] is True
    exported = operator.get("/api/v1/audit/export")
    assert exported.headers["content-type"].startswith("application/x-ndjson")
    assert exported.text.splitlines()[0].startswith("{")


def test_a_token_is_made_used_and_revoked(operator, running):
    made = operator.post("/api/v1/tokens", json={"name": "bob"}).json()
    headers = {"Authorization": f"Bearer {made['token']}"}
    assert operator.get("/api/v1/me", headers=headers).json()["roles"] == ["caller"]
    assert operator.post("/api/v1/tokens/bob/revoke").json() == {"revoked": "bob"}
    assert operator.get("/api/v1/me", headers=headers).status_code == 401


def test_a_request_without_a_token_gets_problem_details(client):
    answer = client.get(f"{W}/tools", headers={"Authorization": "Bearer nobody"})
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "unauthenticated"
