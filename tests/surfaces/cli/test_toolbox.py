"""`haft toolbox`: executables for any command line and for any tool."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import until

PROGRAMS = Path(__file__).parents[2] / "sources/cli/programs"
BARE = os.pathsep.join([os.path.dirname(os.path.realpath(sys.executable)), "/usr/bin", "/bin"])
VALUES = [
    "two words", "it's \"quoted\" `so` $HOME \\", "two\nlines", "-x", "--name=other", "grüße 日本 🙂", "", "a\tb",
    "a=b", "x" * 100_000,
]  # fmt: skip
SPEC = """
program = "git"
[[commands]]
name = "status"
readonly = true
parameters.short = { option = "--short", type = "boolean", help = "In short" }
"""


@pytest.fixture
def use(haft, tmp_path):
    """Start an executable as any host would, from elsewhere, with PATH and the protocol's variable alone."""
    (tmp_path / "elsewhere").mkdir()

    def use(path, given="", action="execute", **env):
        text = given if isinstance(given, str) else json.dumps(given)
        return subprocess.run(
            [path],
            input=text,
            capture_output=True,
            text=True,
            cwd=tmp_path / "elsewhere",
            env={"PATH": BARE, "TOOLBOX_ACTION": action, **env},
            timeout=60,
        )

    return use


def script(haft, module):
    """A program that runs a module of the workspace, wherever it is started."""
    path = haft.workspace / "bin" / module
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(haft.workspace)!r})\n"
        f"from {module} import main\nmain()\n"
    )
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("option", "reference", "names"),
    [
        ("--click", "click_echo:main", ["remote-add", "remote-deep-set-it", "say"]),
        ("--argparse", "argparse_echo:build", ["say", "remote-add", "run"]),
        ("--click", "typer_echo:app", ["remote-add", "say"]),
    ],
)
def test_a_program_becomes_executables_and_each_argument_arrives(haft, use, option, reference, names):
    module = reference.partition(":")[0]
    shutil.copy(PROGRAMS / f"{module}.py", haft.workspace)
    done = haft(
        "toolbox", "wrap", option, reference, "--program", script(haft, module), "--prefix", "e-", "--to", "box"
    )
    assert done.code == 0, done.err
    assert sorted(done.out.splitlines()) == sorted(str(haft.workspace / "box" / f"e-{name}") for name in names)
    assert "AMP_TOOLBOX=" in done.err
    path = str(haft.workspace / "box/e-say")
    described = use(path, action="describe")
    assert (described.returncode, described.stderr) == (0, "")
    args = json.loads(described.stdout)["args"]
    assert args["times"][0] == "integer" and args["rest"][0] == "array" and args["loud"][0] == "boolean"
    given = {"text": "-x", "rest": VALUES, "tag": VALUES, "name": "a b\n\"'", "times": 7, "scale": 0.5, "loud": False}
    given |= {"dry": True, "level": 2, "colour": "blue"}
    said = use(path, {**given, **({"key": "k"} if "argparse" in module else {})})
    assert (said.returncode, said.stderr) == (0, "")
    got = json.loads(said.stdout)
    assert {name: got[name] for name in given} == given
    refused = use(str(haft.workspace / "box/e-remote-add"), {"name": "n"} if "argparse" not in module else {"url": "u"})
    assert refused.returncode == 1 and " is missing" in refused.stderr


def test_a_program_that_refuses_speaks_for_itself(haft, use):
    shutil.copy(PROGRAMS / "argparse_echo.py", haft.workspace)
    words = ["--argparse", "argparse_echo:build", "--program", script(haft, "argparse_echo"), "--prefix", ""]
    assert haft("toolbox", "wrap", *words, "--to", "box").code == 0
    said = use(str(haft.workspace / "box/say"), {"text": "t", "key": "a", "key_file": "b"})
    assert (said.returncode, said.stdout) == (2, "")
    assert "not allowed with argument" in said.stderr


