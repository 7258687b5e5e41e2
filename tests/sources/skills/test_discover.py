"""Which skills are found where, and which cannot be used."""

import os
import subprocess
import sys

import pytest

from haft.contracts import BadUsage
from haft.sources.skills import Skills, discover
from haft.sources.skills.texts import server_names

PLACES = [".agents/skills", "~/.config/agents/skills", "~/.config/amp/skills", ".claude/skills", "~/.claude/skills"]


def problem_of(place):
    (skill,) = place.own()
    assert not skill.is_usable
    return skill.problem


def test_the_places_are_looked_at_in_the_order_of_the_format_and_the_shipped_ones_last(place):
    for number, path in enumerate(PLACES):
        place.make(f"{path}/one-{number}")
    found = place.skills().found()
    assert [skill.name for skill in found[:5]] == [f"one-{number}" for number in range(5)]
    assert [skill.provenance for skill in found[:5]] == ["workspace", "user", "user", "workspace", "user"]
    assert [(skill.name, skill.provenance) for skill in found[5:]] == [("haft-tool-creator", "builtin")]


@pytest.mark.parametrize("first", range(4))
def test_the_earlier_place_wins_a_name_and_the_loser_is_listed(place, first):
    winner = place.make(f"{PLACES[first]}/same")
    losers = [place.make(f"{path}/same") for path in PLACES[first + 1 :]]
    won, *lost = place.own()
    assert (won.folder, won.shadowed_by, won.is_usable) == (str(winner), None, True)
    assert [skill.folder for skill in lost] == [str(folder) for folder in losers]
    assert {skill.shadowed_by for skill in lost} == {str(winner)} and not any(skill.is_usable for skill in lost)
    assert place.skills().get("same").folder == str(winner)


def test_a_broken_skill_shadows_nobody(place):
    place.make(".agents/skills/same", "nothing")
    good = place.make("~/.claude/skills/same")
    assert place.skills().get("same").folder == str(good)


def test_what_ships_can_be_replaced_by_ones_own(place):
    own = place.make("~/.config/agents/skills/haft-tool-creator")
    assert place.skills().get("haft-tool-creator").folder == str(own)


def test_files_hidden_folders_and_missing_places_are_passed_over(place):
    folder = place.make(".agents/skills/.hidden").parent
    (folder / "README.md").write_text("x")
    assert place.own() == []
    (folder.parent.parent / ".claude").write_text("no folder")
    assert place.own() == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "---\nname: other\ndescription: b\n---\n",
            "its name is `other` and its folder is `here`; give both the same name",
        ),
        ("---\nname: Not Good\ndescription: b\n---\n", "`Not Good` is not a valid skill name"),
        ("nothing", "no front matter"),
        (b"\xff\xff", "not UTF-8"),
        ("x" * 1_000_001, "has 1_000_001 bytes; move most of it into references/"),
    ],
)
def test_a_skill_that_breaks_a_rule_is_listed_with_reason_and_cure(place, text, words):
    place.make(".agents/skills/here", text)
    assert words in problem_of(place)


def test_the_name_is_the_folders_where_the_front_matters_cannot_be_used(place):
    place.make(".agents/skills/here", "---\nname: ../../x\ndescription: b\n---\n")
    assert [skill.name for skill in place.own()] == ["here"]
    place.make(".agents/skills/here", "---\nname: there\ndescription: b\n---\n")
    assert [skill.name for skill in place.own()] == ["there"]


def test_a_folder_without_a_skill_file_is_named(place):
    (place.workspace / ".agents/skills/empty").mkdir(parents=True)
    assert problem_of(place).startswith("it has no SKILL.md")


def test_a_pipe_a_directory_and_a_loop_in_place_of_the_file_are_never_waited_for(place):
    folder = place.workspace / ".agents/skills"
    for name in ("pipe", "directory", "loop"):
        (folder / name).mkdir(parents=True)
    os.mkfifo(folder / "pipe/SKILL.md")
    (folder / "directory/SKILL.md").mkdir()
    (folder / "loop/SKILL.md").symlink_to("SKILL.md")
    assert [(skill.name, skill.is_usable) for skill in place.own()] == [
        ("directory", False),
        ("loop", False),
        ("pipe", False),
    ]
    assert "not a regular file" in place.own()[2].problem


