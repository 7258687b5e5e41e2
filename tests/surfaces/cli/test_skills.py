"""`haft skills`, in this process: the same entry as the program's."""

import json
import logging
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from haft.surfaces.cli.main import run

from .conftest import Said


@dataclass
class Desk:
    workspace: Path
    home: Path
    state: Path
    capture: pytest.CaptureFixture

    def __call__(self, *words):
        code = run(words)
        out, err = self.capture.readouterr()
        assert "haft itself failed" not in err
        return Said(code, out, err)

    def make(self, path, text=None):
        folder = self.workspace / path
        folder.mkdir(parents=True)
        text = text or f"---\nname: {folder.name}\ndescription: Do {folder.name}.\n---\n# It\n"
        (folder / "SKILL.md").write_text(text)
        return folder


@pytest.fixture
def haft(tmp_path, monkeypatch, capsys):
    workspace, home, state = tmp_path / "workspace", tmp_path / "home", tmp_path / "state"
    workspace.mkdir()
    home.mkdir()
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HAFT_HOME", str(state))
    log = logging.getLogger("haft")
    monkeypatch.setattr(log, "handlers", log.handlers)
    monkeypatch.setattr(log, "propagate", log.propagate)
    return Desk(workspace, home, state, capsys)


def test_list_shows_name_place_state_and_first_line(haft):
    haft.make(".agents/skills/deploy", '---\nname: deploy\ndescription: "First.\\nSecond."\n---\n')
    listed = haft("skills", "list")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.splitlines()[0] == "deploy             workspace  -  First."
    assert listed.out.splitlines()[1].startswith("haft-tool-creator  builtin    -  Make tools for haft")
    assert not haft.state.exists()
    haft("skills", "activate", "deploy")
    assert haft("skills", "list").out.splitlines()[0] == "deploy             workspace  active  First."
    haft("skills", "activate", "haft-tool-creator", "--thread", "T-1")
    assert haft("skills", "list").out.splitlines()[1].startswith("haft-tool-creator  builtin    in 1 thread  Make")


def test_what_cannot_be_used_is_counted_and_explained(haft):
    winner = haft.make(".agents/skills/same")
    loser = haft.make(".claude/skills/same")
    haft.make(".agents/skills/broken", "---\nname: other\ndescription: x\n---\n")
    listed = haft("skills", "list")
    assert "2 more cannot be used: `haft skills list --all` says why" in listed.err
    assert "other" not in listed.out and listed.out.count("same") == 2
    everything = haft("skills", "list", "--all").out
    assert "its name is `other` and its folder is `broken`; give both the same name" in everything
    assert f"shadowed  {loser} is shadowed by {winner}" in everything
    facts = {(one["name"], one["provenance"]): one for one in haft("skills", "list", "--all", "--json").json}
    assert facts["other", "workspace"]["problem"] and not facts["other", "workspace"]["active"]
    assert [one["name"] for one in haft("skills", "list", "--json").json] == ["same", "haft-tool-creator"]


def test_words_of_strangers_cannot_steer_the_terminal(haft):
    haft.make(".agents/skills/red", '---\nname: red\ndescription: "\\e[31mred \\u202e"\n---\n')
    folder = haft.workspace / ".agents/skills/\x1b[2Jnasty"
    folder.mkdir()
    for words in (["skills", "list"], ["skills", "list", "--all"]):
        said = haft(*words)
        assert "\x1b" not in said.out + said.err and "\u202e" not in said.out


def test_show_prints_the_text_or_a_reference_as_it_is(haft):
    folder = haft.make(".agents/skills/deploy")
    (folder / "references").mkdir()
    (folder / "references/setup.md").write_text("set it up\n")
    assert haft("skills", "show", "deploy").out == (folder / "SKILL.md").read_text()
    assert haft("skills", "show", "deploy", "setup").out == "set it up\n"
    wrong = haft("skills", "show", "deploy", "stup")
    assert wrong.code == 2 and "did you mean `references/setup.md`?" in wrong.err and wrong.out == ""
    outside = haft("skills", "show", "deploy", "../../../a.txt")
    assert outside.code == 2 and "leads out of the folder" in outside.err


def test_show_as_json_has_everything(haft):
    folder = haft.make(".agents/skills/deploy")
    for path, text in {"tools/run": "x", "notes.md": "n", "mcp.json": '{"db": {}}'}.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    haft("skills", "activate", "deploy")
    haft("skills", "activate", "deploy", "--thread", "T-1")
    assert haft("skills", "show", "deploy", "--json").json == {
        "name": "deploy",
        "description": "Do deploy.",
        "folder": str(folder),
        "provenance": "workspace",
        "problem": None,
        "shadowedBy": None,
        "active": True,
        "threads": ["T-1"],
        "references": ["notes.md"],
        "tools": ["tools/run"],
        "mcpServers": ["db"],
        "reference": None,
        "text": (folder / "SKILL.md").read_text(),
    }
    (folder / "mcp.json").write_text("[]")
    said = haft("skills", "show", "deploy", "notes", "--json")
    assert said.json["text"] == "n" and said.json["mcpServers"] == [] and "is not a map of servers" in said.err