def test_a_wrapper_is_a_tool_of_haft_like_any_other(haft):
    (haft.workspace / "spec.toml").write_text(SPEC)
    subprocess.run(["git", "init", "-q"], cwd=haft.workspace, check=True)
    box = str(haft.workspace.parent / "box")
    done = haft("toolbox", "wrap", "--spec", "spec.toml", "--to", box, "--json")
    assert done.json == [{"name": "git-status", "path": f"{box}/git-status", "new": True}]
    used = haft("tools", "use", "tb__git-status", "--short", "true", "--approve", "--only", "output", AMP_TOOLBOX=box)
    assert (used.code, "?? a.txt" in used.out) == (0, True), used.err
    for form in ("mcp", "openai", "anthropic", "amp"):
        shown = haft("tools", "show", "tb__git-status", "--as", form, "--json", AMP_TOOLBOX=box)
        assert "In short" in shown.out and shown.code == 0


def test_a_program_can_be_pinned(haft):
    (haft.workspace / "spec.toml").write_text(SPEC)
    assert haft("toolbox", "wrap", "--spec", "spec.toml", "--to", "box", "--pin").code == 0
    assert repr(shutil.which("git")) in (haft.workspace / "box/git-status").read_text()
    (haft.workspace / "spec.toml").write_text(SPEC.replace('"git"', '"no-such-program"'))
    refused = haft("toolbox", "wrap", "--spec", "spec.toml", "--to", "box", "--pin")
    assert refused.code == 2 and "`no-such-program` cannot be pinned: it is not on PATH" in refused.err


STOCK = """import argparse
def build_parser():
    parser = argparse.ArgumentParser(prog="stock")
    parser.add_argument("item")
    parser.add_argument("--count", type=int, default=3)
    return parser
def main():
    print(build_parser().parse_args().item)
if __name__ == "__main__":
    main()
"""


def test_a_module_is_run_by_the_python_on_path_unless_it_is_pinned(haft):
    (haft.workspace / "stock.py").write_text(STOCK)
    wrap = ["toolbox", "wrap", "--argparse", "stock:build_parser", "--to", ".agents/tools"]
    done = haft(*wrap)
    tool = haft.workspace / ".agents/tools/stock"
    assert "'program': ['python3', '-m', 'stock']" in tool.read_text()
    assert "Optional, 3 by default." in haft("tools", "show", "tb__stock").out
    assert "haft finds them here as tb__stock" in done.err and "AMP_TOOLBOX" not in done.err
    assert "other machines" not in done.err
    assert haft("tools", "use", "tb__stock", "--item", "bolt", "--approve", "--only", "output").out == "bolt\n"
    assert haft(*wrap, "--pin", "--force").code == 0
    assert repr(sys.executable) in tool.read_text()


def test_a_module_that_the_python_on_path_does_not_have_keeps_its_own_and_says_so(haft, use):
    (haft.workspace / "stock.py").write_text(STOCK)
    other = haft.workspace / "bin/python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    path = os.pathsep.join([str(other.parent), os.environ["PATH"]])
    done = haft("toolbox", "wrap", "--argparse", "stock:build_parser", "--to", "box", PATH=path)
    assert "`python3` on PATH does not have `stock`" in done.err and sys.executable in done.err
    assert "--pin" in done.err and "--python" in done.err
    tool = haft.workspace / "box/stock"
    tool.write_text(tool.read_text().replace(sys.executable, "/opt/elsewhere/.venv/bin/python"))
    said = use(tool, {"item": "bolt"})
    assert said.returncode == 127 and "wrap it again here" in said.stderr and "install `" not in said.stderr


