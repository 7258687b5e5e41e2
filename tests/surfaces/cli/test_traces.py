"""The trace of whoever types a command goes on in its call, and the audit log has it."""

import pytest

from otlp_collector import collecting

CALLERS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE, SPAN = CALLERS.split("-")[1:3]


def test_a_command_continues_the_trace_of_its_environment(haft):
    with collecting() as collector:
        env = {"TRACEPARENT": CALLERS, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
        said = haft("tools", "use", "read_file", "--path", "a.txt", "--json", **env)
        assert said.code == 0, said.err
        span = collector.named("execute_tool read_file")
    run = said.json["run"]
    assert (span.trace, span.parent, span.attributes["gen_ai.tool.call.id"]) == (TRACE, SPAN, run)
    (entry,) = [one for one in haft("audit", "list", "--json").json if one.get("run") == run]
    assert entry["trace"] == TRACE
    assert haft("show", run, "--json").json["trace"] == TRACE
    assert f"trace: {TRACE}" in haft("show", run).out


@pytest.mark.parametrize("wrong", ["", "x", "00-" + "0" * 32 + "-b7ad6b7169203331-01"])
def test_a_wrong_trace_fails_no_command(haft, wrong):
    said = haft("tools", "use", "read_file", "--path", "a.txt", "--json", TRACEPARENT=wrong)
    assert said.code == 0, said.err
    assert haft("show", said.json["run"], "--json").json["trace"] is None
