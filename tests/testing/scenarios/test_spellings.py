"""The three spellings of a scenario mean the same, and mistakes are named with their place."""

import json
import re

import pytest

from haft.contracts import BadUsage
from haft.testing.reading import read_scenario_file, scenarios_from
from haft.testing.scenarios.scenario import UNSET, Answer, ProgramAnswer, ProgramCall, TextMatch
from haft.values import replace

OWN = {
    "tool": "edit_file",
    "args": {"path": "test.js", "old_string": 'console.log("hello")', "new_string": 'console.log("goodbye")'},
    "files": {"test.js": 'console.log("hello")\nmore code'},
    "programs": {"git": [{"args": ["status"], "stdout": "clean"}, {"args": ["log"], "exit": 1}]},
    "env": {"A": "b"},
    "cwd": "sub",
    "expect": {
        "files": {"test.js": 'console.log("goodbye")\nmore code'},
        "programs": ["git status", {"program": "git", "args": ["log", "-1"]}],
    },
}
HARNESS = {
    "tool": "edit_file",
    "arguments": OWN["args"],
    "initialFiles": OWN["files"],
    "processesSetup": [
        {"command": "git status", "stdout": "clean"},
        {"command": "git", "args": ["log"], "exitCode": 1},
    ],
    "environment": {"A": "b"},
    "workingDirectory": "/test-workspace/sub",
    "expectedFiles": [{"path": "test.js", "content": 'console.log("goodbye")\nmore code'}],
    "expectedProcessCalls": [{"command": "git status"}, {"command": "git", "args": ["log", "-1"]}],
}
PRINTED = {
    **{key: OWN[key] for key in ("tool", "args", "files", "programs", "env", "cwd")},
    "expectedFiles": HARNESS["expectedFiles"],
    "expectedProcessCalls": OWN["expect"]["programs"],
}
PRINTED_TEXT = r"""{
  tool: 'edit_file',
  args: {
    path: 'test.js',
    old_string: 'console.log("hello")',
    new_string: 'console.log("goodbye")'
  },
  files: {
    'test.js': 'console.log("hello")\nmore code'
  },
  expectedFiles: [{
    path: 'test.js',
    content: 'console.log("goodbye")\nmore code'
  }]
}
"""


def test_three_spellings_make_the_same_scenario():
    (own,), (harness,), (printed,) = map(scenarios_from, (OWN, HARNESS, PRINTED))
    assert own == harness == printed
    assert own.programs.stubs[0].answers == (
        ProgramAnswer(stdout="clean", args=("status",)),
        ProgramAnswer(exit=1, args=("log",)),
    )
    assert own.expect.programs == (ProgramCall("git", ("status",)), ProgramCall("git", ("log", "-1")))
    assert own.cwd == "sub"


def test_an_object_as_it_is_printed_in_a_program_is_yaml(tmp_path):
    path = tmp_path / "printed.yaml"
    path.write_text(PRINTED_TEXT)
    (found,) = read_scenario_file(str(path))
    assert found.expect.files["test.js"].content == TextMatch(equals='console.log("goodbye")\\nmore code')
    assert found.files["test.js"].content == b'console.log("hello")\\nmore code'


SAID_TWICE = [
    ("arguments", "args", {}),
    ("initialFiles", "files", {}),
    ("processesSetup", "programs", {}),
    ("environment", "env", {}),
    ("workingDirectory", "cwd", "."),
]


@pytest.mark.parametrize(("theirs", "ours", "value"), SAID_TWICE)
def test_the_same_thing_said_twice_is_an_error(theirs, ours, value):
    with pytest.raises(BadUsage, match=f"`{theirs}` says again what `{ours}` says"):
        scenarios_from({"tool": "a", ours: value, theirs: value})
    with pytest.raises(BadUsage, match=f"`{ours}` says again what `{theirs}` says"):
        scenarios_from({"tool": "a", theirs: value, ours: value})


@pytest.mark.parametrize(("theirs", "ours"), [("expectedFiles", "files"), ("expectedProcessCalls", "programs")])
def test_an_expectation_said_twice_is_an_error(theirs, ours):
    with pytest.raises(BadUsage, match=f"`{theirs}` says again what `expect.{ours}` says"):
        scenarios_from({"tool": "a", "expect": {ours: []}, theirs: []})


