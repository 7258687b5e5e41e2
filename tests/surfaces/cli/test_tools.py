import hashlib
import json
import os
import socket


def test_list_shows_name_kind_and_first_line(haft):
    said = haft("tools", "list")
    assert said.code == 0
    assert "read_file" in said.out and "builtin" in said.out and "Read a text file of the workspace." in said.out
    assert not haft.home.exists(), "listing leaves no trace"


def test_list_by_kind_and_a_misspelt_kind(haft):
    assert haft("tools", "list", "--source", "python").out == ""
    assert haft("tools", "list", "--source", "xyz").err.splitlines()[1] == (
        "hint: the kinds are builtin, amp-toolbox, bash-plugin, agent-studio, mcp, python, cli"
    )
    wrong = haft("tools", "list", "--source", "builtn")
    assert wrong.code == 2
    assert wrong.err == "error: there is no kind of tool called `builtn`\nhint: did you mean `builtin`?\n"


def test_show_names_every_parameter(haft):
    said = haft("tools", "show", "read_file")
    assert said.out.startswith("# read_file (builtin: haft.builtin.read_file)\n")
    assert "- path (string): " in said.out
    assert "- start_line (integer): " in said.out
    assert "readonly, idempotent" in said.out


def test_show_says_what_calls_can_see(haft):
    assert "It runs in haft's own process, without a sandbox." in haft("tools", "show", "read_file").out
    said = haft("tools", "show", "shell").out
    assert "Approved calls see this machine read-only" in said
    assert "Calls that need no approval" in said and "/usr, /bin, /sbin, /lib*, /etc" in said