def test_an_unknown_skill_is_named_with_the_near_miss_and_a_broken_one_with_its_reason(haft):
    haft.make(".agents/skills/deploy")
    haft.make(".agents/skills/broken", "nothing")
    for verb in ("show", "activate", "deactivate"):
        said = haft("skills", verb, "deplyo")
        assert said.code == 2 and "did you mean `deploy`?" in said.err
        assert "no front matter" in haft("skills", verb, "broken").err
    assert haft("skills", "activate", "deplyo", "--json").json["error"]["code"] == "bad-usage"
    assert not haft.state.exists()


def tool(folder, name):
    (folder / "tools").mkdir(exist_ok=True)
    path = folder / "tools" / name
    path.write_text("#!/bin/sh\nprintf 'name: deploy\\ndescription: Do it.\\n'\n")
    path.chmod(0o755)
    return path


def test_activating_says_which_tools_are_available(haft):
    folder = haft.make(".agents/skills/deploy")
    publish = tool(folder, "publish")
    out = haft("skills", "activate", "deploy").out
    assert out == "deploy is now active in the workspace\n  tools/publish is now available\n"
    assert "already active" in haft("skills", "activate", "deploy").out
    inside = haft("skills", "deactivate", "deploy", "--thread", "T-1")
    assert inside.out == "deploy was not active in the thread T-1\n"
    assert "it is active in the workspace, so in every thread: `haft skills deactivate deploy`" in inside.err
    haft("skills", "activate", "deploy", "--thread", "T-1")
    left = haft("skills", "deactivate", "deploy")
    assert left.out == "deploy is no longer active in the workspace\n  tools/publish is no longer available\n"
    assert "still active in 1 thread: `--thread T-1`" in left.err
    assert haft("skills", "deactivate", "deploy", "--thread", "T-1", "--json").json == {
        "name": "deploy",
        "thread": "T-1",
        "active": False,
        "changed": True,
        "tools": ["tools/publish"],
        "notReady": {},
        "mcpServers": [],
    }
    publish.unlink()
    assert "it has no tools of its own" in haft("skills", "activate", "deploy").out


def test_activating_names_what_is_ready_and_the_rest_with_the_reason_also_for_servers(haft):
    folder = haft.make(".agents/skills/deploy")
    tool(folder, "publish")
    tool(folder, "shy").chmod(0o644)
    tool(folder, "sick").write_text("#!/bin/sh\necho out of order >&2; exit 3\n")
    (folder / "tools/package.json").write_text("{}")
    (folder / "mcp.json").write_text('{"db": {}, "search": {"command": "x"}}')
    out = haft("skills", "activate", "deploy").out.splitlines()
    assert out[1] == "  tools/publish is now available"
    (shy,) = [line for line in out if "tools/shy" in line]
    (sick,) = [line for line in out if "tools/sick" in line]
    assert "chmod +x" in shy and "out of order" in sick
    (db,) = [line for line in out if "mcp__db" in line]
    (search,) = [line for line in out if "mcp__search" in line]
    assert "it is broken" in db and "needs a `command` to start" in db
    assert "it is changed" in search and "`haft providers trust search`" in search
    assert not any("package.json" in line for line in out)
    facts = haft("skills", "activate", "deploy", "--json").json
    assert (facts["tools"], sorted(facts["notReady"])) == (
        ["tools/publish"],
        ["mcp__db", "mcp__search", "tools/shy", "tools/sick"],
    )
    assert facts["mcpServers"] == ["db", "search"]


def test_a_skill_that_is_gone_can_still_be_deactivated(haft):
    folder = haft.make(".agents/skills/deploy")
    haft("skills", "activate", "deploy")
    (folder / "SKILL.md").unlink()
    said = haft("skills", "deactivate", "deploy")
    assert said.code == 0 and "no longer active" in said.out
    assert haft("skills", "deactivate", "deploy").code == 2


