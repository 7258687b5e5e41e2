"""The README says what is true."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from cdd.agents import TARGETS, skills
from cdd.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_its_table_has_every_command_in_order_of_a_tracks_life():
    assert re.findall(r"^\| `cdd ([a-z]+)", README, re.MULTILINE) == [
        "init", "start", "recite", "log", "archive", "view", "agents", "delete", "version", "pack",
    ]  # fmt: skip


def test_its_first_example_runs(cdd):
    commands = re.findall(r"^\$ cdd (.*)$", README, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        if command.startswith("archive"):
            plan = cdd.track("add-login", "plan.md")
            plan.write_text(plan.read_text().replace("- [ ]", "- [x]"))
        cdd.done(*shlex.split(command))


def test_it_names_every_option_target_and_skill():
    options = [name for command in main.commands.values() for one in command.params for name in one.opts]
    named = [*(name for name in options if name.startswith("--")), *TARGETS, *(skill.name for skill in skills())]
    assert [name for name in named if f"`{name}" not in README and f" {name}" not in README] == []
