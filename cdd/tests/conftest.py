"""A workspace in an empty directory, and cdd called in it as a person would, in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

if getattr(sys.modules.get("cdd"), "__file__", None) is None:
    # Collected from the folder above, this file is `cdd.tests.conftest` to pytest, which then takes the folder `cdd`
    # for the package of that name.
    sys.modules.pop("cdd", None)

from cdd.cli import main


@dataclass(frozen=True)
class Workplace:
    path: Path

    def __call__(self, *words: str, given: str | bytes = "") -> Result:
        return CliRunner().invoke(main, list(words), input=given, catch_exceptions=False)

    def done(self, *words: str, given: str | bytes = "") -> str:
        result = self(*words, given=given)
        assert result.exit_code == 0, result.output
        return result.stdout

    def refused(self, *words: str, given: str | bytes = "") -> str:
        """What standard error says to a refusal that leaves everything as it was."""
        before = self.everything()
        result = self(*words, given=given)
        assert result.exit_code == 1, result.output
        assert result.stdout == ""
        assert self.everything() == before
        return result.stderr

    def process(self, *words: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cdd", *words]
        return subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=self.path,
            env={**os.environ, **more},
            timeout=60,
        )

    def everything(self) -> dict[str, bytes | str | None]:
        """Every path below, with what a file holds and where a link leads."""
        found: dict[str, bytes | str | None] = {}
        for path in sorted(self.path.rglob("*")):
            name = str(path.relative_to(self.path))
            if path.is_symlink():
                found[name] = os.readlink(path)
            else:
                found[name] = path.read_bytes() if path.is_file() else None
        return found

    def track(self, name: str, file: str = "") -> Path:
        return self.path / ".context" / "tracks" / name / file

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path


@pytest.fixture
def cdd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    monkeypatch.chdir(tmp_path)
    return Workplace(tmp_path)