def test_what_is_active_is_a_skill_and_not_its_name(haft):
    mine = haft.home / ".config/agents/skills/dep"
    mine.mkdir(parents=True)
    (mine / "SKILL.md").write_text("---\nname: dep\ndescription: Mine.\n---\n")
    haft("skills", "activate", "dep")
    assert haft("skills", "list", "--json").json[0]["active"]
    theirs = haft.make(".agents/skills/dep")
    (theirs / "tools").mkdir()
    (theirs / "tools/run").write_text("x")
    first = haft("skills", "list", "--json").json[0]
    assert (first["folder"], first["active"], first["threads"]) == (str(theirs), False, [])
    assert f"-  (hides the user's one in {mine}) Do dep." in haft("skills", "list").out
    for verb in ("show", "activate"):
        assert (
            f"the workspace's `dep` in {theirs}, which hides the user's one in {mine}"
            in haft("skills", verb, "dep").err
        )
    left = haft("skills", "deactivate", "dep", "--json").json
    assert (left["active"], left["changed"], left["tools"]) == (False, True, ["tools/run"])
    (theirs / "SKILL.md").unlink()
    assert not haft("skills", "list", "--json").json[0]["active"], "whatever had that name is active no longer"


def test_a_skill_in_front_of_the_built_in_one_says_so(haft):
    haft.make(".agents/skills/haft-tool-creator")
    assert "(hides the built-in one)" in haft("skills", "list").out
    assert "which hides the built-in one" in haft("skills", "show", "haft-tool-creator").err
    assert haft("skills", "show", "haft-tool-creator", "-q").err == ""


def test_names_of_files_and_threads_forge_no_lines_and_no_commands(haft):
    folder = haft.make(".agents/skills/deploy")
    tool(folder, "run joins\n  other")
    assert haft("skills", "activate", "deploy").out.splitlines()[1:] == ["  tools/run joins\\n  other is now available"]
    haft("skills", "activate", "deploy", "--thread", "T $(touch x)")
    assert "`--thread 'T $(touch x)'`" in haft("skills", "deactivate", "deploy").err


def test_a_failed_install_leaves_no_folders(haft, tmp_path):
    (tmp_path / "x.zip").write_bytes(b"PK")
    assert haft("skills", "install", str(tmp_path / "x.zip")).code == 2
    assert os.listdir(haft.workspace) == []


def test_a_thread_without_a_name_is_none(haft):
    for thread in ("", "x" * 201):
        said = haft("skills", "activate", "haft-tool-creator", "--thread", thread)
        assert said.code == 2 and "1 to 200 characters" in said.err


def test_a_damaged_state_file_is_a_warning(haft):
    haft("skills", "activate", "haft-tool-creator")
    (file,) = (haft.state / "skills").glob("*.json")
    file.write_text("{")
    listed = haft("skills", "list")
    assert listed.code == 0 and "cannot be read" in listed.err and "active" not in listed.out.split("Make")[0]


def test_make_says_what_to_do_next_and_overwrites_nothing(haft):
    made = haft("skills", "make", "my-skill", "--description", "Use when: testing.")
    folder = haft.workspace / ".agents/skills/my-skill"
    assert made.code == 0 and f"made {folder}" in made.out and "haft skills show my-skill" in made.out
    assert haft("skills", "list", "--json").json[0]["description"] == "Use when: testing."
    assert haft("skills", "make", "my-skill").code == 2
    assert haft("skills", "make", "my-skill", "--force", "--json").json == {"name": "my-skill", "folder": str(folder)}
    assert haft("skills", "make", "My Skill").code == 2
    haft("skills", "make", "mine", "--global")
    assert (haft.home / ".config/agents/skills/mine/SKILL.md").exists()


def test_a_name_that_is_refused_leaves_no_folders(haft):
    haft("skills", "make", "../x")
    assert os.listdir(haft.workspace) == []


def test_install_names_the_executables_it_brought(haft, tmp_path):
    archive = tmp_path / "x.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("one/SKILL.md", "---\nname: one\ndescription: d\n---\n")
        info = zipfile.ZipInfo("one/tools/run")
        info.external_attr = 0o100755 << 16
        file.writestr(info, "#!/bin/sh\n")
    said = haft("skills", "install", str(archive))
    folder = haft.workspace / ".agents/skills/one"
    assert said.out == f"installed one in {folder}\n  with the executable tools/run\n"
    assert "their calls need approval" in said.err
    assert haft("skills", "install", str(archive)).code == 2
    assert haft("skills", "install", str(archive), "--force", "--json").json == [
        {"name": "one", "description": "d", "folder": str(folder), "executables": ["tools/run"], "replaced": True}
    ]
    assert haft("skills", "install", str(folder), "--global").code == 0
    assert [one["shadowedBy"] for one in haft("skills", "list", "--all", "--json").json][:2] == [None, str(folder)]
    assert json.loads(haft("skills", "install", "", "--json").out)["error"]["code"] == "bad-usage"
    assert haft("skills", "install", "nowhere").code == 2


def test_shells_complete_the_skills_that_can_be_used(haft, monkeypatch):
    haft.make(".agents/skills/deploy")
    haft.make(".agents/skills/deplored", "nothing")
    monkeypatch.setenv("_HAFT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "haft skills show dep")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert haft().out.split() == ["plain,deploy"]
