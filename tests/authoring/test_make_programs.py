"""The fresh tools themselves: each is run as its host would run it, and the formats' own readers read them."""

import ast
import json
import os
import shutil
import subprocess
import sys

import pytest

from haft.authoring.new_tool import KINDS, make
from haft.sources.amp_toolbox.description import read_description
from haft.sources.amp_toolbox.separator import COLON, separator_of

PATH = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
"""The Python that runs the tests first: others may be wrappers that take their time."""
TOOLBOX_KINDS = [word for word, kind in KINDS.items() if kind.format == "amp-toolbox"]
TEXT_KINDS = ["bash", "zsh"]
JSON_KINDS = ["python", "bun"]
ODD_NAMES = [
    "a: b: c",
    "-n",
    "--k=v",
    'it\'s "quoted" back\\slash\\n',
    "$HOME `id` $(id) * %s #;|&<>",
    "grüße-日本.txt",
    "limit: 3",
    " leading and trailing ",
]


class Tool:
    def __init__(self, kind, workspace):
        self.kind = kind
        self.workspace = workspace
        self.path = make("first_lines", kind, str(workspace / "tools"), force=False).path

    def act(self, action, stdin=b"", **env):
        words = {} if action is None else {"TOOLBOX_ACTION": action}
        return subprocess.run(
            [self.path],
            input=stdin,
            capture_output=True,
            cwd=self.workspace,
            env={"PATH": PATH, "HOME": str(self.workspace), **words, **env},
            timeout=60,
        )

    def execute(self, **given):
        if self.kind.word in TEXT_KINDS:
            return self.act("execute", "".join(f"{name}: {value}\n" for name, value in given.items()).encode())
        return self.act("execute", json.dumps(given, ensure_ascii=False).encode())


def fresh(word, workspace):
    if shutil.which(KINDS[word].program) is None:
        pytest.skip(f"{KINDS[word].program} is not installed")
    return Tool(KINDS[word], workspace)


@pytest.fixture(params=TOOLBOX_KINDS)
def tool(request, tmp_path):
    return fresh(request.param, tmp_path)


@pytest.fixture(params=TEXT_KINDS)
def text_tool(request, tmp_path):
    return fresh(request.param, tmp_path)


@pytest.fixture(params=JSON_KINDS)
def json_tool(request, tmp_path):
    return fresh(request.param, tmp_path)


def assert_refused(done, *words):
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (1, b"")
    assert said.startswith("Error: ") and "\nUsage: " in said
    for word in words:
        assert word in said


def test_a_fresh_tool_describes_itself_and_says_nothing_else(tool):
    done = tool.act("describe")
    assert (done.returncode, done.stderr) == (0, b"")
    described = read_description(done.stdout)
    assert described.name == "first_lines"
    assert described.form == ("text" if tool.kind.word in TEXT_KINDS else "json")
    schema = described.input_schema
    assert schema["required"] == ["path"]
    assert {name: one["type"] for name, one in schema["properties"].items()} == {"path": "string", "limit": "integer"}
    assert all(len(one["description"]) > 20 for one in schema["properties"].values())
    for words in ("first lines of a text file", "Use this tool instead of", "changes nothing"):
        assert words in described.description


def test_every_kind_describes_the_same_tool(tmp_path):
    there = [KINDS[word] for word in TOOLBOX_KINDS if shutil.which(KINDS[word].program)]
    said = {}
    for kind in there:
        place = tmp_path / kind.word
        place.mkdir()
        described = read_description(Tool(kind, place).act("describe").stdout)
        parameters = {name: one["description"] for name, one in described.input_schema["properties"].items()}
        said[kind.word] = (described.description, parameters)
    assert len(said) >= 2
    assert all(one == said["python"] for one in said.values())


def test_describing_writes_nothing(tool):
    before = sorted(tool.workspace.rglob("*"))
    done = tool.act("describe", TMPDIR="/nowhere/at/all", TMPPREFIX="/nowhere/at/all")
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(tool.workspace.rglob("*")) == before


def test_odd_names_arrive_as_they_were_given(tool):
    for number, name in enumerate(ODD_NAMES):
        (tool.workspace / name).write_text(f"{number} one\n{number} two\n{number} three\n")
    for number, name in enumerate(ODD_NAMES):
        done = tool.execute(path=name, limit=2)
        assert (done.returncode, done.stdout.decode(), done.stderr) == (0, f"{number} one\n{number} two\n", b""), name


