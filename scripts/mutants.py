"""Do the scenarios in `examples/` notice mistakes? `python scripts/mutants.py`; exit 1 if they miss more than 5 %, or
miss one without a reason that is written below.

The script makes two kinds of mistakes in copies of the examples, and runs their scenarios:

- small ones, at places drawn from all that `mutation_operators` finds. The draw is the same in each run;
- ten whole ones, which change what a tool does (`BEHAVIOURS`). All of them must be noticed.

A mistake is noticed if a scenario fails. `--most N` makes N small mistakes in each example, `--all` all of them, and
`--draw N` others.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from mutation_operators import Mutation, mutations

EXAMPLES: Final = Path(__file__).parent.parent / "examples"
MOST: Final = 16
MAY_SURVIVE: Final = 0.05
DEADLINE: Final = 15
"""The deadline of each call, in seconds: some mistakes let a tool wait forever."""
AT_ONCE: Final = 8
"""How many mistakes one process makes in its copy of an example."""


class Example(NamedTuple):
    format: str
    sources: tuple[str, ...]


TABLE: Final = {
    "toolbox-json": Example("toolbox, JSON", ("sum_column",)),
    "toolbox-text": Example("toolbox, text", ("bump_version",)),
    "release-notes": Example("skill", ("tools/collect_notes",)),
    "bash-read-line-range": Example("bash plugin", ("read_line_range.bash",)),
    "python-plugin": Example("Python plugin", ("glossary.py",)),
    "reading_time": Example("template", ("tool.py",)),
    "mcp-server": Example("MCP server", ("todo_server.py",)),
    "python-functions": Example("Python functions", ("words.py",)),
    "command-line": Example("command line", ("sort.toml",)),
}

"""The examples. Those that repeat the specification of a format to the letter are not here."""

BY_HAND: Final = {"read_line_range.bash": ("shift || true", "Usage:", "exit 2")}
"""Lines that only run if a person calls the script by hand, by texts in them. They get no mistakes."""

_CLAIMS_LESS: Final = "the tool behaves the same, and only claims less, so haft allows it less without approval"
REASONS: Final[dict[tuple[str, str], str]] = {
    ("bash-read-line-range", "14: boolean: true → false"): "the schema of the parameters requires it, too",
    (
        "bash-read-line-range",
        "87: text: 'read_line_range path=%q lines %q to %q\\n' → 'read_line_range path=%q lines %q to %q\\n~'",
    ): "the preview is for those who approve the call; scenarios do not see it",
    ("mcp-server", "29: boolean: True → False"): _CLAIMS_LESS,
    ("python-functions", "17: boolean: True → False"): _CLAIMS_LESS,
    ("python-functions", "36: boolean: True → False"): _CLAIMS_LESS,
}
"""Why a small mistake is not noticed, by its example and its change."""


class Behaviour(NamedTuple):
    """One whole mistake: in a source, `old` becomes `new`."""

    name: str
    example: str
    source: str
    old: str
    new: str


BEHAVIOURS: Final = (
    Behaviour(
        "writes wrong content",
        *("release-notes", "tools/collect_notes"),
        '"\\n".join(lines)',
        '"\\n".join(reversed(lines))',
    ),
    Behaviour(
        "changes a file that it should not",
        *("mcp-server", "todo_server.py"),
        "def finish(number):",
        'def finish(number):\n    Path("todo.log").write_text("finished")',
    ),
    Behaviour(
        "deletes a file that it should not",
        *("release-notes", "tools/collect_notes"),
        'Path("changes").glob("*.md")',
        'Path("changes").glob("*")',
    ),
    Behaviour(
        "changes the mode of a file",
        *("toolbox-text", "bump_version"),
        "printf '%s\\n' \"$version\" >VERSION",
        "printf '%s\\n' \"$version\" >VERSION; chmod 777 VERSION CHANGELOG.md",
    ),
    Behaviour("ends with a wrong exit code", *("toolbox-text", "bump_version"), "not '$part'\" 2", "not '$part'\" 1"),
    Behaviour(
        "fails and says that it succeeded",
        *("toolbox-json", "sum_column"),
        "sys.exit(1)",
        "sys.exit(0)",
    ),
    Behaviour(
        "lies about only reading",
        *("python-functions", "words.py"),
        "    counts = Counter(",
        '    Path("cache.txt").write_text("")\n    counts = Counter(',
    ),
    Behaviour(
        "does not call a program that it should call",
        *("toolbox-text", "bump_version"),
        "    git add VERSION CHANGELOG.md\n",
        "",
    ),
    Behaviour(
        "hangs", *("toolbox-json", "sum_column"), "    rows = 0\n", "    rows = 0\n    sys.stdin = open('/dev/tty')\n"
    ),
    Behaviour(
        "leaves a child behind",
        *("bash-read-line-range", "read_line_range.bash"),
        "    local found\n    found=$(problem",
        "    local found\n    (setsid sleep 1000 >/dev/null 2>&1 </dev/null &)\n    found=$(problem",
    ),
    Behaviour(
        "accepts arguments that it should refuse",
        *("python-functions", "words.py"),
        "Field(ge=1, le=100)",
        "Field()",
    ),
    Behaviour(
        "says too much",
        *("python-plugin", "glossary.py"),
        'return {"term": each, "meaning": meaning}',
        'return {"term": each, "meaning": meaning, "all": terms}',
    ),
)


class Mistake(NamedTuple):
    """One mistake in one source, of either kind."""

    example: str
    source: str
    shown: str
    text: bytes


class Verdict(NamedTuple):
    mistake: Mistake
    noticed_by: str | None
    """The first scenario that failed; None if all passed."""


def drawn(example: str, most: int | None, draw: int = 0) -> Iterator[Mistake]:
    """The small mistakes for an example: of every operator about as many as of the others."""
    found: dict[str, list[tuple[str, Mutation]]] = {}
    for source in TABLE[example].sources:
        content = (EXAMPLES / example / source).read_bytes()
        for each in mutations(source, content):
            if not any(text in each.line(content) for text in BY_HAND.get(source, ())):
                found.setdefault(each.operator, []).append((source, each))
    chance = random.Random(f"{example} {draw}")
    piles = [chance.sample(each, len(each)) for _operator, each in sorted(found.items())]
    chance.shuffle(piles)
    ordered = [pile[row] for row in range(max(map(len, piles))) for pile in piles if row < len(pile)]
    for source, each in ordered[:most]:
        text = (EXAMPLES / example / source).read_bytes()
        yield Mistake(example, source, each.shown(text), each.applied(text))


def whole() -> Iterator[Mistake]:
    """The mistakes in `BEHAVIOURS`."""
    for each in BEHAVIOURS:
        text = (EXAMPLES / each.example / each.source).read_text()
        if text.count(each.old) != 1:
            raise SystemExit(f"{each.example}/{each.source} must have {each.old!r} once, for {each.name!r}")
        yield Mistake(each.example, each.source, each.name, text.replace(each.old, each.new).encode())


def judge(mistakes: Sequence[Mistake]) -> list[Verdict]:
    """Make mistakes in a copy of their example, one after another, and run its scenarios. Raises `SystemExit` if they
    fail without a mistake."""
    example = mistakes[0].example
    with tempfile.TemporaryDirectory(prefix="haft-mutants-") as place:
        os.environ["HAFT_HOME"] = f"{place}/state"
        folder = Path(place, example)
        left_out = shutil.ignore_patterns(".venv", "__pycache__", ".requirements*")
        shutil.copytree(EXAMPLES / example, folder, ignore=left_out)
        if failed := _first_failed(folder):
            raise SystemExit(f"{example}: without a mistake, all scenarios must pass, and this one fails: {failed}")
        verdicts = []
        for each in mistakes:
            source = folder / each.source
            before = source.read_bytes()
            source.write_bytes(each.text)
            try:
                verdicts.append(Verdict(each, _first_failed(folder)))
            finally:
                source.write_bytes(before)
        return verdicts


def _first_failed(folder: Path) -> str | None:
    from dataclasses import replace

    from haft.testing.reading import find_scenario_files, read_scenario_file
    from haft.testing.running import run_scenario

    for path in find_scenario_files([str(folder)]):
        for scenario in read_scenario_file(path):
            result = asyncio.run(run_scenario(replace(scenario, timeout=scenario.timeout or DEADLINE)))
            if result.skipped:
                raise SystemExit(f"{scenario.name} cannot run on this machine: {result.skipped}")
            if not result.passed:
                return scenario.name
    return None


def judged(mistakes: Sequence[Mistake], jobs: int) -> list[Verdict]:
    """The verdicts on mistakes in any examples."""
    by_example: dict[str, list[Mistake]] = {}
    for each in mistakes:
        by_example.setdefault(each.example, []).append(each)
    parts = [found[at : at + AT_ONCE] for found in by_example.values() for at in range(0, len(found), AT_ONCE)]
    with ProcessPoolExecutor(min(jobs, len(parts))) as pool:
        return [verdict for verdicts in pool.map(judge, parts) for verdict in verdicts]


def table(small: Sequence[Verdict], large: Sequence[Verdict]) -> Iterator[str]:
    """The results as lines of text."""
    yield f"{'example':22} {'format':18} mistakes  noticed  missed"
    for name, example in TABLE.items():
        own = [each for each in small if each.mistake.example == name]
        missed = sum(each.noticed_by is None for each in own)
        if own:
            yield f"{name:22} {example.format:18} {len(own):8} {len(own) - missed:8} {missed:7}"
    missed = sum(each.noticed_by is None for each in small)
    share = missed / max(1, len(small))
    yield f"{'all':22} {'':18} {len(small):8} {len(small) - missed:8} {missed:7}  {share:.1%}"
    for each in small:
        if each.noticed_by is None:
            reason = REASONS.get((each.mistake.example, each.mistake.shown), "NO REASON IS WRITTEN DOWN")
            yield f"missed: {each.mistake.example}/{each.mistake.source}:{each.mistake.shown}\n        {reason}"
    yield ""
    for each in large:
        noticed = f"noticed by: {each.noticed_by}" if each.noticed_by else "MISSED"
        yield f"{each.mistake.shown:44} {each.mistake.example:22} {noticed}"


def is_good(small: Sequence[Verdict], large: Sequence[Verdict]) -> bool:
    """Whether few small mistakes are missed, each with a reason, and no whole one."""
    missed = [each.mistake for each in small if each.noticed_by is None]
    has_reasons = all((each.example, each.shown) in REASONS for each in missed)
    return has_reasons and len(missed) <= MAY_SURVIVE * len(small) and all(each.noticed_by for each in large)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("examples", nargs="*", choices=[*TABLE, []], help="only these examples")
    words.add_argument("--most", type=int, default=MOST, help=f"small mistakes in each example (default: {MOST})")
    words.add_argument("--all", action="store_true", help="all small mistakes")
    words.add_argument("--draw", type=int, default=0, help="the number of another draw of small mistakes")
    words.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = words.parse_args()
    began = time.monotonic()
    names = given.examples or list(TABLE)
    small = [each for name in names for each in drawn(name, None if given.all else given.most, given.draw)]
    large = [each for each in whole() if each.example in names]
    verdicts = judged([*small, *large], given.jobs)
    by_mistake = {each.mistake: each for each in verdicts}
    found = [by_mistake[each] for each in small], [by_mistake[each] for each in large]
    print("\n".join(table(*found)))
    print(f"\n{len(verdicts)} mistakes in {time.monotonic() - began:.0f} s")
    return 0 if is_good(*found) else 1


if __name__ == "__main__":
    sys.exit(main())
