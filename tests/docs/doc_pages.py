"""The documentation as the tests see it: pages, their fenced blocks, and what is expected of each.

The convention, visible in every page:

- A `python` block is a complete program. It is run, and must end well. An `output` block right after it is what it
  prints.
- A `python example` block is a file of `examples/frameworks` to the letter, without its docstring. tests/adapters runs
  it.
- A `python server` block is a complete program for the service of a server. tests/service/contract runs it with a
  server of its own.
- A `python await` block awaits at the top level. It is `docs/examples/first_call.py` to the letter, and run there.
- A `console` block is a terminal: lines that begin with `$ ` are typed into bash, the others are what appears. `…`
  stands for anything. A line that ends with a question of haft shows what is typed after it.
- A block whose first line, after a `#!` line, is a comment with a file name is saved under that
  name, in the page's workspace; `toml` and `yaml` blocks are only saved.
- A `sh` block is for the checkout itself: it holds `make` commands, and each must be a target of the Makefile.
- `text`, `json` and `ini` blocks are only looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"#\s*(?P<name>[\w./-]+\.\w+)\s*$")
GENERATED = ("reference/",)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int

    @property
    def file_name(self) -> str | None:
        first, _, rest = self.text.partition("\n")
        match = FILE_NAME.match(rest.partition("\n")[0] if first.startswith("#!") else first)
        return match["name"] if match else None

    @property
    def steps(self) -> list[Step]:
        """Of a console: what is typed, and what appears."""
        found: list[list[str]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append([line[2:]])
            else:
                found[-1].append(line)
        return [Step(command, "\n".join(shown)) for command, *shown in found]


@dataclass(frozen=True)
class Step:
    command: str
    shown: str


def pages() -> list[Path]:
    """Every page that people wrote; reference pages are made from the code and checked there."""
    written = [page for page in sorted(DOCS.rglob("*.md")) if not str(page.relative_to(DOCS)).startswith(GENERATED)]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *written]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in FENCE.finditer(text):
        yield Block(match["language"].strip(), match["text"], text.count("\n", 0, match.start()) + 1)


def everything_written() -> str:
    """All of docs/, the generated pages too."""
    return "\n".join(page.read_text() for page in sorted(DOCS.rglob("*.md")))
