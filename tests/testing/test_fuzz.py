"""Tools that are broken in one way each, in several formats, and a sound one: what fuzzing finds in them."""

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from haft.contracts import BadUsage, UnknownTool
from haft.testing.fuzz import FuzzOptions, fuzz_tool, summary_of
from haft.testing.reading import read_scenario_file
from haft.testing.running import run_scenarios

pytestmark = [
    pytest.mark.takes_turns,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox elsewhere"),
]

AMP = """#!/usr/bin/env python3
import json, os, sys, time
SCHEMA = {schema}
if os.environ["TOOLBOX_ACTION"] == "describe":
    print(json.dumps({{"name": "{name}", "description": "Does something.", "inputSchema": SCHEMA}}))
    sys.exit()
arguments = json.load(sys.stdin)
if not isinstance(arguments, dict) or not isinstance(arguments.get("n"), int):
    sys.exit("n must be a number")
n = arguments["n"]
{code}
"""
NUMBER = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 7}}, "required": ["n"]}
PLUGIN = """case "$1" in
schema) printf '%s' '{"id": "lines", "version": "1", "args_mode": "json", "tools": [{"type": "function", "function":
{"name": "lines", "description": "Counts the lines of a file.", "parameters": {"type": "object", "required": ["path"],
"properties": {"path": {"enum": ["notes.txt", "empty.txt", "folder", "data.json"]}}}}}]}' ;;
run) [[ $(cat) =~ \\"path\\":\\ \\"([a-z./]+)\\" && -f ${BASH_REMATCH[1]} ]] || { echo "no such file" >&2; exit 1; }
  echo $(( 100 / $(wc -l < "${BASH_REMATCH[1]}") )) ;;
esac
"""
FUNCTIONS = '''
from typing import Literal
from haft import tool

@tool(readonly=True)
def peek(n: Literal[5, 6]) -> str:
    """Looks, but a little more than it says."""
    if n > 5:
        try:
            open("made", "w").write("x")
        except OSError:
            pass
    return "seen"

@tool
def half(n: Literal[-1, 2, 5]) -> dict[str, int]:
    """Half of a number."""
    if n < 0:
        raise ValueError("n must not be negative")
    return {"half": n / 2 if n > 3 else 1}
'''