MISTAKES = {
    "no tool": ({"args": {}}, "needs `tool`"),
    "no table": (["tool"], "must be a table"),
    "near miss": ({"tool": "a", "arg": {}}, "did you mean `args`"),
    "near miss of an expectation": ({"tool": "a", "expect": {"file": {}}}, "did you mean `files`"),
    "outside": ({"tool": "a", "files": {"../x": ""}}, "must lie in the workspace"),
    "absolute": ({"tool": "a", "expect": {"files": {"/etc/passwd": ""}}}, "must lie in the workspace"),
    "status": ({"tool": "a", "expect": {"status": "ok"}}, "must be one of done, error"),
    "pattern": ({"tool": "a", "expect": {"output": {"matches": "("}}}, "is not a regular expression"),
    "fault": ({"tool": "a", "fault": "full_disk"}, "did you mean `full-disk`"),
    "error code": ({"tool": "a", "expect": {"error": "invalid-argument"}}, "did you mean `invalid-arguments`"),
    "unlike any code": ({"tool": "a", "expect": {"error": "x"}}, "there are bad-approver, .* unknown-tool"),
    "setting": ({"tool": "a", "settings": {"limits.max_second": 3}}, "did you mean `limits.max_seconds`"),
    "seconds": ({"tool": "a", "timeout": -1}, "number of seconds above 0"),
    "approve": ({"tool": "a", "approve": "some"}, "must be `all`, `none` or a list"),
    "text": ({"tool": "a", "files": {"a": 3}}, "must be a text"),
    "mode": ({"tool": "a", "expect": {"files": {"a": {"mode": "rwx"}}}}, "must be a mode"),
    "program": ({"tool": "a", "programs": {"./git": {}}}, "name of a program, or an absolute path"),
    "cases": ({"tool": "a", "cases": []}, "at least one table"),
    "nested cases": ({"tool": "a", "cases": [{"cases": [{}]}]}, "cannot have cases of its own"),
    "same name": ({"tool": "a", "cases": [{"name": "x"}, {"name": "x"}]}, "two cases have the name"),
    "value": ({"tool": "a", "args": {"a": object()}}, "must be a value that JSON has"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named(case):
    data, message = MISTAKES[case]
    with pytest.raises(BadUsage, match=message) as caught:
        scenarios_from(data)
    assert caught.value.hint


def test_cases_share_what_they_do_not_say_themselves():
    first, second = scenarios_from(
        {
            "tool": "a",
            "args": {"x": 1, "y": 2},
            "files": {"a": "1", "b": "2"},
            "env": {"A": "a"},
            "expect": {"status": "error", "output": "x"},
            "cases": [
                {"args": {"x": 2}, "files": {"b": "3"}},
                {"name": "second", "env": {"B": "b"}, "expect": {"output": None}},
            ],
        },
        name="both",
    )
    assert (first.name, second.name) == ("both: 1", "both: second")
    assert first.args == {"x": 2}, "arguments are replaced as a whole"
    assert second.args == {"x": 1, "y": 2}
    assert {path: given.content for path, given in first.files.items()} == {"a": b"1", "b": b"3"}
    assert second.env == {"A": "a", "B": "b"}
    assert (second.expect.status, second.expect.output) == ("error", None)
    assert first.expect.output == TextMatch(equals="x")
    assert [first.case, second.case] == [0, 1]


def test_null_is_a_result_and_no_result_is_none():
    (with_null,) = scenarios_from({"tool": "a", "expect": {"result": None}})
    (without,) = scenarios_from({"tool": "a", "expect": {}})
    assert with_null.expect.result is None
    assert without.expect.result is UNSET


def test_answers():
    (found,) = scenarios_from(
        {"tool": "a", "approve": [True, "reject", {"reject": "no"}, {"args": {"a": 1}, "scope": "thread"}]}
    )
    assert found.approve == (
        Answer(approve=True),
        Answer(approve=False),
        Answer(approve=False, message="no"),
        Answer(approve=True, args={"a": 1}, scope="thread"),
    )


YAML = """\
tool: edit_file
args:
  path: a.txt
  when: 2024-01-01
  flag: on
  mode: 0755
files: {a.txt: "1"}
expect:
  files:
    a.txt: |
      2
"""
TOML = """\
tool = "edit_file"
[args]
path = "a.txt"
when = "2024-01-01"
flag = "on"
mode = "0755"
[files]
"a.txt" = "1"
[expect.files]
"a.txt" = "2\\n"
"""


def test_yaml_toml_and_json_are_read_alike_and_keep_lines(tmp_path):
    data = {
        "tool": "edit_file",
        "args": {"path": "a.txt", "when": "2024-01-01", "flag": "on", "mode": "0755"},
        "files": {"a.txt": "1"},
        "expect": {"files": {"a.txt": "2\n"}},
    }
    texts = {"yaml": YAML, "toml": TOML, "json": json.dumps(data, indent=1), "yml": "\ufeff" + YAML}
    found = {}
    for ending, text in texts.items():
        path = tmp_path / f"one.scenario.{ending}"
        path.write_text(text)
        (found[ending],) = read_scenario_file(str(path))
    (expected,) = scenarios_from(data, directory=str(tmp_path), name="one")
    for one in found.values():
        assert replace(one, location=expected.location) == expected
    lines = {ending: one.location.line_of("expect.files.a.txt") for ending, one in found.items()}
    assert lines == {"yaml": 10, "toml": 10, "json": 14, "yml": 10}
    assert found["yaml"].location.line_of("expect.files.a.txt.content") == 10, "the nearest part that is written"


UNREADABLE = {
    "a.yaml": ("tool: a\nargs: {}\nargs: {}\n", "a.yaml:3: the key 'args' appears twice"),
    "b.yaml": ("tool: [\n", "b.yaml:2: this is not YAML"),
    "c.yaml": ("tool: &x a\nfiles: &f {a: b}\nenv: *f\nexpect: {files: *f}\n", "must be a text|aliases"),
    "d.json": ('{"tool": "a",\n "args": {"a": 1, "a": 2}}', "the key 'a' appears twice"),
    "e.json": ('{"tool": "a",\n}', "e.json:2: this is not JSON"),
    "f.toml": ('tool = "a"\ntool = "b"\n', "f.toml:2: this is not TOML"),
    "g.yaml": (b"tool: \xff\n", "g.yaml:1: this is not UTF-8"),
    "h.yaml": ("", "must be a table"),
    "i.json": ("[" * 100_000, "nested too deeply|not JSON"),
    "j.yaml": ("a: " + "{a: " * 5_000, "nested too deeply|not YAML"),
    "k.yaml": ("tool: !!python/object/apply:os.system [true]\n", "k.yaml:1: the tag !!python"),
    "l.yaml": ("tool: a\ntimeout: !!int x\n", "l.yaml:2: 'x' is not !!int"),
    "m.yaml": ("tool: a\nname: !!timestamp 2024-13-45\n", "m.yaml:2: the tag !!timestamp"),
    "n.yaml": ("tool: a\n<<: {name: b}\n", "n.yaml:2: merge keys"),
    "o.yaml": ("tool: a\n? [a, b]\n: c\n", "o.yaml:2: a key must be a text"),
    "p.yaml": ("tool: a\nname: b\0c\n", r"p.yaml:2: this is not YAML: the character U\+0000 must be written as"),
    "q.yaml": (f"tool: a\nargs: {{a: 1{'0' * 5_000}}}\n", "q.yaml:1: a value cannot be read"),
    "r.json": ('{"tool": "a", "exit": 1' + "0" * 5_000 + "}", "r.json:1: a value cannot be read"),
    "s.toml": ("tool = 'a'\nargs = {a = 1" + "0" * 5_000 + "}", "s.toml:1: a value cannot be read"),
    "t.toml": ("tool = 'a'\nargs = {a = " + "[" * 5_000 + "]" * 5_000 + "}", "t.toml:1: the file is nested too deeply"),
    "u.json": ('{"tool": "a",\n"args": {"a": ' + "[" * 200 + "]" * 200 + "}}", "u.json:2: the file is nested deeper"),
    "v.yaml": ("tool: a\n---\ntool: b\n", "v.yaml:2: this is not YAML: but found another document"),
    "w.yaml": ("tool: a\n".encode("utf-16"), "w.yaml:1: this is not UTF-8"),
    "x.json": ('{"tool": "a",\n"name": "b",\n"tool": "c"}', "x.json:3: the key 'tool' appears twice"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_files_that_cannot_be_read_are_named_with_the_line(tmp_path, name):
    text, message = UNREADABLE[name]
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadUsage, match=message) as raised:
        read_scenario_file(str(path))
    assert "\n" not in raised.value.message


BAD_VALUES = [
    ({"timeout": float("inf")}, "`timeout` must be a number"),
    ({"timeout": 10**400}, "`timeout` must be a number"),
    ({"expect": {"exit": 10**5000}}, "`expect.exit` must be a whole number, not so large a number"),
    ({"args": {"a": float("nan")}}, "`args.a` must be a value that JSON has"),
    ({"expect": {"result": {1}}}, "`expect.result` must be a value that JSON has"),
    ({"expect": {"result": {1: 2}}}, "put it in quotes"),
    ({"expect": {"programs": ["git 'x"]}}, "`expect.programs.0` is not a command line"),
    ({"programs": [{"command": "git 'x"}]}, "`programs.0` is not a command line|`programs.0.command` is not a command"),
    ({"expect": {"programs": [{"program": "git", "env": [1]}]}}, "`expect.programs.0.env` must be a table"),
    ({"expect": {"output": {"matches": "a{1,99999999999999}"}}}, "is not a regular expression"),
    ({"expect": {"output": {"matches": "(" * 5_000 + ")" * 5_000}}}, "is not a regular expression"),
    ({"programs": {"..": ""}}, "must be the name of a program"),
    ({"files": {"a": "\ud800"}}, "`files.a` has a character that is not valid Unicode"),
    ({"files": {"\ud800": ""}}, "has a character that is not valid Unicode"),
    ({"files": {"a\0b": ""}}, "has a NUL character"),
    ({"files": {"a": {"link": "b\0"}}}, "`files.a.link` has a NUL character"),
    ({"files": {"a": {"base64": "é"}}}, "`files.a.base64` is not base64"),
    ({"files": {".": ""}}, "must lie in the workspace"),
    ({"files": {"a": "", "././a": ""}}, "names 'a' twice"),
    ({"files": {"b/a": "", "b//a": ""}}, "names 'b/a' twice"),
    ({"env": {"A": "a\0"}}, "`env.A` has a NUL character"),
    ({"cwd": "a\0"}, "`cwd` has a NUL character"),
    ({"tool": "./a\0"}, "`tool` has a NUL character"),
]


@pytest.mark.parametrize(("data", "message"), BAD_VALUES)
def test_values_that_nothing_can_have_are_named(data, message):
    with pytest.raises(BadUsage, match=message):
        scenarios_from({"tool": "a", **data})


def test_a_long_line_of_blanks_in_toml_and_many_parts_are_read_quickly(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text('tool = "a"\nname = """\n[' + " " * 50_000 + '\n"""\n')
    (read,) = read_scenario_file(str(path))
    assert len(read.name) == 50_002
    assert len(scenarios_from({"tool": "a", "files": {f"f{n}": "" for n in range(50_000)}})[0].files) == 50_000
    assert len(scenarios_from({"tool": "a", "cases": [{} for _ in range(5_000)]})) == 5_000


def test_a_few_aliases_do_not_stand_for_a_huge_value(tmp_path):
    path = tmp_path / "bomb.yaml"
    levels = "".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    path.write_text(f"tool: a\nargs:\n  a0: &a0 [lol]\n{levels}")
    with pytest.raises(BadUsage, match="aliases"):
        read_scenario_file(str(path))


@pytest.mark.parametrize(
    ("ending", "written", "line", "message"),
    [
        ("yaml", "tool: a\nsettings:\n  cache.seconds: 3\n  limits: {max_second: 3}\n", 4, "there is no setting"),
        (
            "yaml",
            "tool: a\nsettings:\n  cache.seconds: 3\n  limits.max_seconds: x\n",
            4,
            "`limits.max_seconds` must be",
        ),
        ("yaml", "tool: a\nexpect:\n  status: error\n  error: timeout\n", 4, "did you mean `timed-out`"),
        ("toml", 'tool = "a"\n[settings]\nlimits.max_second = 3\n', 3, "there is no setting"),
        ("yaml", "tool: a\ncases:\n- name: one\n- settings:\n    limits.max_second: 3\n", 5, "there is no setting"),
    ],
)
def test_mistakes_in_settings_and_codes_have_their_line(tmp_path, ending, written, line, message):
    path = tmp_path / f"a.scenario.{ending}"
    path.write_text(written)
    with pytest.raises(BadUsage, match=f"{re.escape(str(path))}:{line}: .*{message}"):
        read_scenario_file(str(path))
