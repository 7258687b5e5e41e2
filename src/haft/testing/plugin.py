"""The pytest plugin: collects scenario files, one item for each case, and offers the fixture `haft_tools`.

pytest finds it by the entry point of the package. It imports nothing of haft before a scenario or the fixture is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest._code.code import ReprEntry, ReprExceptionInfo, ReprFileLocation, ReprTraceback, TerminalRepr

if TYPE_CHECKING:
    from haft.testing.bench import ToolBench
    from haft.testing.scenarios import Result, Scenario

_ENDINGS: Final = tuple(f".scenario.{ending}" for ending in ("yaml", "yml", "toml", "json"))


@pytest.fixture
def haft_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToolBench]:
    """A `ToolBench` with its own workspace and state home: `load` tools, `call` them, look at the requests in `asked`.

    The configuration and the tools of the user who runs the tests are not used.
    """
    from haft.testing.bench import ToolBench

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AMP_TOOLBOX", "")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with ToolBench(workspace, tmp_path / "state", environ=os.environ) as bench:
        yield bench


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A scenario file is collected like a module with tests."""
    if not file_path.name.endswith(_ENDINGS):
        return None
    return ScenarioFile.from_parent(parent, path=file_path)


class ScenarioFile(pytest.File):
    """A scenario file. Its items are its cases."""

    def collect(self) -> Iterator[ScenarioItem]:
        from haft.contracts import HaftError
        from haft.testing.reading import read_scenario_file

        try:
            found = read_scenario_file(os.fspath(self.path))
        except HaftError as error:
            hint = f"\nhint: {error.hint}" if error.hint else ""
            raise self.CollectError(_visible(f"{error}{hint}")) from error
        for each in found:
            yield ScenarioItem.from_parent(self, name=_one_line(each.name), scenario=each)


class ScenarioItem(pytest.Item):
    """One scenario as a test."""

    def __init__(self, *, scenario: Scenario, **rest: Any) -> None:
        super().__init__(**rest)
        self._scenario = scenario

    def runtest(self) -> None:
        """Run the scenario in this process, so that coverage and debuggers see what runs in it."""
        import asyncio

        from haft.testing.running import run_scenario

        result = asyncio.run(run_scenario(self._scenario))
        if result.skipped is not None:
            pytest.skip(_visible(result.skipped))
        if result.mismatches:
            raise ScenarioFailed(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        """What is wrong, with the line of the scenario that does not hold as the location."""
        if not isinstance(excinfo.value, ScenarioFailed):
            return super().repr_failure(excinfo, style)
        from haft.testing.scenarios import in_one_line

        result = excinfo.value.result
        entries: list[Any] = []
        for index, (part, lines) in enumerate(_parts(result)):
            line = self._scenario.location.line_of(part)
            is_last = index == len(result.mismatches) - 1
            place = ReprFileLocation(os.fspath(self.path), line, _one_line(part))
            entries.append(ReprEntry(lines, None, None, place, "long"))
            if not is_last:
                entries[-1].lines.append("")
        first = result.mismatches[0]
        where = ReprFileLocation(
            os.fspath(self.path), self._scenario.location.line_of(first.path), _one_line(in_one_line(first))
        )
        return ReprExceptionInfo(ReprTraceback(entries, None, "long"), where)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, self._scenario.location.line - 1, self.name


class ScenarioFailed(AssertionError):
    """A scenario has mismatches."""

    def __init__(self, result: Result) -> None:
        super().__init__(_visible("\n".join(each.message for each in result.mismatches)))
        self.result = result


def _parts(result: Result) -> Iterator[tuple[str, list[str]]]:
    """Each mismatch: its part of the scenario, and its lines, with the call at the beginning of the first, and what the
    tool wrote at the end of the last."""
    from haft.testing.scenarios import call_line, explained, last_words

    for index, each in enumerate(result.mismatches):
        lines = [*([call_line(result), ""] if index == 0 else []), *explained(each)]
        if index == len(result.mismatches) - 1:
            lines += last_words(result)
        yield each.path, [f"E   {_visible(line)}" if line else "" for line in lines]


def _visible(text: str) -> str:
    """A text in which nothing that a tool wrote can control the terminal."""
    return "\n".join(map(_one_line, text.splitlines()))


def _one_line(text: str) -> str:
    from haft.schema import escaped

    return escaped(text)
