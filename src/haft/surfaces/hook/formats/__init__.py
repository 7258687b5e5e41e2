"""The forms in which agents talk to their hooks: one module for each agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from haft.surfaces.hook.events import Format
from haft.surfaces.hook.formats.antigravity import ANTIGRAVITY
from haft.surfaces.hook.formats.claude_code import CLAUDE_CODE
from haft.surfaces.hook.formats.codex import CODEX
from haft.surfaces.hook.formats.cursor import CURSOR
from haft.surfaces.hook.formats.gemini import GEMINI
from haft.surfaces.hook.formats.opencode import OPENCODE
from haft.surfaces.hook.formats.vscode import VSCODE

FORMATS: Final[Mapping[str, Format]] = {
    "claude-code": CLAUDE_CODE,
    "codex": CODEX,
    "gemini": GEMINI,
    "opencode": OPENCODE,
    "cursor": CURSOR,
    "vscode": VSCODE,
    "antigravity": ANTIGRAVITY,
}
