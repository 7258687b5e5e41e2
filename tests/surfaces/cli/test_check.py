"""`haft tools check`, in this process where that is the same."""

import json
import logging
import os
import shutil
from pathlib import Path

import jsonschema_rs
import pytest

from haft.authoring.check import CODES
from haft.authoring.new_tool import KINDS, make
from haft.sources.checks import behaviour
from haft.surfaces.cli.commands import check as command
from haft.surfaces.cli.main import run
from haft.surfaces.cli.words.parameters import OPTIONS

SHAPES = Path(__file__).parents[3] / "docs" / "reference" / "shapes"
GOOD = """#!/usr/bin/env bash
cat <<'END'
name: run_tests
description: Run the tests of this project. Use it instead of a shell.
path: string which file to test
END
"""


def fits(name, value):
    jsonschema_rs.validator_for(json.loads((SHAPES / f"{name}.json").read_text())).validate(value)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A workspace without tools, a home and a state home."""
    workspace = tmp_path / "workspace"
    (workspace / ".agents" / "tools").mkdir(parents=True)
    (workspace / ".git").mkdir()
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AMP_TOOLBOX", "")
    monkeypatch.setattr(behaviour, "SLOW_SECONDS", 1000)  # a busy machine is nobody's fault
    log = logging.getLogger("haft")  # the command takes it over, as it may: its process is its own
    monkeypatch.setattr(log, "handlers", list(log.handlers))
    monkeypatch.setattr(log, "propagate", log.propagate)
    return workspace


@pytest.fixture
def haft(here, capsys):
    def call(*words):
        code = run(["tools", "check", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def made(path, content=GOOD, mode=0o755):
    path.write_text(content, newline="")
    path.chmod(mode)
    return path


def test_a_good_tool_is_quiet_on_stdout_and_summed_up_on_stderr(haft, here):
    made(here / "run_tests")
    assert haft("./run_tests") == (0, "", "1 checked: no problems\n")
    assert haft("./run_tests", "-q") == (0, "", "")


def test_a_finding_is_a_line_with_its_place_level_and_code_and_a_hint(haft, here):
    made(here / "run_tests", GOOD.replace("which file to test", "").replace("#!", "\ufeff#!"))
    code, out, err = haft("./run_tests")
    assert (code, out) == (
        1,
        "./run_tests:1: error bom-shebang: a byte order mark stands before `#!`\n    hint: save it without one\n",
    )
    assert err == (
        "1 checked: 1 error\nhint: `--fix` fixes 1 of them\nhint: `haft tools check --explain CODE` explains a code\n"
    )


def test_warnings_alone_exit_0(haft, here):
    made(here / "run_tests", GOOD.replace("which file to test", ""))
    code, out, err = haft("./run_tests")
    assert code == 0
    assert "./run_tests: warning parameter-undescribed: no description: `path`\n" in out
    assert err.startswith("1 checked: 1 warning\n")


def test_what_strangers_wrote_cannot_steer_the_terminal(haft, here):
    made(here / "tool\x1b[31m", GOOD.replace("name: run_tests", "name: run\x1b[31m"))
    _code, out, _err = haft("./tool\x1b[31m")
    assert "hidden-characters" in out and "\x1b" not in out


def test_json_fits_its_schema_in_every_way_it_comes(haft, here):
    made(here / "run_tests")
    made(here / "broken", "\ufeff" + GOOD)
    (here / "link").symlink_to("nowhere")
    skill = here / "my-skill"
    skill.mkdir()
    (skill / "SKILL.md").write_text("nothing")
    code, out, err = haft("./run_tests", "./broken", "./link", "./my-skill", "read_file", "--json")
    found = json.loads(out)
    fits("checks", found)
    assert (code, err) == (1, "")
    assert [(one["target"], one["kind"], one["name"], one["ok"]) for one in found] == [
        ("./run_tests", "amp-toolbox", "tb__run_tests", True),
        ("./broken", "amp-toolbox", None, False),
        ("./link", "amp-toolbox", None, False),
        ("./my-skill", "skill", None, False),
        ("read_file", "builtin", "read_file", True),
    ]
    assert found[1]["findings"][0]["code"] == "bom-shebang" and found[1]["findings"][0]["fixable"] is True


def test_fix_mends_says_what_it_did_and_checks_again(haft, here):
    tool = made(here / "run_tests", "\ufeff" + GOOD.replace("\n", "\r\n").replace("which file to test", ""), 0o646)
    code, out, err = haft("./run_tests", "--fix", "--json")
    (report,) = json.loads(out)
    fits("checks", [report])
    assert report["fixed"] == ["bom-shebang", "crlf-shebang", "world-writable", "not-executable"]
    assert (code, [one["code"] for one in report["findings"]]) == (0, ["parameter-undescribed"])
    assert err.count("./run_tests: fixed ") == 4 and "mode 0646 is now 0644" in err
    assert tool.read_bytes() == GOOD.replace("which file to test", "").encode()
    assert tool.stat().st_mode & 0o777 == 0o755
    assert json.loads(haft("./run_tests", "--fix", "--json")[1])[0]["fixed"] == []


def test_what_cannot_be_mended_is_said_and_stays_found(haft, here, tmp_path):
    outside = made(tmp_path / "outside", mode=0o644)
    (here / "run_tests").symlink_to(outside)
    code, out, err = haft("./run_tests", "--fix")
    assert code == 1 and "error not-executable" in out and "error leads-out" in out
    assert "not-executable could not be fixed: it is a link out of its directory" in err
    assert outside.stat().st_mode & 0o777 == 0o644


def test_nothing_is_mended_where_the_toolbox_leads_out_of_the_workspace(haft, here, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    tool = made(victim / "run_tests", GOOD.replace("\n", "\r\n"), 0o646)
    (here / ".agents/tools").rmdir()
    (here / ".agents/tools").symlink_to(victim)
    code, out, err = haft("--fix")
    assert code == 1 and "leads-out" in out and ": fixed " not in err
    assert tool.stat().st_mode & 0o777 == 0o646 and b"\r\n" in tool.read_bytes()


def test_tools_are_listed_once_for_all_names(haft, monkeypatch):
    asked = []
    real = command.listings
    monkeypatch.setattr(command, "listings", lambda said, **more: asked.append(1) or real(said, **more))
    assert haft("read_file", "write_file")[0] == 0
    assert len(asked) == 1


def test_a_folder_is_every_tool_in_it(haft, here):
    tools = here / "more"
    tools.mkdir()
    for name in ("run_tests", "b"):
        made(tools / name, GOOD.replace("run_tests", name))
    (tools / "README.md").touch()
    assert haft("more/")[2] == "2 checked: no problems\n"
    assert haft("more")[2] == "2 checked: no problems\n"


def test_without_words_the_workspaces_own_tools_are_checked(haft, here):
    code, out, _err = haft("--json")
    assert (code, json.loads(out)) == (0, [])
    assert "nothing to check" in haft()[2]
    made(here / ".agents" / "tools" / "run_tests", "\ufeff" + GOOD)
    code, out, _err = haft("--json")
    assert (code, [Path(one["target"]).name for one in json.loads(out)]) == (1, ["run_tests"])


def test_a_loaded_tool_is_asked_anew_by_its_name_and_only_once(haft, here):
    tool = made(here / ".agents" / "tools" / "run_tests")
    assert haft("tb__run_tests")[2] == "1 checked: no problems\n"
    tool.write_text(GOOD.replace("which file to test", ""))
    (report,) = json.loads(haft("--json")[1])
    assert (report["target"], report["findings"][0]["code"]) == (str(tool), "parameter-undescribed")
    assert len(json.loads(haft("tb__run_tests", ".agents/tools", "--json")[1])) == 1


def test_a_word_that_is_neither_a_tool_nor_a_path_is_refused_with_the_near_miss(haft, here):
    code, _out, err = haft("read_fil")
    assert code == 2 and "did you mean `read_file`?" in err
    code, _out, err = haft("./nothing")
    assert code == 2 and "`./nothing` does not exist" in err


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained(haft, code):
    exit_code, out, err = haft("--explain", code)
    assert (exit_code, err) == (0, "")
    assert out.startswith(f"{code} ({CODES[code].level}") and CODES[code].meaning in out
    assert "Wrong:" in out and "Right:" in out


def test_an_explanation_as_json_and_what_is_no_code(haft):
    code, out, _err = haft("--explain", "not-executable", "--json")
    fits("check-code", json.loads(out))
    assert (code, json.loads(out)["fixable"]) == (0, True)
    code, _out, err = haft("--explain", "not-executible")
    assert code == 2 and "did you mean `not-executable`?" in err
    code, _out, err = haft("--explain", "not-executable", "--fix")
    assert code == 2 and "cannot be combined" in err


def test_haft_s_own_options_are_the_reserved_names():
    assert {f"--{name}" for name in command.RESERVED} == {*OPTIONS}
    assert "approve" in command.RESERVED and "no-cache" in command.RESERVED


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.word)
def test_a_fresh_tool_whose_text_was_never_changed_is_found(haft, here, kind):
    if shutil.which(kind.program) is None:
        pytest.skip(f"{kind.program} is not installed")
    path = make("fresh_one", kind, str(here / "new"), force=False).path
    code, out, _err = haft(path)
    assert code == 0 and out.count("warning unchanged-template") == 1
    for file in [path] if os.path.isfile(path) else [f"{path}/tool.py"]:
        text = Path(file).read_text()
        Path(file).write_text(text.replace("Print the first lines", "Print the first few lines"))
    assert "unchanged-template" not in haft(path)[1]


def test_a_fresh_skill_whose_text_was_never_changed_is_found(haft, here):
    assert run(["skills", "make", "fresh"]) == 0
    assert "warning unchanged-template" in haft(".agents/skills/fresh/")[1]


def test_a_text_tool_without_a_description_is_an_error_with_a_cure(haft, here):
    made(here / "mute", "#!/bin/sh\necho 'name: mute'\n")
    code, out, _err = haft("./mute")
    assert code == 1 and "error no-description" in out and "print `description: …`" in out
