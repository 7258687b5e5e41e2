from __future__ import annotations

import re

import pytest

from cdd.agents import TARGETS, skills

NAMES = ["cdd-close-track", "cdd-start-track", "cdd-work-the-plan"]
FORMS = {"cursor": "{}.mdc", "antigravity": "{}.md"}
FILES = {
    target: [f"{folder}/{FORMS.get(target, '{}/SKILL.md').format(name)}" for name in NAMES]
    for target, folder in TARGETS.items()
}


def files(cdd) -> list[str]:
    return [name for name, content in cdd.everything().items() if content is not None]


def test_the_targets_are_the_six_folders():
    assert TARGETS == {
        "agent": ".agent/skills",
        "agents": ".agents/skills",
        "antigravity": ".agent/workflows",
        "claude": ".claude/skills",
        "gemini": ".gemini/skills",
        "cursor": ".cursor/rules",
    }


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_gets_every_skill_and_no_other_target_does(cdd, target):
    cdd.done("agents", "--install", "--target", target)
    assert files(cdd) == FILES[target]


def test_all_targets_at_once(cdd):
    cdd.done("agents", "--install", "--all")
    assert files(cdd) == sorted(name for names in FILES.values() for name in names)


def test_install_without_a_target_is_refused(cdd):
    assert "--target agent|agents|antigravity|claude|gemini|cursor, or --all" in cdd.refused("agents", "--install")


def test_both_a_target_and_all_are_wrong_usage(cdd):
    assert cdd("agents", "--install", "--all", "--target", "claude").exit_code == 2
    assert cdd("agents", "--install", "--target", "other").exit_code == 2
    assert cdd.everything() == {}


def test_skills_have_the_front_matter_that_agents_read():
    assert [skill.name for skill in skills()] == NAMES
    for skill in skills():
        assert re.fullmatch(r"[a-z0-9-]{1,64}", skill.name)
        assert 50 < len(skill.description) <= 1024
        assert ": " not in skill.description and " #" not in skill.description  # a plain YAML scalar
        assert skill.content.startswith(f"---\nname: {skill.name}\ndescription: {skill.description}\n---\n")


def test_every_command_that_a_skill_names_exists(cdd):
    from cdd.cli import main

    for skill in skills():
        named = set(re.findall(r"cdd ([a-z]+)\b", skill.content))
        assert named and named <= main.commands.keys()


def test_a_rule_is_the_skill_under_another_front_matter(cdd):
    cdd.done("agents", "--install", "--target", "cursor")
    for skill in skills():
        rule = (cdd.path / f".cursor/rules/{skill.name}.mdc").read_text()
        front, body = rule.split("---\n", 2)[1:]
        assert front == f"description: {skill.description}\nglobs:\nalwaysApply: false\n"
        assert body == skill.content.split("---\n", 2)[2]


def test_a_workflow_has_the_name_and_the_description_in_its_front_matter(cdd):
    cdd.done("agents", "--install", "--target", "antigravity")
    for skill in skills():
        workflow = (cdd.path / f".agent/workflows/{skill.name}.md").read_text()
        assert workflow.startswith(f"---\nname: {skill.name}\ndescription: {skill.description}\n---\n")
        assert workflow.endswith(skill.content.split("---\n", 2)[2])


def test_installing_again_changes_nothing(cdd):
    cdd.done("agents", "--install", "--all")
    before = cdd.everything()
    assert cdd.done("agents", "--install", "--all").count("kept ") == 18
    assert cdd.everything() == before


def test_a_version_that_differs_is_kept_and_no_copy_is_ever_lost(cdd):
    place = ".claude/skills/cdd-start-track/SKILL.md"
    for text in ("mine", "mine again", "mine"):
        cdd.write(place, text)
        assert f"wrote {place} (the former one is {place}.bak" in cdd.done("agents", "--install", "--target", "claude")
    assert (cdd.path / f"{place}.bak").read_text() == "mine"
    assert (cdd.path / f"{place}.bak.2").read_text() == "mine again"
    assert not (cdd.path / f"{place}.bak.3").exists()
    assert (cdd.path / place).read_text().startswith("---\nname: cdd-start-track\n")


def test_without_install_they_are_listed_and_nothing_is_written(cdd):
    cdd.done("agents", "--install", "--target", "claude")
    cdd.write(".claude/skills/cdd-start-track/SKILL.md", "mine")
    before = cdd.everything()
    told = cdd.done("agents")
    assert re.search(r"claude +current +\.claude/skills/cdd-close-track/SKILL\.md", told)
    assert re.search(r"claude +differs +\.claude/skills/cdd-start-track/SKILL\.md", told)
    assert re.search(r"gemini +absent +\.gemini/skills/cdd-start-track/SKILL\.md", told)
    assert "gemini" not in cdd.done("agents", "--target", "claude")
    assert cdd.everything() == before


@pytest.mark.parametrize("link", [".claude", ".claude/skills", ".claude/skills/cdd-start-track"])
def test_a_link_that_leads_out_is_refused_before_anything_is_written(cdd, tmp_path_factory, link):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (cdd.path / link).parent.mkdir(parents=True, exist_ok=True)
    (cdd.path / link).symlink_to(elsewhere)
    assert "outside this directory" in cdd.refused("agents", "--install", "--all")
    assert list(elsewhere.iterdir()) == []


def test_a_link_within_the_workspace_is_followed(cdd):
    cdd.done("agents", "--install", "--target", "agents")
    (cdd.path / ".claude").mkdir()
    (cdd.path / ".claude/skills").symlink_to("../.agents/skills")
    assert cdd.done("agents", "--install", "--target", "claude").count("kept ") == 3


@pytest.mark.parametrize("place", [".claude", ".claude/skills/cdd-start-track"])
def test_a_file_in_a_folders_place_is_refused(cdd, place):
    cdd.write(place, "")
    assert f"{place} is not a folder" in cdd.refused("agents", "--install", "--all")