@pytest.mark.parametrize(
    ("reference", "hint"),
    [
        ("stock:main", "name a function that returns the parser, and does not parse"),
        ("stock.py:build_parser", "did you mean `stock:build_parser`?"),
        ("nothing:main", "`--python` names the Python that has it"),
    ],
)
def test_the_hint_fits_what_was_named(haft, reference, hint):
    (haft.workspace / "stock.py").write_text(STOCK)
    refused = haft("toolbox", "wrap", "--argparse", reference, "--to", "box")
    assert refused.code == 2 and hint in refused.err
    assert ("`--python`" in refused.err) == ("`--python`" in hint)


def test_files_of_others_are_replaced_only_when_asked(haft):
    (haft.workspace / "spec.toml").write_text(SPEC + '[[commands]]\nname = "log"\n')
    box = haft.workspace / "box"
    box.mkdir()
    (box / "git-log").write_text("mine")
    wrap = ["toolbox", "wrap", "--spec", "spec.toml", "--to", "box"]
    refused = haft(*wrap)
    assert refused.code == 2 and "git-log exists already with other content" in refused.err and "--force" in refused.err
    assert [path.name for path in box.iterdir()] == ["git-log"] and (box / "git-log").read_text() == "mine"
    assert haft(*wrap, "--force").code == 0
    again = haft(*wrap, "--json").json
    assert [one["new"] for one in again] == [False, False]


def test_a_directory_that_cannot_be_is_named(haft):
    (haft.workspace / "spec.toml").write_text(SPEC)
    refused = haft("toolbox", "wrap", "--spec", "spec.toml", "--to", "a.txt")
    assert refused.code == 2 and "a.txt" in refused.err
    deeper = haft("toolbox", "wrap", "--spec", "spec.toml", "--to", "a.txt/deeper")
    assert deeper.code == 2 and "a.txt/deeper cannot be made: Not a directory" in deeper.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "needs one of `--click`, `--argparse` and `--spec`"),
        (["--click", "a:b", "--spec", "c"], "needs one of `--click`, `--argparse` and `--spec`"),
        (["--spec", "none.toml"], "none.toml cannot be read"),
        (["--spec", "a.txt"], "a.txt cannot be understood"),
        (["--click", "app"], "`app` names no object of a module"),
        (["--click", ":app"], "`:app` names no object of a module"),
        (["--click", "a:b", "--python", "/no/python"], "the commands of `a:b` could not be read"),
    ],
)
def test_what_cannot_be_wrapped_is_said(haft, words, sentence):
    refused = haft("toolbox", "wrap", *words, "--to", "box")
    assert refused.code == 2 and sentence in refused.err
    assert not (haft.workspace / "box").exists()


MODULES = {
    "missing": (None, "`missing` cannot be imported: ModuleNotFoundError"),
    "leaves": ("import sys\nsys.exit(3)", "`leaves` cannot be imported: SystemExit: 3"),
    "breaks": ("raise RuntimeError('no\\x1b[31m way')", "`breaks` cannot be imported: RuntimeError: no"),
    "dies": ("import os\nos._exit(3)", "could not be read: it printed nothing"),
    "falls": ("import os, signal\nprint('x', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)", "could not be read"),
    "floods": ("while True: print('x' * 100000)", "could not be read: it printed too much"),
    "lies": (
        "print('haft-command-line: [1]', flush=True)\nimport os\nos._exit(0)",
        "its answer is not valid",
    ),
    "forges": (
        'print(\'haft-command-line: {"commands": [{"name": 5}]}\', flush=True)\nimport os\nos._exit(0)',
        "command 1 has no `name`",
    ),
    "other": ("main = 5", "`other:main` cannot be wrapped: it is a int, not a click or typer command"),
    "without": ("", "`without` has no `main`"),
    "empty": ("import click\nmain = click.Group()", "it needs [[commands]]"),
}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_is_no_program_gives_a_sentence(haft, module):
    text, sentence = MODULES[module]
    if text is not None:
        (haft.workspace / f"{module}.py").write_text(text)
    refused = haft("toolbox", "wrap", "--click", f"{module}:main", "--to", "box")
    assert refused.code == 2, refused.err
    assert sentence in refused.err and "\x1b" not in refused.err
    assert not (haft.workspace / "box").exists()