def test_the_optional_parameter_may_be_left_out_and_come_first(tool):
    (tool.workspace / "long.txt").write_text("".join(f"{number}\n" for number in range(50)))
    assert tool.execute(path="long.txt").stdout.splitlines() == [str(number).encode() for number in range(10)]
    assert tool.execute(limit=3, path="long.txt").stdout == b"0\n1\n2\n"
    assert tool.execute(path="long.txt", limit=1000).stdout.count(b"\n") == 50


def test_a_file_without_a_last_newline_is_printed_as_it_is(tool):
    (tool.workspace / "short").write_text("one\ntwo")
    (tool.workspace / "empty").write_text("")
    assert tool.execute(path="short").stdout == b"one\ntwo"
    assert tool.execute(path="short", limit=1).stdout == b"one\n"
    assert (tool.execute(path="empty").returncode, tool.execute(path="empty").stdout) == (0, b"")


def test_without_its_required_parameter_it_refuses_with_a_usage_line(tool):
    assert_refused(tool.execute(), "path is required")
    assert_refused(tool.execute(limit=3), "path is required")
    assert_refused(tool.execute(path=""), "path is required")


def test_a_limit_that_is_none_is_refused(tool):
    (tool.workspace / "a").write_text("one\n")
    for limit in (0, 1001, 1.5, "1; id"):
        assert_refused(tool.execute(path="a", limit=limit), "limit must be a whole number from 1 to 1000")


def test_a_file_that_is_none_is_refused_by_name(tool):
    assert_refused(tool.execute(path="missing: one"), "there is no file missing: one")
    assert_refused(tool.execute(path="tools"), "there is no file tools")


def test_an_action_that_it_does_not_know_is_a_usage_error(tool):
    for action in (None, "explain"):
        done = tool.act(action)
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.startswith(b"Usage: ")


def test_text_tools_take_a_last_line_without_its_newline_and_lines_that_are_none(text_tool):
    tool = text_tool
    (tool.workspace / "a: b").write_text("one\ntwo\n")
    assert tool.act("execute", b"path: a: b\nlimit: 1").stdout == b"one\n"
    assert tool.act("execute", b"\npath\nother: x\n:\npath: a: b\nlimit: 1\n").stdout == b"one\n"
    assert_refused(tool.act("execute", b"path\n"), "path is required")


def test_text_tools_are_seen_to_split_at_the_colon(tool):
    with open(tool.path, encoding="utf-8") as file:
        seen = separator_of(file.read())
    assert seen == COLON if tool.kind.word in TEXT_KINDS else seen in (COLON, None)


def test_json_tools_refuse_what_is_no_json_object(json_tool):
    for given in (b"", b"path: a", b"null", b"[1]"):
        assert_refused(json_tool.act("execute", given), "the arguments are not")


def test_the_users_own_shell_settings_do_not_break_a_zsh_tool(tmp_path):
    tool = fresh("zsh", tmp_path)
    (tmp_path / ".zshenv").write_text("setopt ksh_arrays sh_word_split glob_subst no_bare_glob_qual\n")
    (tmp_path / "a b").write_text("one\n")
    assert tool.execute(path="a b").stdout == b"one\n"


@pytest.fixture
def plugin(tmp_path):
    path = make("first_lines", KINDS["bash-plugin"], str(tmp_path / "plugins"), force=False).path

    def call(*words, **env):
        return subprocess.run(
            ["bash", path, *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], **env},
            timeout=60,
        )

    return call


def test_a_fresh_bash_plugin_prints_a_schema_that_names_one_tool(plugin):
    done = plugin("schema")
    schema = json.loads(done.stdout)
    (entry,) = schema["tools"]
    assert (done.returncode, done.stderr) == (0, "")
    assert entry["type"] == "function" and schema["id"] == entry["function"]["name"] == "first_lines"
    assert schema["version"] and schema["args_mode"] == "positional"
    assert [one["name"] for one in schema["positional"]] == ["path", "limit"]
    parameters = entry["function"]["parameters"]
    assert parameters["required"] == ["path"] and set(parameters["properties"]) == {"path", "limit"}
    assert all(one["description"] for one in parameters["properties"].values())


