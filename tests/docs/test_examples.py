"""Every example of the README and the documentation runs, and shows what it says it shows."""

import ast
import asyncio
import inspect
import re

import pytest
from doc_pages import DOCS, ROOT, Block, blocks, pages
from doc_terminal import matches, play

from warm import Warm

PROGRAMS = {"python", "python await", "python example", "python server"}
LANGUAGES = PROGRAMS | {"output", "console", "toml", "sh", "text", "json", "yaml", "ini"}
SHOWN = {"python", "console"}


WITH_EXAMPLES = [page for page in pages() if any(block.language in SHOWN for block in blocks(page))]


def _label(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=_label)
def test_the_examples_of_a_page_run_and_show_what_it_says(page, desk, warm):
    found = list(blocks(page))
    for number, block in enumerate(found):
        if block.file_name is not None:
            saved = desk.workspace / block.file_name
            saved.parent.mkdir(parents=True, exist_ok=True)
            saved.write_text(block.text)
        where = f"{_label(page)}:{block.line}"
        if block.language == "python":
            following = found[number + 1] if number + 1 < len(found) else None
            _run(block, following, desk, where, warm)
        elif block.language == "console":
            _play(block, desk, where, warm)


def _run(block: Block, following: Block | None, desk, where: str, warm: Warm) -> None:
    path = desk.workspace / block.file_name if block.file_name else desk.scratch / "example.py"
    path.write_text(block.text)
    code, printed, said = warm.run_script(path, desk.workspace, desk.env)
    printed, said = printed.decode(), said.decode()
    assert (code, said) == (0, ""), f"{where}:\n{printed}{said}"
    if following is not None and following.language == "output":
        assert matches(following.text, printed), f"{where} printed:\n{printed}"


def _play(block: Block, desk, where: str, warm: Warm) -> None:
    steps = block.steps
    for step, seen in zip(steps, play(steps, desk.workspace, desk.env, desk.scratch, warm), strict=True):
        assert matches(step.shown, seen), f"{where}: `{step.command}` showed:\n{seen}\n--- instead of:\n{step.shown}"


@pytest.mark.parametrize("page", pages(), ids=_label)
def test_blocks_keep_to_the_convention(page):
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{_label(page)}:{block.line} is a `{block.language}` block"


def test_make_commands_that_are_named_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in pages():
        text = page.read_text()
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE):
            assert target in targets, f"{_label(page)} says `make {target}`"


def test_the_first_call_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "workspace").mkdir()
    monkeypatch.chdir(tmp_path / "workspace")
    path = DOCS / "examples" / "first_call.py"
    code = compile(path.read_text(), str(path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names: dict = {}
    made = eval(code, names)
    assert inspect.iscoroutine(made)
    asyncio.run(made)
    outcome = names["outcome"]
    assert (outcome.status, outcome.result, outcome.output) == ("done", 3, "3")
    assert capsys.readouterr().out.split() == ["queued", "in-progress", "done", "done"]


def test_a_page_shows_the_first_call_to_the_letter():
    file = (DOCS / "examples" / "first_call.py").read_text()
    shown = [block.text for page in pages() for block in blocks(page) if block.language == "python await"]
    assert shown == [file[file.index("from haft import") :]]


def test_a_page_shows_the_examples_of_frameworks_to_the_letter():
    files = [path.read_text() for path in (ROOT / "examples" / "frameworks").glob("*.py")]
    shown = [block.text for page in pages() for block in blocks(page) if block.language == "python example"]
    assert sorted(shown) == sorted(file[file.index("import asyncio") :] for file in files)