def test_a_module_is_imported_in_a_sandbox(haft):
    outside = haft.workspace.parent / "outside.txt"
    (haft.workspace / "spec.py").write_text(
        "import sys, click\nprint('garbage')\nprint('more', file=sys.stderr)\n"
        f"for path in ('left.txt', {str(outside)!r}):\n"
        "    try:\n        open(path, 'w').write('x')\n    except OSError:\n        pass\n"
        "@click.command()\n@click.argument('a')\ndef main(a): pass\n"
    )
    done = haft("toolbox", "wrap", "--click", "spec:main", "--to", "box")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [str(haft.workspace / "box/spec")], "the one command has the program's name"
    assert not (haft.workspace / "left.txt").exists() and not outside.exists()
    assert not (haft.workspace / "__pycache__").exists()


def exported(haft, *names):
    """Executables of tools, outside of the workspace; where they lie."""
    box = haft.workspace.parent / "box"
    done = haft("toolbox", "export", *names, "--to", str(box), "--json")
    assert done.code == 0, done.err
    assert [one["name"] for one in done.json] == list(names)
    return box


def test_another_host_is_told_what_an_exported_tool_takes(haft, use):
    box = exported(haft, "write_file")
    described = use(box / "write_file", action="describe")
    assert (described.returncode, described.stderr) == (0, "")
    told = json.loads(described.stdout)
    assert told["name"] == "write_file" and "path" in told["inputSchema"]["properties"]
    other = use(box / "write_file", action="perform")
    assert (other.returncode, other.stdout) == (2, "") and "usage: " in other.stderr


def test_another_host_gets_the_output_alone(haft, use):
    """Started as a plain process, it calls back into haft: what is allowed runs at once, and is in the audit log."""
    box = exported(haft, "read_file")
    outside = {name: value for name, value in haft.env.items() if name.startswith(("HAFT_", "HOME", "XDG_"))}
    elsewhere = haft.workspace.parent / "elsewhere"
    (elsewhere / "b.txt").write_text("words\n")
    said = use(box / "read_file", {"path": "b.txt"}, **outside)
    assert (said.returncode, said.stdout) == (0, "words\n"), said.stderr
    failed = use(box / "read_file", {"path": "none.txt"}, **outside)
    assert failed.returncode != 0 and "none.txt" in failed.stdout + failed.stderr
    logged = haft("log", "--json", cwd=elsewhere).json
    assert [run["tool"] for run in logged] == ["tb__read_file", "tb__read_file"]


def test_what_would_ask_waits_for_a_person(haft, ended):
    box = exported(haft, "write_file")
    running = ended(
        subprocess.Popen(
            [box / "write_file"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=haft.workspace,
            env={**haft.env, "TOOLBOX_ACTION": "execute", "HAFT_APPROVAL_EXPIRES_SECONDS": "100"},
        )
    )
    running.stdin.write(b'{"path": "made.txt", "content": "x"}')
    running.stdin.close()
    running.stdin = None
    (question,) = until(lambda: haft("inbox", "--json").json)
    assert question["tool"] == "tb__write_file" and not (haft.workspace / "made.txt").exists()
    assert haft("approve", question["id"]).code == 0
    _out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    assert (haft.workspace / "made.txt").read_text() == "x"
    assert haft("undo").code == 0 and not (haft.workspace / "made.txt").exists()


def test_haft_is_not_called_from_inside_of_its_own_calls(haft):
    box = exported(haft, "read_file")
    shutil.copy(box / "read_file", haft.workspace / "again")
    program = shlex.join([sys.executable, "-m", "haft.surfaces.cli.main", "tools", "list"])
    for command in ("TOOLBOX_ACTION=execute ./again < /dev/null", program):
        said = haft("tools", "use", "shell", "--command", command, "--approve", "--only", "output")
        assert said.code != 0
        assert "haft cannot run inside one of its own calls" in said.out
    refused = haft("tools", "list", "--json", HAFT_INSIDE="1")
    assert refused.code == 2 and "cannot run inside" in refused.json["error"]["message"]


def test_an_exported_tool_without_haft_says_so(haft, use):
    box = exported(haft, "read_file")
    text = (box / "read_file").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("HAFT = ")]
    (box / "read_file").write_text(text.replace(line, "HAFT = '/nowhere/haft'"))
    said = use(box / "read_file", {"path": "a.txt"}, PATH="/usr/bin:/bin")
    assert said.returncode == 127 and "haft cannot be started" in said.stderr