SOUND = """open('made', 'a').write(str(n))
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), 5)
except OSError:
    print(len(os.listdir()))
else:
    raise SystemError("there is a network")
assert n < 9 and "SECRET_OF_A_PERSON" not in os.environ
"""
SERVER = """
import json, sys
NUMBER = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
OTHER = {"peek": {"annotations": {"readOnlyHint": True}}, "promise": {"outputSchema": {"type": "object"}}}
OTHER["trusting"] = {}
TOOLS = [{"name": name, "description": "Does it.", "inputSchema": NUMBER, **more} for name, more in OTHER.items()]

def answered(method, params):
    if method == "initialize":
        info = {"name": "s", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method != "tools/call":
        return {}
    content = {"content": [{"type": "text", "text": "seen"}]}
    n = params["arguments"].get("n")
    if params["name"] == "trusting":
        n + 1
    elif params["name"] == "promise":
        return content if n == 2 else {**content, "structuredContent": {}}
    elif n == 2:
        open("made", "w")
    return content

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answered(message["method"], message.get("params"))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def amp(folder, name, code):
    path = folder / name
    path.write_text(AMP.format(name=name, code=code, schema=json.dumps(NUMBER)))
    path.chmod(0o755)
    return str(path)


def fuzz(tool, path, folder, *, examples=30, timeout=20.0, seed=3, **options):
    chosen = FuzzOptions(examples=examples, seconds=300, seed=seed, timeout=timeout, directory=str(folder), **options)
    return fuzz_tool(tool, [path] if path else [], chosen)


def kinds(report):
    return [(each.problem.kind, each.problem.sign, each.args) for each in report.findings]


@pytest.fixture(scope="module")
def sandbox():
    """Skips where no sandbox would hold the tools."""
    try:
        fuzz("shell", None, ".", examples=1)
    except BadUsage as error:
        pytest.skip(str(error))


def scenario_of(finding):
    (scenario,) = read_scenario_file(finding.scenario)
    return scenario


def results(folder):
    found = [each for path in sorted(Path(folder).glob("*.yaml")) for each in read_scenario_file(str(path))]
    return run_scenarios(found, jobs=1)


def test_a_crash_is_shrunk_written_tried_first_and_gone_when_the_tool_is_mended(sandbox, tmp_path):
    path = amp(tmp_path, "divide", "print(10 // (n - 7))")
    first = fuzz("tb__divide", path, tmp_path)
    assert kinds(first) == [("crash", "ZeroDivisionError in line 11", {"n": 7})]
    (finding,) = first.findings
    assert finding.is_valid and not finding.is_known and first.done and first.invalid and first.broken
    assert Path(finding.scenario).name == "tb__divide.found-1.scenario.yaml"
    scenario = scenario_of(finding)
    assert (scenario.tool, scenario.args, scenario.load) == ("tb__divide", {"n": 7}, ("./divide",))
    (failed,) = results(tmp_path)
    assert [each.path for each in failed.mismatches] == ["expect.status"]
    again = fuzz("tb__divide", path, tmp_path, examples=1)
    assert [(each.is_known, each.scenario) for each in again.findings] == [(True, finding.scenario)]
    assert len(list(tmp_path.glob("*.yaml"))) == 1
    amp(tmp_path, "divide", "print(0 if n == 7 else 10 // (n - 7))")
    mended = fuzz("tb__divide", path, tmp_path, examples=1)
    assert mended.findings == [] and mended.mended == [finding.scenario]
    assert [each.passed for each in results(tmp_path)] == [True]


def test_arguments_that_break_the_schema_reach_the_tool_itself(sandbox, tmp_path):
    path = amp(tmp_path, "trusting", "print(n)")
    Path(path).write_text(Path(path).read_text().replace('sys.exit("n must be a number")', "arguments['n'] + 1"))
    report = fuzz("tb__trusting", path, tmp_path, examples=16)
    assert {kind for kind, _sign, _args in kinds(report)} == {"crash"}
    assert not any(each.is_valid for each in report.findings) and report.refused == report.broken == 0
    scenario = scenario_of(report.findings[0])
    assert scenario.unguarded and scenario.expect.crashes is False and scenario.expect.status == "error"
    assert all(each.mismatches for each in results(tmp_path))
    Path(path).write_text(Path(path).read_text().replace("arguments['n'] + 1", 'sys.exit("n must be a number")'))
    assert all(each.passed for each in results(tmp_path)), "to refuse them is right"


def test_a_call_that_does_not_end(sandbox, tmp_path):
    path = amp(tmp_path, "wait", "time.sleep(1000 if n == 2 else 0)")
    report = fuzz("tb__wait", path, tmp_path, examples=12, timeout=1.5)
    assert kinds(report) == [("hang", "", {"n": 2})]
    assert scenario_of(report.findings[0]).timeout == 1.5
    assert "the call did not end within" in report.findings[0].problem.message


def test_a_bash_plugin_that_fails_for_an_empty_file(sandbox, tmp_path):
    path = tmp_path / "lines.bash"
    path.write_text(PLUGIN)
    report = fuzz("lines", str(path), tmp_path, examples=12)
    (found,) = [each for each in report.findings if each.problem.sign == "division by 0"]
    assert found.args == {"path": "empty.txt"}
    assert b"".join(each.content for each in scenario_of(found).files.values()), "it needs the files of the run"


def test_functions_that_write_though_they_only_read_and_that_break_their_output_schema(sandbox, tmp_path):
    path = tmp_path / "functions.py"
    path.write_text(FUNCTIONS)
    report = fuzz("peek", str(path), tmp_path, examples=4)
    assert kinds(report) == [("changed", "", {"n": 6})]
    assert "changed made" in report.findings[0].problem.message
    report = fuzz("half", str(path), tmp_path, examples=12)
    ((kind, _sign, args),) = kinds(report)
    assert (kind, args) == ("broken-result", {"n": 5})
    assert report.refused == 1, "a function refuses by raising an exception"
    found = results(tmp_path)
    assert [each.mismatches[0].path for each in found] == ["expect.result", "expect.only_changed"]


def test_nothing_is_found_in_a_sound_tool_and_nothing_stays_of_its_calls(sandbox, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECRET_OF_A_PERSON", "x")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        path = amp(tmp_path, "sound", SOUND.format(port=listening.getsockname()[1]))
        before = sorted(os.listdir(tmp_path))
        report = fuzz("", path, tmp_path, examples=8)
    assert (report.tool, report.findings, report.refused) == ("tb__sound", [], 0)
    assert report.done > 2 and report.calls == report.done + report.invalid
    assert sorted(os.listdir(tmp_path)) == before


def mcp(folder, **server):
    """A configuration file with the server `s`."""
    (folder / "server.py").write_text(SERVER)
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"s": {"command": "python3", "args": ["./server.py"], **server}}}))
    return str(path)


def test_tools_of_an_mcp_server(sandbox, tmp_path):
    path = mcp(tmp_path)
    report = fuzz("mcp__s__peek", path, tmp_path, examples=4)
    assert kinds(report) == [("changed", "", {"n": 2})], "its server says that it only reads"
    assert "the sandbox denied a write" in report.findings[0].problem.message
    report = fuzz("mcp__s__promise", path, tmp_path, examples=4)
    assert kinds(report) == [("not-json", "", {"n": 2})]
    report = fuzz("mcp__s__trusting", path, tmp_path, examples=3)
    assert [(each.problem.kind, each.is_valid) for each in report.findings] == [("crash", False)]
    found = results(tmp_path)
    assert len(found) == 3 and all(each.mismatches for each in found)


def test_an_mcp_server_that_does_not_start(tmp_path):
    path = mcp(tmp_path, command="sh", args=["-c", "echo there is no key >&2; exit 3"])
    with pytest.raises(BadUsage, match=r"`mcp__s__peek` cannot be called: .* exited 3 .*: there is no key"):
        fuzz("mcp__s__peek", path, tmp_path)


def test_a_tool_with_grants_is_called_only_if_a_person_really_wants_that(sandbox, tmp_path):
    path = mcp(tmp_path, grant={"network": True})
    with pytest.raises(BadUsage, match="grants it more than the workspace") as refused:
        fuzz("mcp__s__peek", path, tmp_path)
    assert "--really" in refused.value.hint
    assert fuzz("mcp__s__promise", path, tmp_path, examples=1, really=True).calls


def test_a_schema_that_nothing_fits_is_an_error_that_says_why(sandbox, tmp_path):
    schema = {"type": "object", "properties": {"n": {"type": "array", "minItems": 10**6}}, "required": ["n"]}
    path = amp(tmp_path, "endless", "print(n)")
    Path(path).write_text(Path(path).read_text().replace(json.dumps(NUMBER), json.dumps(schema)))
    with pytest.raises(BadUsage, match=r"no arguments that fit the schema of `tb__endless`.*: minItems 1000000"):
        fuzz("tb__endless", path, tmp_path)


def test_the_same_seed_makes_the_same_calls(sandbox, tmp_path):
    reports = [fuzz("read_file", None, tmp_path, examples=40, seed=seed).to_json() for seed in (1, 1, 2)]
    for each in reports:
        del each["seconds"], each["seed"]
    assert reports[0] == reports[1] != reports[2]
    assert reports[0]["findings"] == [] and reports[0]["calls"]["done"]


def test_the_end_of_a_command_line_says_nothing_about_the_shell(sandbox, tmp_path):
    assert fuzz("shell", None, tmp_path, examples=5).findings == []


@pytest.mark.parametrize(
    ("tool", "files", "message"),
    [
        ("task", [], "Sub-agents not enabled"),
        ("mcp__far__add", [".mcp.json"], "another machine"),
        ("nothing", [], "no tool called"),
    ],
)
def test_what_the_sandbox_does_not_hold_is_refused(tmp_path, tool, files, message):
    for name in files:
        server = {"mcpServers": {"far": {"url": "http://127.0.0.1:9/mcp"}}}
        (tmp_path / name).write_text(json.dumps(server))
    with pytest.raises((BadUsage, UnknownTool), match=message):
        fuzz_tool(tool, [str(tmp_path / each) for each in files], FuzzOptions(directory=str(tmp_path)))


def test_a_file_with_several_tools_needs_a_name(tmp_path):
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    with pytest.raises(BadUsage, match="has `half`, `peek`"):
        fuzz("", str(tmp_path / "functions.py"), tmp_path)


def test_a_report_says_what_was_not_tried(sandbox, tmp_path):
    schema = {"type": "object", "properties": {"n": {"type": "integer", "strange": 1}}, "required": ["n"]}
    path = amp(tmp_path, "picky", "sys.exit('not today')")
    Path(path).write_text(Path(path).read_text().replace(json.dumps(NUMBER), json.dumps(schema)))
    report = fuzz("tb__picky", path, tmp_path, examples=4)
    told = "\n".join(summary_of(report))
    assert report.not_followed == ("strange",) and "not followed: strange" in told
    assert "refused every call" in told and "nothing found" in told
