"""What exists is documented, what is documented exists, and nothing leads astray."""

import re
import subprocess
from urllib.parse import unquote

import click
import pytest
from doc_pages import DOCS, ROOT, everything_written, pages

import haft
from haft.config.settings import SETTINGS
from haft.contracts import EXIT_CODES, STATUSES
from haft.contracts import errors as tree
from haft.runs.recovery import INTERRUPTED
from haft.surfaces.cli.app import HAFT

PARTS = ("## Situation", "## Decision", "## Cost", "## The sign that it was wrong")
MOST_LINES = 60


def _commands(group=HAFT, words=("haft",)):
    context = click.Context(group, info_name=words[-1])
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from _commands(command, (*words, name))


COMMANDS = dict(_commands())


def _options(command):
    for parameter in command.get_params(click.Context(command)):
        if isinstance(parameter, click.Option) and not parameter.hidden:
            yield from parameter.opts


def _codes():
    classes = [one for one in vars(tree).values() if isinstance(one, type) and issubclass(one, tree.HaftError)]
    return {one.code for one in classes} | set(EXIT_CODES) | {INTERRUPTED.code}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_is_mentioned(words):
    assert f"`{' '.join(words)}" in everything_written()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_option_is_mentioned_with_its_command(words):
    text = (DOCS / "guides" / "command-line.md").read_text()
    missing = [option for option in _options(COMMANDS[words]) if f"`{option}" not in text]
    assert not missing


@pytest.mark.parametrize("name", [setting.name for setting in SETTINGS])
def test_every_setting_is_mentioned(name):
    assert f"`{name}`" in everything_written()


@pytest.mark.parametrize("code", sorted(_codes()))
def test_every_error_code_is_mentioned(code):
    assert f"`{code}`" in (DOCS / "guides" / "troubleshooting.md").read_text()


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_is_explained(status):
    assert f"`{status}`" in (DOCS / "concepts" / "runs.md").read_text()


@pytest.mark.parametrize("name", haft.__all__)
def test_every_public_name_is_mentioned(name):
    assert re.search(rf"(?<!\w){re.escape(name)}(?!\w)", everything_written())


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        reached = (page.parent / unquote(path)).resolve() if path else page
        assert reached.exists(), f"{target} leads nowhere"
        if anchor:
            assert anchor in _anchors(reached), f"{target} names no heading"


def _anchors(page):
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_page_can_be_reached_from_the_index():
    index = (DOCS / "README.md").read_text()
    for page in pages():
        name = str(page.relative_to(DOCS)) if page.is_relative_to(DOCS) else None
        if name is not None and name != "README.md":
            assert f"({name})" in index, f"{name} is in no list"


@pytest.mark.parametrize("page", sorted((DOCS / "decisions").glob("*.md")), ids=lambda page: page.name)
def test_a_decision_has_its_four_parts_on_one_screen(page):
    text = page.read_text()
    assert re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", page.name)
    assert text.startswith(f"# {page.name[:4]}: ")
    assert [line for line in text.splitlines() if line.startswith("## ")] == list(PARTS)
    assert len(text.splitlines()) <= MOST_LINES


def test_the_architecture_page_names_every_room_and_contract():
    import tomllib

    text = (DOCS / "architecture.md").read_text()
    rooms = {path.name for path in (ROOT / "src" / "haft").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert not {room for room in rooms if f"`{room}/`" not in text}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert not {contract["id"] for contract in contracts if f"`{contract['id']}`" not in text}


# Put together here, so that this file does not hold what it looks for.
_ASTRAY = re.compile(
    "|".join(
        [
            r"(?<![\w.])/(?:home|Users|work|root)/[\w.-]+/",
            r"(?:pypi|files\.python" + r"hosted|registry\.npm" + r"js)\.(?:org|com)",
            r"--(?:extra-)?index" + r"-url[ =]",
        ]
    )
)

_INDEXES = "src/haft/sandbox/package_indexes/public.py"
"""The one file that may name package indexes: the public ones that tools use without configuration."""


def test_no_file_names_a_developers_machine_or_a_package_index():
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True)
    if listed.returncode != 0:
        pytest.skip("this is no checkout")
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        if path.is_file() and path.stat().st_size < 2_000_000:
            found = _ASTRAY.search(path.read_text(errors="replace"))
            assert found is None or name == _INDEXES, f"{name}: {found[0]}"