def test_a_fresh_bash_plugin_previews_on_one_line_and_runs(plugin, tmp_path):
    for name in ODD_NAMES:
        (tmp_path / name).write_text(f"{name}\ntwo\nthree\n")
        seen = plugin("preview", name, "2")
        assert (seen.returncode, seen.stderr, seen.stdout.count("\n")) == (0, "", 1)
        assert seen.stdout.startswith("first_lines path=") and seen.stdout.endswith("limit=2\n")
        done = plugin("run", name, "2")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{name}\ntwo\n", "")


def test_a_preview_of_a_name_with_a_newline_is_still_one_line(plugin):
    assert plugin("preview", "a\nb").stdout.count("\n") == 1


def test_a_fresh_bash_plugin_takes_an_empty_limit_for_its_default(plugin, tmp_path):
    (tmp_path / "long").write_text("line\n" * 20)
    assert plugin("run", "long").stdout == plugin("run", "long", "").stdout == "line\n" * 10


@pytest.mark.parametrize("words", [(), ("",), ("missing",), ("plugins",), ("a", "0"), ("a", "x"), ("a", "1001")])
def test_a_fresh_bash_plugin_refuses_and_explains(plugin, tmp_path, words):
    (tmp_path / "a").write_text("one\n")
    done = plugin("run", *words)
    assert (done.returncode, done.stdout) == (1, "")
    reason, usage = done.stderr.removeprefix("Error: ").splitlines()
    assert usage.startswith("Usage: first_lines run FILE")
    explained = plugin("error", "1", *words)
    assert (explained.returncode, explained.stderr) == (0, "")
    assert explained.stdout == f"first_lines failed with exit code 1: {reason}\n"


def test_a_fresh_bash_plugin_explains_a_timeout_and_other_codes(plugin, tmp_path):
    (tmp_path / "a").write_text("one\n")
    late = plugin("error", "124", "a", "10", AGENT_TOOL_TIMED_OUT="1", AGENT_TOOL_TIMEOUT_SECONDS="60")
    assert "60 seconds" in late.stdout
    assert plugin("error", "137", "a", "10").stdout == "first_lines failed with exit code 137\n"
    assert plugin("error").stdout.startswith("first_lines failed with exit code 1")


def test_a_fresh_bash_plugin_knows_no_other_subcommand(plugin):
    for words in ((), ("explain",)):
        done = plugin(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Usage: ")


@pytest.fixture
def template(tmp_path):
    return make("first_lines", KINDS["studio"], str(tmp_path / "templates"), force=False).path


def test_a_fresh_template_has_every_part_without_being_run(template):
    with open(os.path.join(template, "tool.py"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    classes = {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}
    assert {"UserParameters", "ToolParameters"} <= classes.keys()
    assert all([base.id for base in one.bases] == ["BaseModel"] for one in classes.values())
    (run_tool,) = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "run_tool"]
    assert [argument.arg for argument in run_tool.args.args] == ["config", "args"]
    assigned = [target.id for one in tree.body if isinstance(one, ast.Assign) for target in one.targets]
    assert "OUTPUT_KEY" in assigned
    assert ast.unparse(tree.body[-1].test) == "__name__ == '__main__'"
    assert "Use this tool instead of" in ast.get_docstring(tree)
    with open(os.path.join(template, "requirements.txt"), encoding="utf-8") as file:
        assert file.read().startswith("pydantic")


def test_a_fresh_template_runs_and_refuses(template, tmp_path):
    def call(given):
        words = ["--user-params", "{}", "--tool-params", json.dumps(given)]
        tool = os.path.join(template, "tool.py")
        return subprocess.run([sys.executable, tool, *words], capture_output=True, text=True, cwd=tmp_path, timeout=60)

    name = '-a: "b"=日本'
    (tmp_path / name).write_text("one\ntwo\nthree\n")
    done = call({"path": name, "limit": 2})
    assert (done.returncode, done.stdout, done.stderr) == (0, "tool_output one\ntwo\n\n", "")
    for given, reason in (({}, "path"), ({"path": "missing"}, "missing"), ({"path": name, "limit": 0}, "limit")):
        done = call(given)
        assert (done.returncode, done.stdout) == (1, "")
        assert reason in done.stderr.splitlines()[0] and done.stderr.splitlines()[-1].startswith("Usage: ")
