"""The skill that ships keeps its own rules, and what it says is so."""

import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import click
import pytest

from haft.sources.amp_toolbox.description import read_description
from haft.sources.skills.discover import SHIPPED
from haft.surfaces.cli.app import HAFT

FOLDER = Path(SHIPPED) / "haft-tool-creator"
PAGES = [FOLDER / "SKILL.md", *sorted((FOLDER / "references").iterdir())]
SAMPLE = re.compile(r"^```(?P<language>bash|python|js)\n(?P<text>#!.*?)^```$", re.MULTILINE | re.DOTALL)
SAMPLES = {match["language"]: match["text"] for match in SAMPLE.finditer(PAGES[1].read_text())}
COMMAND = re.compile(r"(?<![\w/.-])haft((?: [a-z]+)+)([^`\n]*)")
NO_COMMANDS = {"haft obeys", "haft asks"}


def commands_of(text):
    """Every command that is named, in backticks or in a block, with the rest of its words."""
    spoken = re.findall(
        r"`([^`]*)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL).replace("\n", " ")
    )
    blocks = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [match for part in [*spoken, *blocks] for match in COMMAND.finditer(part)]


def test_it_is_valid_by_our_own_rules(place):
    (skill,) = [skill for skill in place.skills().found() if skill.folder == str(FOLDER)]
    assert skill.is_usable and skill.provenance == "builtin"
    assert skill.references() == ["references/appendix.md", "references/owners-manual.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_its_pages_are_short_and_plain(page):
    lines = page.read_text().splitlines()
    assert len(lines) <= 150
    assert not [line for line in lines if len(line) > 130 and not line.startswith("description: ")]


def test_every_reference_that_it_names_is_there(place):
    skills = place.skills()
    skill = skills.get("haft-tool-creator")
    named = re.findall(r"@references/[\w-]+\.md", skills.text(skill))
    assert len(named) == 2 and all(skills.text(skill, name) for name in named)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_it_names_exists_with_its_options(page):
    found = commands_of(page.read_text())
    assert found
    for match in found:
        group, words = HAFT, match[1].split()
        while words and isinstance(group, click.Group):
            command = group.get_command(click.Context(group), words[0])
            assert command is not None, f"`haft{match[1]}` does not exist"
            group, words = command, words[1:]
        assert not isinstance(group, click.Group), f"`haft{match[1]}` is no whole command"
        known = {option for parameter in group.get_params(click.Context(group)) for option in parameter.opts}
        if "tools use" not in match[0]:  # there, other options are the tool's parameters
            assert {*re.findall(r"--[a-z-]+", match[2])} <= known, match[0]


def test_it_teaches_what_there_is_to_teach():
    text = " ".join(page.read_text() for page in PAGES)
    wanted = """TOOLBOX_ACTION AGENT AMP_THREAD_ID AMP_TOOLBOX describe execute tb__ .agents/tools ~/.config/amp/tools
        (optional) string? inputSchema "args" chmod --bash --zsh --bun --bash-plugin --studio --global --skill --only
        --explain stdin stdout stderr"""
    assert not [word for word in wanted.split() if word not in text]


SAMPLE_CALLS = {
    "bash": ("path: a file.txt\nskip_empty: true\n", "2\n", "", "path is required"),
    "python": (json.dumps({"files": ["a file.txt"]}), "a file.txt:1: TODO: one\n", "{}", "files is required"),
    "js": (json.dumps({"who": "Ö: x"}), "Hello, Ö: x!\n", "{}", "who is required"),
}


@pytest.mark.parametrize("language", SAMPLE_CALLS)
def test_its_samples_describe_themselves_and_work(language, tmp_path):
    interpreter = {"bash": "bash", "python": "python3", "js": "node"}[language]
    if shutil.which(interpreter) is None:
        pytest.skip(f"there is no {interpreter}")
    text = SAMPLES[language].replace("#!/usr/bin/env bun", "#!/usr/bin/env node")
    file = tmp_path / ("tool.mjs" if language == "js" else "tool")
    file.write_text(text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "a file.txt").write_text("TODO: one\n\ntwo\n")

    def run(action, given=""):
        env = {"PATH": os.environ["PATH"], "TOOLBOX_ACTION": action}
        return subprocess.run([file], input=given, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    described = run("describe")
    assert (described.returncode, described.stderr) == (0, "")
    assert len(read_description(described.stdout.encode()).input_schema["properties"]) == 2
    good, output, bad, complaint = SAMPLE_CALLS[language]
    done = run("execute", good)
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")
    failed = run("execute", bad)
    assert failed.returncode != 0 and complaint in failed.stderr and "Usage: " in failed.stderr