def test_show_in_the_forms_of_other_ecosystems(haft):
    mcp = haft("tools", "show", "read_file", "--as", "mcp").json
    assert mcp["inputSchema"]["required"] == ["path"]
    assert mcp["annotations"] == {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
    openai = haft("tools", "show", "read_file", "--as", "openai").json
    assert openai["type"] == "function" and openai["function"]["parameters"] == mcp["inputSchema"]
    assert haft("tools", "show", "read_file", "--as", "anthropic").json["input_schema"] == mcp["inputSchema"]
    assert set(haft("tools", "show", "read_file", "--as", "amp").json) == {"name", "description", "inputSchema"}


def test_list_prints_the_definitions_of_tools_that_can_be_called(haft, tmp_path):
    (haft.workspace / "haft.toml").write_text('[tools]\ndisable = ["shell"]\n')
    names = [each["name"] for each in haft("tools", "list", "--as", "anthropic").json]
    assert "read_file" in names and "shell" not in names
    listed = haft("tools", "list", "--as", "openai-responses").json
    assert [each["name"] for each in listed] == names
    assert haft("tools", "show", "read_file", "--as", "openai-responses").json in listed
    box = tmp_path / "box"
    box.mkdir()
    schema = {"type": "object", "properties": {"a b": {"type": "string"}}, "required": ["a b"]}
    (box / "odd").write_text(
        f"#!/bin/sh\necho '{json.dumps({'name': 'odd', 'description': 'D', 'inputSchema': schema})}'"
    )
    (box / "odd").chmod(0o755)
    odd = haft("tools", "list", "--as", "anthropic", AMP_TOOLBOX=str(box))
    assert [each["name"] for each in odd.json] == names
    assert "`tb__odd` cannot be defined for Anthropic: its parameter `a b` is required" in odd.err


def test_show_of_an_unknown_tool_suggests_the_near_one(haft):
    said = haft("tools", "show", "read_fil")
    assert (said.code, said.out) == (2, "")
    assert said.err == "error: there is no tool called `read_fil`\nhint: did you mean `read_file`?\n"


def test_search_finds_by_words_and_says_when_nothing_fits(haft):
    assert haft("tools", "search", "regular", "expression").out.startswith("search ")
    nothing = haft("tools", "search", "xylophone")
    assert (nothing.code, nothing.out) == (0, "")
    assert "no tool matches" in nothing.err
    assert haft("tools", "search", "xylophone", "--json").json == []


def test_global_options_stand_before_or_after_the_command(haft):
    forms = (["--json", "tools", "list"], ["tools", "--json", "list"], ["tools", "list", "--json"])
    answers = [json.loads(haft(*form).out) for form in forms]
    assert answers[0] == answers[1] == answers[2]
    assert haft("--version").out == haft("tools", "list", "--version").out
    assert haft("--version").out.startswith("haft ")


LOADING = """#!/bin/bash
[ "$TOOLBOX_ACTION" = describe ] && { printf 'name: it\\ndescription: Says it.\\n'; exit; }
. "$(dirname "$0")/lib/words.sh"
. "$ELSEWHERE/more.sh"
"""


def test_show_lists_the_files_that_an_approval_holds_for_and_what_could_not_be_resolved(haft, tmp_path):
    box = tmp_path / "box"
    (box / "lib").mkdir(parents=True)
    (box / "it").write_text(LOADING)
    (box / "it").chmod(0o755)
    (box / "lib" / "words.sh").write_text("echo hello\n")
    shown = haft("tools", "show", "tb__it", "--json", AMP_TOOLBOX=str(box)).json["approval"]
    assert shown["files"] == {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in (box / "it", box / "lib" / "words.sh")
    }
    assert shown["unresolved"] == [f'{box}/it:4: . "$ELSEWHERE/more.sh"']
    told = haft("tools", "show", "tb__it", AMP_TOOLBOX=str(box)).out
    assert f"  {box}/lib/words.sh (sha256 {shown['files'][f'{box}/lib/words.sh'][:16]})\n" in told
    assert f'  {box}/it:4: . "$ELSEWHERE/more.sh"\n' in told
    assert haft("tools", "show", "shell", "--json").json["approval"] is None
    assert "# Approval" not in haft("tools", "show", "shell").out


FETCHING = """#!/usr/bin/env -S uv run --script
name: cow
description: Says what a cow says.
"""
UV = """#!/bin/sh
# As uv does it: nothing runs before packages were fetched.
python3 -c 'import socket; socket.create_connection(("127.0.0.1", {port})).close()' || exit 2
if [ "$TOOLBOX_ACTION" = describe ]; then tail -n +2 "$3"; else echo moo; fi
"""


def test_a_tool_whose_packages_must_be_fetched_is_called_with_the_network_and_then_has_it_by_a_rule(haft):
    with socket.create_server(("127.0.0.1", 0)) as server:
        bin_ = haft.workspace.parent / "bin"
        tool = haft.workspace / ".agents/tools/cow"
        for path, text in ((bin_ / "uv", UV.format(port=server.getsockname()[1])), (tool, FETCHING)):
            path.parent.mkdir(parents=True)
            path.write_text(text)
            path.chmod(0o755)
        env = {"PATH": os.pathsep.join([str(bin_), os.environ["PATH"]])}
        checked = haft("tools", "check", "tb__cow", **env)
        assert checked.code == 1
        assert f"`haft tools use {tool} --network` once" in checked.out
        assert "`haft permissions add allow tb__cow --network`" in checked.out
        assert haft("tools", "use", "tb__cow", "--approve", **env).code != 0
        used = haft("tools", "use", "tb__cow", "--network", "--approve", "--only", "output", **env)
        assert used.out == "moo\n", used.err
        assert haft("permissions", "add", "allow", "tb__cow", "--network", "--in", "user", **env).code == 0
        assert haft("tools", "check", "tb__cow", **env).code == 0


def test_a_failure_to_describe_is_told_by_the_line_that_matters(haft):
    tool = haft.workspace / "cow"
    said = "Error: Cannot find package cowsay\n    at x (y:1)\n\nNode.js v20.20.2"
    tool.write_text(f"#!/bin/sh\ncat >&2 <<END\n{said}\nEND\nexit 1\n")
    tool.chmod(0o755)
    assert "exit code 1: Error: Cannot find package cowsay" in haft("tools", "check", "./cow").out


def test_show_tells_bounds_and_defaults(haft):
    tool = haft.workspace / ".agents/tools/cow"
    tool.parent.mkdir(parents=True)
    schema = {"times": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2, "description": "How often"}}
    said = json.dumps({"name": "cow", "description": "Moo.", "inputSchema": {"type": "object", "properties": schema}})
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
    tool.chmod(0o755)
    assert "- times (integer): How often (at least 1, at most 9, default 2)" in haft("tools", "show", "tb__cow").out
