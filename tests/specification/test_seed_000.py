"""What the page on toolbox tools says, sentence by sentence: each test quotes the words that it holds haft to.

`haft` stands where the page says `amp`, and `--bun` is named: without a kind, `haft tools make` writes Python.
"""

import asyncio
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haft import ToolService
from haft.sources.checks.descriptions import why_vague
from haft.surfaces.cli.main import run

USE = ("tools", "use", "--approve")
ECHO = """#!/bin/sh
[ "$TOOLBOX_ACTION" = execute ] && exec cat
printf '%s\\n' 'name: NAME' 'description: Say NAME of WHERE.' 'param1: string one' 'param2: string? another'
"""


class Place:
    """A workspace and a home of its own, a service over them, and the command line in this process."""

    def __init__(self, tmp_path, capsys):
        self.workspace, self.home, self.state = tmp_path / "workspace", tmp_path / "home", tmp_path / "state"
        (self.workspace / ".git").mkdir(parents=True)
        self.home.mkdir()
        self._capsys = capsys

    def write(self, path, text, mode=0o755):
        path = self.home / path[2:] if path.startswith("~/") else self.workspace / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def run(self, body):
        async def yes(_request):
            return True

        async def main():
            async with ToolService.open(self.workspace, home=self.state, approver=yes) as service:
                return await body(service)

        return asyncio.run(main())

    def call(self, name, **arguments):
        async def body(service):
            return await service.call(name, arguments)

        return self.run(body)

    def tools(self):
        """Every toolbox tool by name, whatever its state; what has no name of its own by that of its file."""

        async def body(service):
            return {one.spec.name: one for one in service.tools(all=True) if one.spec.kind == "amp-toolbox"}

        return self.run(body)

    def haft(self, *words):
        self._capsys.readouterr()
        code = run(words)
        out, err = self._capsys.readouterr()
        assert "haft itself failed" not in err
        return code, out, err

    def out(self, *words):
        code, out, err = self.haft(*words)
        assert code == 0, err
        return out


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    made = Place(tmp_path, capsys)
    monkeypatch.chdir(made.workspace)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("HAFT_HOME", str(made.state))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("AMP_TOOLBOX", "AMP_THREAD_ID", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    log = logging.getLogger("haft")
    monkeypatch.setattr(log, "handlers", log.handlers)
    monkeypatch.setattr(log, "propagate", log.propagate)
    return made


def needs(program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def echo(name, where="here"):
    return ECHO.replace("NAME", name).replace("WHERE", where)


# When to Use. Overview.


def test_user_wants_to_wrap_a_cli_command_for_controlled_agent_use(place):
    """ "Create custom toolbox tools that extend Amp's capabilities using simple executable scripts." "User asks to
    create a custom tool". "User wants to wrap a CLI command for controlled agent use". "User needs project-specific
    tooling"."""
    place.write(
        ".agents/tools/count_lines",
        "#!/bin/sh\n[ $TOOLBOX_ACTION = describe ] && "
        "exec printf 'name: count_lines\\ndescription: Count.\\nfile: string\\n'\n"
        'IFS=" " read -r _ file\nwc -l <"$file"\n',
    )
    (place.workspace / "a.txt").write_text("1\n2\n3\n")
    asked = []

    async def once(request):
        asked.append(request.arguments)
        return len(asked) == 1

    async def main():
        async with ToolService.open(place.workspace, home=place.state, approver=once) as service:
            return [await service.call("tb__count_lines", {"file": file}) for file in ("a.txt", "b.txt")]

    allowed, refused = asyncio.run(main())
    assert (allowed.status, allowed.output.strip()) == ("done", "3")
    assert (refused.status, asked) == ("rejected-by-user", [{"file": "a.txt"}, {"file": "b.txt"}])


LANGUAGES = {
    "bash": """#!/usr/bin/env bash
[[ $TOOLBOX_ACTION == execute ]] && { cat; exit; }
printf '%s\\n' 'name: any' 'description: Anything.' 'a: string'
""",
    "zsh": """#!/usr/bin/env zsh
[[ $TOOLBOX_ACTION == execute ]] && { cat; exit; }
print -l 'name: any' 'description: Anything.' 'a: string'
""",
    "JavaScript (bun)": """#!/usr/bin/env bun
if (process.env.TOOLBOX_ACTION === "execute") process.stdout.write(await Bun.stdin.text());
else console.log("name: any\\ndescription: Anything.\\na: string");
""",
    "Python": f"""#!{sys.executable}
import os, sys
described = "name: any\\ndescription: Anything.\\na: string"
print(sys.stdin.read() if os.environ["TOOLBOX_ACTION"] == "execute" else described, end="")
""",
    "etc.": """#!/usr/bin/awk -f
BEGIN {
    if (ENVIRON["TOOLBOX_ACTION"] == "execute") while ((getline line) > 0) print line
    else print "name: any\\ndescription: Anything.\\na: string"
}
""",
}
PROGRAMS = {"JavaScript (bun)": "bun", "Python": sys.executable, "etc.": "/usr/bin/awk"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_they_can_be_written_in_any_language(place, language):
    """ "Toolbox tools are executable files that communicate via stdin/stdout using a simple protocol. They can be
    written in any language: bash, zsh, JavaScript (bun), Python, Go, etc." """
    needs(PROGRAMS.get(language, language))
    place.write(".agents/tools/any", LANGUAGES[language])
    outcome = place.call("tb__any", a="b: c")
    assert (outcome.status, outcome.output) == ("done", "a: b: c\n")


PROTOCOL = f"""#!{sys.executable}
import json, os, sys
NAMES = ("TOOLBOX_ACTION", "AGENT", "AMP_THREAD_ID")
seen = {{name: os.environ.get(name) for name in NAMES}}
if os.environ["TOOLBOX_ACTION"] == "describe":
    print(json.dumps({{"name": "run_tests", "description": json.dumps(seen), "args": {{"code": ["int", "c"]}}}}))
else:
    given = json.load(sys.stdin)
    print(json.dumps(seen))
    print("the error", file=sys.stderr)
    sys.exit(given.get("code", 0))
"""


def test_key_characteristics_and_environment_variables(place):
    """ "Tools receive TOOLBOX_ACTION=describe to report their schema". "Tools receive TOOLBOX_ACTION=execute with
    parameters on stdin". "Tools write output to stdout, errors to stderr". "Exit code 0 = success, non-zero =
    error". "Registered with tb__ prefix (run_tests, tb__run_tests)". The table: TOOLBOX_ACTION, "describe" or
    "execute", Both; AGENT, "amp", Both; AMP_THREAD_ID, Current thread ID, Execute only."""
    place.write(".agents/tools/some_file", PROTOCOL)
    thread = "T-6fe536ec-68c2-4213-932f-c84f87453733"

    async def body(service):
        (spec,) = [one.spec for one in service.tools() if one.spec.name == "tb__run_tests"]
        good = await service.call("tb__run_tests", thread=thread)
        return spec, good, await service.call("tb__run_tests", {"code": 7}, thread=thread)

    spec, good, bad = place.run(body)
    assert json.loads(spec.description) == {"TOOLBOX_ACTION": "describe", "AGENT": "amp", "AMP_THREAD_ID": None}
    assert spec.input_schema["properties"] == {"code": {"type": "integer", "description": "c"}}
    printed = good.output.replace("the error\n", "")
    assert json.loads(printed) == {"TOOLBOX_ACTION": "execute", "AGENT": "amp", "AMP_THREAD_ID": thread}
    assert (good.status, good.exit_code, good.stderr) == ("done", 0, "the error\n")
    assert (bad.status, bad.exit_code, bad.error.code) == ("error", 7, "tool-failed")


# Tool Locations.


def test_global_tools_and_project_tools(place):
    """ "Global tools: ~/.config/amp/tools/". "Project tools: .agents/tools/ (in workspace root)"."""
    place.write("~/.config/amp/tools/a", echo("global"))
    place.write(".agents/tools/b", echo("project"))
    place.write("src/.agents/tools/c", echo("elsewhere"))
    assert {name: one.state for name, one in place.tools().items()} == {"tb__global": "ready", "tb__project": "ready"}


def test_amp_toolbox_controls_search_paths_colon_separated_like_path(place, monkeypatch):
    """ "The AMP_TOOLBOX environment variable controls search paths (colon-separated, like PATH)." """
    place.write("~/.config/amp/tools/usual", echo("usual"))
    place.write(".agents/tools/project", echo("project"))
    place.write("~/one/same", echo("same", "one"))
    place.write("~/two/same", echo("same", "two"))
    place.write("~/two/other", echo("other"))
    monkeypatch.setenv("AMP_TOOLBOX", f"{place.home}/one:{place.home}/missing:~/two")

    async def body(service):
        return [one for one in service.tools(all=True) if one.spec.kind == "amp-toolbox"]

    found = place.run(body)
    ready = {one.spec.name: one.spec.description for one in found if one.state == "ready"}
    assert set(ready) == {"tb__same", "tb__other", "tb__project"}
    assert ready["tb__same"] == "Say same of one."
    (loser,) = [one for one in found if one.state == "duplicate"]
    assert str(place.home / "one/same") in loser.reason and str(place.home / "two/same") in loser.reason
    monkeypatch.setenv("AMP_TOOLBOX", "")
    assert set(place.tools()) == {"tb__project"}


# Communication Formats.


def test_the_format_is_detected_from_the_describe_output(place):
    """ "Tools can use JSON format or text format. Amp auto-detects based on the describe output." "Execute input:
    Key-value pairs on stdin: param1: value1, param2: value2". "Execute input: JSON object on stdin"."""
    place.write(".agents/tools/text", echo("text"))
    said = json.dumps({"name": "json", "args": {"param1": ["string", "one"], "param2": ["string", "another"]}})
    place.write(".agents/tools/json", f"#!/bin/sh\n[ $TOOLBOX_ACTION = execute ] && exec cat\nprintf '%s' '{said}'\n")
    arguments = {"param1": "value1", "param2": "value2"}

    async def body(service):
        return [(await service.call(name, arguments)).output for name in ("tb__text", "tb__json")]

    as_text, as_json = place.run(body)
    assert as_text == "param1: value1\nparam2: value2\n"
    assert json.loads(as_json) == arguments


DESCRIBED = {
    "Text Format: describe output": """
name: tool_name
description: What the tool does and when to use it.
param1: string description of param1
param2: string? optional parameter (note the ?)
param3: string (optional) another way to mark optional
param4: string optional desc
""",
    "JSON Format: describe output (compact args)": """
{
  "name": "tool_name",
  "description": "What the tool does",
  "args": {
    "workspace": ["string", "the workspace directory"],
    "patterns": ["string", "optional test patterns"]
  }
}
""",
    "JSON Format: describe output (full inputSchema)": """
{
  "name": "tool_name",
  "description": "What the tool does",
  "inputSchema": {
    "type": "object",
    "properties": {
      "files": {
        "type": "array",
        "items": { "type": "string" },
        "description": "List of files to process"
      }
    },
    "required": ["files"]
  }
}
""",
}
SHOWN = {
    "Text Format: describe output": (
        {"param1": "string", "param2": "string", "param3": "string", "param4": "string"},
        ["param1"],
    ),
    "JSON Format: describe output (compact args)": ({"workspace": "string", "patterns": "string"}, []),
    "JSON Format: describe output (full inputSchema)": ({"files": "array"}, ["files"]),
}


@pytest.mark.parametrize("form", DESCRIBED)
def test_describe_output_of_the_page_itself(place, form):
    """ "Optional parameter markers: Type suffix, param: string?; In description, param: string (optional) desc;
    Description starts with "optional", param: string optional desc". "Better for structured parameters, arrays, and
    nested objects"."""
    place.write(".agents/tools/tool_name", f"#!/bin/sh\nprintf '%s' '{DESCRIBED[form].strip()}'\n")
    found = place.tools()["tb__tool_name"]
    schema = found.spec.input_schema
    kinds, required = SHOWN[form]
    assert found.spec.description.startswith("What the tool does")
    assert {name: one["type"] for name, one in schema["properties"].items()} == kinds
    assert schema.get("required", []) == required


# Tool Creation Workflow.


@pytest.mark.parametrize("kind", ["bash", "zsh", "bun"])
def test_scaffold_verify_use_list(place, kind):
    """ "amp tools make --bash tool_name", "amp tools make --zsh tool_name", "Create JavaScript/bun tool". "Step 5:
    Verify: amp tools show tb__tool_name; amp tools use tb__tool_name --param value". "View only output (no
    metadata)". "List all tools: amp tools list"."""
    needs(kind)
    (place.workspace / "long.txt").write_text("".join(f"line: {n}\n" for n in range(30)))
    made = Path(place.out("tools", "make", f"--{kind}", "tool_name").strip())
    assert made == place.workspace / ".agents/tools/tool_name" and os.access(made, os.X_OK)
    shown = place.out("tools", "show", "tb__tool_name").splitlines()
    assert shown[0] == f"# tb__tool_name (toolbox: {made})" and "# Schema" in shown
    assert [line for line in shown if line.startswith("- path (string)")]
    assert [line for line in shown if line.startswith("- limit (integer)")] and "Required: path." in shown
    outcome = json.loads(place.out(*USE, "tb__tool_name", "--path", "long.txt", "--limit", "2"))
    assert (outcome["status"], outcome["output"], outcome["exitCode"]) == ("done", "line: 0\nline: 1\n", 0)
    only = place.out(*USE, "--only", "output", "tb__tool_name", "--path", "long.txt")
    assert only == "".join(f"line: {n}\n" for n in range(10))
    (line,) = [line for line in place.out("tools", "list").splitlines() if line.startswith("tb__tool_name ")]
    assert line.split()[:2] == ["tb__tool_name", "amp-toolbox"]


def test_you_may_need_to_move_the_tool_to_the_correct_location_after_creation(place):
    """ "You may need to move the tool to the correct location after creation." "Location: Global, project-local, or
    skill-bundled?" """
    made = Path(place.out("tools", "make", "--bash", "tool_name", "--to", "drafts").strip())
    assert place.tools() == {}
    (place.home / ".config/amp/tools").mkdir(parents=True)
    made.rename(place.home / ".config/amp/tools/tool_name")
    assert place.tools()["tb__tool_name"].state == "ready"
    assert place.out("tools", "make", "--global", "--bash", "second").strip() == str(
        place.home / ".config/amp/tools/second"
    )


def test_the_real_program_shows_and_runs_a_fresh_tool(place):
    """ "amp tools make", "amp tools show", "amp tools use", as processes of their own; without a kind it is Python."""

    def program(*words):
        done = subprocess.run(
            [sys.executable, "-m", "haft.surfaces.cli.main", *words],
            capture_output=True,
            cwd=place.workspace,
            timeout=120,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    assert program("tools", "make", "tool_name")[0] == 0
    path = place.workspace / ".agents/tools/tool_name"
    path.write_text(path.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable}", 1))
    assert program("tools", "show", "tb__tool_name")[1].startswith("# tb__tool_name (toolbox: ")
    (place.workspace / "a.txt").write_text("first\n")
    assert program(*USE, "--only", "output", "tb__tool_name", "--path", "a.txt")[:2] == (0, "first\n")
    code, out, err = program(*USE, "--only", "output", "tb__tool_name", "--path", "missing.txt")
    assert code == 1 and "missing.txt" in out + err


# Writing Good Tool Descriptions.


@pytest.mark.parametrize(
    "description",
    [
        "Run project tests. Use this tool instead of Bash for running tests in this workspace.",
        "Query the development PostgreSQL database. Safer than raw psql commands.",
        "Build and deploy to staging environment. Handles all necessary steps.",
    ],
)
def test_good_descriptions(description):
    """ "The description is critical: it tells the agent when to use your tool." "Include: What the tool does;
    When/why to use it over alternatives; Any constraints or safety notes"."""
    assert why_vague(description) is None


@pytest.mark.parametrize("description", ["Runs tests", "A utility", "Do stuff with the database"])
def test_bad_descriptions(description):
    """ "Bad descriptions: (too vague), (meaningless), (unprofessional)"."""
    assert why_vague(description) is not None


# Error Handling.

CAREFUL = """#!/usr/bin/env bash
if [[ $TOOLBOX_ACTION == describe ]]; then
    printf '%s\\n' 'name: careful' 'description: Reads a config.' 'required_param: string? the path'
    exit 0
fi
while IFS=': ' read -r key value; do
    [[ $key == required_param ]] && required_param=$value
done
if [[ -z "$required_param" ]]; then
    echo "Error: required_param is required" >&2
    echo "Usage: provide the path to the config file" >&2
    exit 1
fi
echo "config is $required_param"
"""


def test_errors_go_to_stderr_and_the_exit_code_is_not_zero(place):
    """ "Write errors to stderr". "Exit with non-zero code on failure". "Provide actionable error messages". And
    "Execution errors: Check stderr for error messages"."""
    place.write(".agents/tools/careful", CAREFUL)
    code, out, err = place.haft(*USE, "tb__careful")
    outcome = json.loads(out)
    said = "Error: required_param is required\nUsage: provide the path to the config file\n"
    assert code == 1
    assert (outcome["status"], outcome["exitCode"], outcome["error"]["code"]) == ("error", 1, "tool-failed")
    assert outcome["stderr"] == outcome["output"] == said
    assert "tb__careful" in err
    assert place.out(*USE, "--only", "output", "tb__careful", "--required_param", "a.toml") == "config is a.toml\n"
    assert place.haft(*USE, "--only", "stderr", "tb__careful")[1] == said


# Testing Tools.


def test_view_schema_run_with_parameters_only_output_list(place):
    """ "amp tools show tb__my_tool". "amp tools use tb__my_tool --param1 value1 --param2 value2". "amp tools use --only
    output tb__my_tool --param1 value1". "amp tools list". For tools in ~/.config/amp/tools/ and .agents/tools/."""
    place.write("~/.config/amp/tools/my_tool", echo("my_tool"))
    place.write(".agents/tools/own", echo("own"))
    shown = place.out("tools", "show", "tb__my_tool")
    assert "Say my_tool of here." in shown
    assert "- param1 (string): one" in shown
    both = json.loads(place.out(*USE, "tb__my_tool", "--param1", "value1", "--param2", "value2"))
    assert both["output"] == "param1: value1\nparam2: value2\n"
    assert place.out(*USE, "--only", "output", "tb__my_tool", "--param1", "value1") == "param1: value1\n"
    listed = place.out("tools", "list").splitlines()
    assert {"tb__my_tool", "tb__own"} <= {line.split()[0] for line in listed}
    assert [line for line in listed if re.fullmatch(r"tb__own +amp-toolbox +Say own of here\.", line)]


SKILL = "---\nname: skill-name\ndescription: Teaches a thing.\n---\n# It\n"


def test_skill_bundled_tools_are_not_loaded_until_the_skill_is_active(place):
    """ "A skill needs bundled executable tools in its tools/ directory". "Skill-bundled tools: skill-name/tools/".
    "Tools inside a skill's tools/ directory aren't loaded until the skill is active." """
    place.write(".agents/skills/skill-name/SKILL.md", SKILL, 0o644)
    place.write(".agents/skills/skill-name/tools/my_tool", echo("my_tool"))
    assert place.tools()["tb__my_tool"].state == "inactive"
    assert "tb__my_tool" not in place.out("tools", "list")
    place.out("skills", "activate", "skill-name")
    assert place.call("tb__my_tool", param1="value1").output == "param1: value1\n"
    assert "tb__my_tool" in place.out("tools", "list")
    place.out("skills", "deactivate", "skill-name")
    assert "tb__my_tool" not in place.out("tools", "list")


def test_skill_bundled_tools_are_tested_by_hand(place):
    """ "Test them manually: Test describe action; Test execute action (text format); Test execute action (JSON
    format)": the three lines, with tools that haft made. "A skill ... that requires a tool"."""
    needs("bash")
    place.write(".agents/skills/skill-name/SKILL.md", SKILL, 0o644)
    for kind, name in (("bash", "in_text"), ("python", "in_json")):
        made = Path(place.out("tools", "make", f"--{kind}", "--skill", "skill-name", name).strip())
        assert made == place.workspace / ".agents/skills/skill-name/tools" / name
    made.write_text(made.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable}", 1))
    (place.workspace / ".agents/skills/value1").write_text("found\n")

    def line(text):
        return subprocess.run(
            ["bash", "-c", text], capture_output=True, cwd=place.workspace / ".agents/skills", check=True, timeout=60
        ).stdout.decode()

    assert line("TOOLBOX_ACTION=describe ./skill-name/tools/in_text").startswith("name: in_text\n")
    assert line('echo "path: value1" | TOOLBOX_ACTION=execute ./skill-name/tools/in_text') == "found\n"
    assert line("""echo '{"path": "value1"}' | TOOLBOX_ACTION=execute ./skill-name/tools/in_json""") == "found\n"


# Troubleshooting.


def test_tool_not_appearing_because_it_is_not_executable(place):
    """ "Step 4: Make Executable: chmod +x path/to/tool_name". "Verify file is executable: chmod +x tool_name"."""
    path = place.write(".agents/tools/tool_name", echo("tool_name"), 0o644)
    found = place.tools()["tb__tool_name"]
    assert (found.state, found.enabled) == ("broken", False)
    assert f"chmod +x {path}" in found.reason
    assert f"chmod +x {path}" in place.out("tools", "list", "--all")
    path.chmod(0o755)
    assert place.tools()["tb__tool_name"].state == "ready"


def test_tool_not_appearing_because_its_location_is_not_in_amp_toolbox(place, monkeypatch):
    """ "Check location is in AMP_TOOLBOX path"."""
    path = place.write("~/my/tool_name", echo("tool_name"))
    assert place.tools() == {}
    code, _out, err = place.haft(*USE, "tb__tool_name", "--param1", "x")
    assert code == 2 and "tb__tool_name" in err
    assert place.out(*USE, "--only", "output", str(path), "--param1", "x") == "param1: x\n"
    monkeypatch.setenv("AMP_TOOLBOX", str(path.parent))
    assert place.tools()["tb__tool_name"].state == "ready"


def test_no_restart_is_needed_to_rescan_tools(place):
    """ "Restart Amp to rescan tools": a service that is open finds what came and lets go of what went."""

    async def body(service):
        unknown = await service.call("tb__late", {"param1": "x"})
        path = place.write(".agents/tools/late", echo("late"))
        known = await service.call("tb__late", {"param1": "x"})
        path.unlink()
        return unknown.error.code, known.output, (await service.call("tb__late", {"param1": "x"})).error.code

    assert place.run(body) == ("unknown-tool", "param1: x\n", "unknown-tool")


BROKEN = {
    "Validate JSON syntax if using JSON format": (
        '{"name": "x", "description": "d",}',
        "begins like JSON and is not JSON",
    ),
    "Validate JSON syntax: more than JSON on stdout": ('{"name": "x"} ready', "begins like JSON and is not JSON"),
    "Check text format has name: and description: lines": ("description: d\nparam: string\n", "no line `name:`"),
    "Verify all dependencies available": (None, "no-such-interpreter"),
}


def test_parse_errors_are_told_of_each_tool_and_stop_no_other(place):
    """ "Parse errors: Validate JSON syntax if using JSON format; Check text format has name: and description: lines".
    "Execution errors: Verify all dependencies available"."""
    for number, (said, _why) in enumerate(BROKEN.values()):
        script = "#!/usr/bin/env no-such-interpreter\n" if said is None else f"#!/bin/sh\nprintf '%s' '{said}'\n"
        place.write(f".agents/tools/broken{number}", script)
    place.write(".agents/tools/good", echo("good"))
    found = place.tools()
    assert found["tb__good"].state == "ready"
    for number, (_said, why) in enumerate(BROKEN.values()):
        one = found[f"tb__broken{number}"]
        assert (one.state, why in one.reason) == ("broken", True), one.reason
    listed = place.out("tools", "list", "--all")
    assert all(why in listed for _said, why in BROKEN.values())
    code, _out, err = place.haft(*USE, "tb__broken0")
    assert code in (2, 3) and "tb__broken0" in err


def test_a_text_tool_without_a_description_line_is_broken(place):
    """ "Check text format has name: and description: lines": the list and `haft tools check` say what it lacks."""
    place.write(".agents/tools/mute", "#!/bin/sh\nprintf 'name: mute\\nparam: string\\n'\n")
    mute = place.tools()["tb__mute"]
    assert mute.state == "broken" and "it has no line `description:`" in mute.reason
    assert "it has no line `description:`" in place.out("tools", "list", "--all")
    code, out, _err = place.haft("tools", "check", ".agents/tools/mute")
    assert code == 1 and "description" in out


def test_trailing_whitespace_does_no_harm(place):
    """ "Ensure no trailing whitespace issues": there are none."""
    place.write(
        ".agents/tools/loose",
        "#!/bin/sh\n[ $TOOLBOX_ACTION = execute ] && exec cat\n"
        "printf '  name:  loose \\t\\r\\n description: Is loose.  \\r\\n'\n"
        "printf ' param :  string?  a value \\t\\r\\n\\r\\n   \\n'\n",
    )
    spec = place.tools()["tb__loose"].spec
    assert (spec.description, spec.input_schema["properties"]) == (
        "Is loose.",
        {"param": {"type": "string", "description": "a value"}},
    )
    assert place.call("tb__loose", param="kept  ").output == "param: kept  \n"


def test_execution_errors_are_looked_at_by_hand(place):
    """ "Test manually: TOOLBOX_ACTION=execute echo "param: value" | ./tool_name". So written the variable goes to
    echo, and a tool that haft made says that it needs it; behind the pipe it is right."""
    needs("bash")
    made = place.out("tools", "make", "--bash", "tool_name").strip()

    def line(text):
        return subprocess.run(["bash", "-c", text], capture_output=True, cwd=Path(made).parent, timeout=60)

    wrong = line('TOOLBOX_ACTION=execute echo "path: tool_name" | ./tool_name')
    assert wrong.returncode == 2 and b"TOOLBOX_ACTION" in wrong.stderr
    right = line('echo "path: tool_name" | TOOLBOX_ACTION=execute ./tool_name')
    assert right.returncode == 0 and right.stdout.startswith(b"#!/usr/bin/env bash\n")


# The page is itself a skill.


def test_the_skill_that_ships_teaches_the_same(place):
    """ "Use when asked to create a tool, when asked to create a skill that requires a tool, or build toolbox
    executables." "@references/owners-manual.md @references/appendix.md". Every subject of the page has its words in
    ours."""
    text = place.out("skills", "show", "haft-tool-creator")
    for words in (
        ("TOOLBOX_ACTION", "describe", "execute", "AGENT", "AMP_THREAD_ID", "tb__"),
        ("~/.config/amp/tools", ".agents/tools", "AMP_TOOLBOX", "tools/"),
        ("string?", "(optional)", "inputSchema", "args"),
        ("haft tools make", "--bash", "--zsh", "--bun", "chmod +x"),
        ("haft tools show", "haft tools use", "--only output", "haft tools list"),
        ("stderr", "exit"),
        ("Runs tests", "instead of"),
        ("haft skills activate",),
    ):
        assert [word for word in words if word not in text] == []
    for reference in ("owners-manual", "appendix"):
        assert f"@references/{reference}.md" in text
        assert len(place.out("skills", "show", "haft-tool-creator", f"references/{reference}.md")) > 500
