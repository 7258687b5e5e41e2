"""The question whether a call in progress may connect to a host, at a terminal; and connections in the log."""

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox elsewhere")

READ = ["tools", "use", "shell", "--command", "exec 3<>/dev/tcp/one.invalid/4711 && cat <&3; echo end"]


@pytest.fixture
def allowed(haft):
    """A rule allows all commands."""
    haft("permissions", "add", "allow", "shell", "--danger", "not-understood")
    return haft


def test_it_shows_the_host_the_port_and_the_program_and_takes_no(allowed, terminal):
    here = terminal(*READ)
    here.until("Let it connect to one.invalid:4711? [y/N, t(hread), a(lways)] ")
    assert "a connection of shell needs approval: it wants to" in here.seen
    for shown in ("  host: one.invalid\n", "  port: 4711\n", "  program"):
        assert shown in here.seen
    assert "connections of exactly this call of shell" in here.seen
    here.type("w\n")
    here.until("`w` is not an answer here")
    here.until("Let it connect to one.invalid:4711?")
    here.type("\n")
    here.end()
    assert "Connection reset by peer" in here.seen
    (run,) = allowed("log", "--json", "--host", "one.invalid").json
    assert allowed("log", "--json", "--host", "*.invalid").json == [run]
    assert allowed("log", "--json", "--host", "*.one.invalid").json == []
    assert "refused: one.invalid:4711" in allowed("show", run["id"]).out


def test_always_is_remembered_for_this_host_and_port_and_listed_and_forgotten(allowed, terminal):
    here = terminal(*READ)
    here.until("Let it connect to one.invalid:4711?")
    here.type("a 2\n")
    here.end()
    rule = allowed("permissions", "list", "--json").json[0]
    assert rule["rule"] == "let approved calls of shell connect to one.invalid:4711"
    assert rule["grant"]["network"] == ["one.invalid:4711"]
    outcome = allowed(*READ, "--json").json
    assert [each["by"] for each in outcome["sandbox"]["connections"]] == [rule["source"]]
    here = terminal(*READ)
    here.end()
    assert "Let it connect" not in here.seen


def test_approve_approves_the_call_and_no_connection(allowed):
    done = allowed(*READ, "--approve", "--json")
    assert done.json["sandbox"]["connections"] == []
    assert "end\n" in done.json["output"]
