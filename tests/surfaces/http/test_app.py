"""The application as a whole: a call, the list of runs, and what strangers get."""

W = "/api/v1/workspaces/default"


def test_a_client_calls_a_tool_and_finds_its_run(client, running):
    (running.workspace / "a.txt").write_text("hello\n")
    tools = client.get(f"{W}/tools").json()["tools"]
    assert "read_file" in [tool["name"] for tool in tools]

    answer = client.post(f"{W}/calls", json={"tool": "read_file", "args": {"path": "a.txt"}})
    assert answer.status_code == 200, answer.text
    outcome = answer.json()
    assert (outcome["status"], outcome["who"]) == ("done", "ann")

    runs = client.get(f"{W}/runs").json()
    assert [run["id"] for run in runs["runs"]] == [outcome["run"]]


def test_a_request_without_a_token_gets_problem_details(client, running):
    answer = client.get(f"{W}/tools", headers={"Authorization": "Bearer nobody"})
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "unauthenticated"