def test_every_tool_is_exported_where_none_is_named(haft):
    box = haft.workspace.parent / "box"
    first = haft("toolbox", "export", "--to", str(box), "--json").json
    assert {"read_file", "shell", "skill"} <= {one["name"] for one in first}
    again = haft("toolbox", "export", "--to", str(box), "--json", AMP_TOOLBOX=str(box)).json
    assert [one["name"] for one in again] == [one["name"] for one in first], "exports are not exported again"
    assert not any(one["new"] for one in again)


@pytest.mark.parametrize("form", ["mcp", "openai", "anthropic", "amp"])
def test_an_exported_tool_is_shown_in_every_form(haft, form):
    box = exported(haft, "read_file")
    ours = haft("tools", "show", "read_file", "--as", form, "--json")
    theirs = haft("tools", "show", "tb__read_file", "--as", form, "--json", AMP_TOOLBOX=str(box))
    assert theirs.code == 0, theirs.err
    assert theirs.out.replace("tb__read_file", "read_file").count("start_line") == ours.out.count("start_line") > 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["raed_file"], "read_file"),
        (["tb__read_file"], "`tb__read_file` is exported already"),
        (["x"], "`x` cannot be called: it is broken: [cli.x]"),
    ],
)
def test_what_cannot_be_exported_is_said(haft, words, sentence):
    box = exported(haft, "read_file")
    config = haft.workspace.parent / "config/haft/haft.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[cli.x]\n")
    refused = haft("toolbox", "export", *words, "--to", "out", AMP_TOOLBOX=str(box))
    assert refused.code == 2 and sentence in refused.err
    assert not (haft.workspace / "out").exists()


def test_command_lines_of_a_workspace_that_is_not_trusted_are_ignored_and_that_is_said(haft):
    (haft.workspace / "spec.toml").write_text(SPEC)
    (haft.workspace / "haft.toml").write_text('[cli.git]\nspec = "./spec.toml"\n')
    used = haft("tools", "use", "git-status")
    assert used.code == 2 and "1 setting of haft.toml waits for `haft trust`, which shows it" in used.err
    assert "ignored: " in (shown := haft("config", "show").out) and "`cli = " in shown
    assert haft("trust", "--yes").code == 0
    (found,) = [one for one in haft("tools", "list", "--json").json if one["kind"] == "cli"]
    assert (found["name"], found["state"]) == ("git-status", "ready")
    for form in ("mcp", "openai", "anthropic", "amp"):
        shown = haft("tools", "show", "git-status", "--as", form, "--json")
        assert shown.code == 0 and "In short" in shown.out


def test_a_python_module_of_the_workspace_that_only_prints_changes_nothing(haft):
    (haft.workspace / "depot.py").write_text("")
    (haft.workspace / "stock.py").write_text(f"import depot\n{STOCK}")
    (haft.workspace / "haft.toml").write_text('[cli.stock]\nargparse = "stock:build_parser"\n')
    assert haft("trust", "--yes").code == 0
    used = haft("tools", "use", "stock", "--item", "bolt", "--approve", "--json")
    assert used.json["output"] == "bolt\n", used.err
    assert not (haft.workspace / "__pycache__").exists()