def test_sixty_megabytes_are_not_read(place):
    folder = place.make(".agents/skills/large")
    os.truncate(folder / "SKILL.md", 60_000_000)
    assert "60_000_000 bytes" in problem_of(place)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_a_problem_of_its_own(place):
    folder = place.make(".agents/skills/closed")
    (folder / "SKILL.md").chmod(0)
    assert "permission is denied" in problem_of(place)


def test_names_on_disk_that_are_no_text_do_no_harm(place):
    for name in (b"\xff\xfe", b"a\nb", b"\x1b[31m"):
        os.makedirs(os.path.join(os.fsencode(place.workspace), b".agents/skills", name))
    assert len(place.own()) == 3 and not any(skill.is_usable for skill in place.own())


def test_a_workspace_cannot_make_a_skill_of_what_lies_outside_of_it(place, tmp_path):
    outside = tmp_path / "private/notes"
    outside.mkdir(parents=True)
    (outside / "SKILL.md").write_text("---\nname: notes\ndescription: My own notes.\n---\nsecret\n")
    (place.workspace / ".agents/skills").mkdir(parents=True)
    (place.workspace / ".agents/skills/notes").symlink_to(outside)
    (skill,) = place.own()
    assert "link out of the workspace" in skill.problem and skill.description == ""
    with pytest.raises(BadUsage, match="link out of the workspace"):
        place.skills().text(skill)


