"""The corpora: one JSON object a line, so that any character can be written down."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

PLACE = Path(__file__).parent
PATHS = "/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Line:
    """One command line."""

    command: str
    kind: str
    """The class it stands for."""
    proof: str | None = None
    """What it does when it runs: see `watching.Effect`; `static` where it must not be run."""
    needs: tuple[str, ...] = ()
    """Programs and files that must be there for the proof."""

    @property
    def installed(self) -> bool:
        return all(os.path.exists(name) if name[0] == "/" else shutil.which(name, path=PATHS) for name in self.needs)


def load(name: str) -> list[Line]:
    """`harmful`, `harmless_seed` or `harmless_other`."""
    rows = [json.loads(row) for row in (PLACE / f"{name}.jsonl").read_text().splitlines()]
    return [Line(row["command"], row["class"], row.get("proof"), tuple(row.get("needs", ()))) for row in rows]


def stock() -> list[str]:
    """What mutations begin with: harmless lines more often, since more of what becomes of them passes and is run."""
    harmless = [line.command for name in ("harmless_seed", "harmless_other") for line in load(name)]
    return [line.command for line in load("harmful")] + harmless * 3