def test_nor_when_the_whole_place_is_a_link(place, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    place.make("../elsewhere/notes")
    (place.workspace / ".agents").mkdir()
    (place.workspace / ".agents/skills").symlink_to(tmp_path / "elsewhere")
    assert "link out of the workspace" in problem_of(place)


def test_nor_when_it_becomes_a_link_after_it_was_found(place, tmp_path):
    folder = place.make(".agents/skills/notes")
    skills = place.skills()
    skill = skills.get("notes")
    place.make("../private/notes")
    folder.rename(tmp_path / "gone")
    folder.symlink_to(tmp_path / "private/notes")
    with pytest.raises(BadUsage, match="link out of the workspace"):
        skills.text(skill)


@pytest.fixture
def swapped(place, tmp_path, monkeypatch):
    """A skill whose folder becomes a link to somebody's own, after it was looked at and before it is read."""
    folder = place.make(".agents/skills/notes")
    private = place.make("../private/notes", description="secret")
    (private / "key.md").write_text("secret")
    (private / "tools").mkdir()
    (private / "tools/secret").write_text("x")

    def swap():
        if not folder.is_symlink():
            folder.rename(tmp_path / "gone")
            folder.symlink_to(private)

    return swap


@pytest.mark.parametrize("reference", [None, "key", "key.md", "tools/secret"])
def test_nor_when_it_becomes_one_while_it_is_read(place, swapped, monkeypatch, reference):
    skills = place.skills()
    skill = skills.get("notes")
    monkeypatch.setattr(skills, "_require_in_place", lambda _skill: swapped())
    with pytest.raises(BadUsage) as caught:
        skills.text(skill, reference)
    assert "secret" not in f"{caught.value} {caught.value.hint}".replace("tools/secret", "")
    assert skill.references() == [] and skill.tool_files() == []
    with pytest.raises(BadUsage):
        server_names(skill)


def test_nor_while_its_front_matter_is_read(place, swapped, monkeypatch):
    look = discover._look
    monkeypatch.setattr(discover, "_look", lambda *words: (look(*words), swapped())[0])
    assert "secret" not in repr(place.own()) and not place.own()[0].is_usable


def test_a_link_that_changes_while_it_is_resolved_is_no_failure_of_ours(place, swapped, monkeypatch):
    skills = place.skills()
    skill = skills.get("notes")
    swapped()
    realpath = os.path.realpath

    def changing(path, **more):
        if os.fspath(path).startswith(skill.folder):
            raise OSError(22, "Invalid argument")
        return realpath(path, **more)

    monkeypatch.setattr(os.path, "realpath", changing)
    assert not skills.found()[0].is_usable and skill.tool_folders == ()
    with pytest.raises(BadUsage, match="link out of the workspace"):
        skills.text(skill)


def test_what_a_workspaces_folder_of_references_links_to_is_not_listed(place, tmp_path):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_secret").write_text("x")
    place.make("docs")
    for path in (".agents/skills/leak", "~/.claude/skills/mine"):
        (place.make(path) / "references").symlink_to(tmp_path / ".ssh")
    (place.make(".agents/skills/near") / "references").symlink_to(place.workspace / "docs")
    (place.make(".agents/skills/own") / "texts").mkdir()
    (place.workspace / ".agents/skills/own/texts/a.md").write_text("x")
    (place.workspace / ".agents/skills/own/references").symlink_to("texts")
    assert {skill.name: skill.references() for skill in place.own()} == {
        "leak": [],
        "mine": [],
        "near": [],
        "own": ["references/a.md", "texts/a.md"],
    }


def test_a_link_out_of_the_workspace_is_no_tool_of_its_skill_and_one_of_the_users_is(place, tmp_path):
    (tmp_path / "env").write_text("x")
    for path in (".agents/skills/theirs", "~/.claude/skills/mine"):
        (place.make(path) / "tools").mkdir()
    (place.workspace / ".agents/skills/theirs/tools/env").symlink_to(tmp_path / "env")
    (place.home / ".claude/skills/mine/tools/env").symlink_to(tmp_path / "env")
    assert {skill.name: skill.tool_files() for skill in place.own()} == {"theirs": [], "mine": ["tools/env"]}


def test_a_link_inside_of_the_workspace_works(place):
    place.make("kept/notes")
    (place.workspace / ".agents/skills").mkdir(parents=True)
    (place.workspace / ".agents/skills/notes").symlink_to("../../kept/notes")
    assert [skill.is_usable for skill in place.own()] == [True]


def test_a_user_may_link_folders_from_anywhere_but_one_in_the_workspace_is_the_workspaces(place, tmp_path):
    place.make("../dotfiles/mine")
    place.make("kept/theirs")
    folder = place.home / ".config/agents/skills"
    folder.mkdir(parents=True)
    (folder / "mine").symlink_to(tmp_path / "dotfiles/mine")
    (folder / "theirs").symlink_to(place.workspace / "kept/theirs")
    assert [(skill.name, skill.provenance, skill.is_usable) for skill in place.own()] == [
        ("mine", "user", True),
        ("theirs", "workspace", True),
    ]


def test_a_skill_file_that_is_a_link_out_of_its_folder_is_refused(place, tmp_path):
    folder = place.make("~/.claude/skills/notes")
    (folder / "SKILL.md").rename(tmp_path / "SKILL.md")
    (folder / "SKILL.md").symlink_to(tmp_path / "SKILL.md")
    assert "link out of its folder" in problem_of(place)
    (folder / "SKILL.md").unlink()
    (tmp_path / "SKILL.md").rename(folder / "text.md")
    (folder / "SKILL.md").symlink_to("text.md")
    assert place.own()[0].is_usable


def test_where_the_home_directory_is_the_workspace_no_skill_shadows_itself(place):
    place.make(".claude/skills/one")
    skills = Skills(str(place.workspace), env={"HOME": str(place.workspace)}).found()
    assert (skills[0].name, skills[0].provenance, skills[0].is_usable) == ("one", "workspace", True)
    assert sum(skill.name == "one" for skill in skills) == 1


def test_so_too_where_it_has_another_name(place, tmp_path):
    place.make(".claude/skills/one")
    (tmp_path / "alias").symlink_to(place.workspace)
    skills = Skills(str(place.workspace), env={"HOME": str(tmp_path / "alias")}).found()
    assert [skill.name for skill in skills].count("one") == 1


def test_a_home_that_is_no_absolute_path_is_not_looked_at(place, monkeypatch):
    monkeypatch.chdir(place.home)
    place.make("~/.claude/skills/one")
    assert [skill.provenance for skill in Skills(str(place.workspace), env={"HOME": "."}).found()] == ["builtin"]


def test_what_was_read_is_kept_until_the_file_changes(place, monkeypatch):
    folder = place.make(".agents/skills/one")
    place.make(".agents/skills/bad", "nothing")
    first = place.own(definitions=place.kept)
    assert place.kept.saved == 2, "one for the workspace's, one for what ships"
    monkeypatch.setitem(sys.modules, "yaml", None)  # importing it fails from here on
    assert place.own(definitions=place.kept) == first
    assert place.kept.saved == 2
    monkeypatch.undo()
    place.make(".agents/skills/one", description="Something else.")
    (_, changed) = place.own(definitions=place.kept)
    assert changed.description == "Something else."
    (folder / "SKILL.md").unlink()
    assert [skill.problem is None for skill in place.own(definitions=place.kept)] == [False, False]


def test_in_one_process_a_file_is_read_once(place, monkeypatch):
    place.make(".agents/skills/one")
    skills = place.skills()
    first = skills.last_found()
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert tuple(skills.found()) == first and skills.last_found() is first


def test_what_is_kept_may_be_anything(place):
    folder = place.make(".agents/skills/one").parent
    for kept in ({"one": 5}, {"one": {"identity": []}}, {"one": None, "two": []}):
        place.kept.groups[f"skills:{folder}"] = kept
        assert place.own(definitions=place.kept)[0].is_usable


def test_finding_what_is_known_imports_nothing_heavy(place):
    place.make(".agents/skills/one")
    program = (
        "import sys\nfrom haft.sources.skills import Activations, Skills\n"
        f"skills = Skills({str(place.workspace)!r}, env={{'HOME': {str(place.home)!r}}})\nskills.places()\n"
        f"Activations('/nowhere', {str(place.workspace)!r}).of('T')\n"
        "print([name for name in ('yaml', 'pydantic', 'asyncio', 'jsonschema_rs', 'sqlite3', 'zipfile', 'tarfile', "
        "'logging', 'orjson') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_name_that_is_none_gets_the_near_miss_and_a_broken_one_its_reason(place):
    place.make(".agents/skills/deploy-site")
    place.make(".agents/skills/broken", "nothing")
    skills = place.skills()
    with pytest.raises(BadUsage) as caught:
        skills.get("deploy-sight")
    assert caught.value.hint == "did you mean `deploy-site`?"
    with pytest.raises(BadUsage, match=r"cannot be used: its SKILL\.md has no front matter"):
        skills.get("broken")
    with pytest.raises(BadUsage) as caught:
        skills.get("../../../etc/passwd" * 100)
    assert len(caught.value.message) < 200


def test_tools_of_a_skill_are_those_in_its_own_folders(place, tmp_path):
    folder = place.make(".agents/skills/one")
    skill = place.own()[0]
    assert skill.tool_folders == () and skill.tool_files() == []
    for path in ("tools/run", "tools/README.md", "tools/.hidden", "toolbox/other"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("x")
    assert skill.tool_folders == (str(folder / "tools"), str(folder / "toolbox"))
    assert skill.tool_files() == ["tools/run", "toolbox/other"]
    (folder / "toolbox").rename(tmp_path / "toolbox")
    (folder / "toolbox").symlink_to(tmp_path / "toolbox")
    assert skill.tool_folders == (str(folder / "tools"),)
    (folder / "toolbox").unlink()
    (folder / "toolbox").symlink_to("tools")
    assert skill.tool_folders == (str(folder / "tools"),), "one folder is not searched twice"
    (folder / "toolbox").unlink()
    (folder / "toolbox").symlink_to(".")
    assert skill.tool_folders == (str(folder / "tools"),), "a skill's folder is no folder of tools"
