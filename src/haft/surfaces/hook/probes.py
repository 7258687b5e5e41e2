"""Which versions of agents were seen to run the line that a hook put in the place of a command.

An agent that lets a hook's `allow` count, but not its rewriting, would run the original command without asking. So haft
sends both only to versions that are proven: the version that haft was tested with, and every version that redeemed a
ticket. Any other version is proven by the first command that only reads: it does no harm, whichever line runs.
"""

from __future__ import annotations

import json
import os
from typing import Literal

Proof = Literal["proven", "refuted", "unknown"]


class Probes:
    """The versions of agents that a probe has seen, in a file of the state home."""

    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, "hook", "rewriting.json")
        self._known: dict[str, bool] | None = None

    def proof(self, agent: str, version: str | None) -> Proof:
        """Whether this version runs rewritten lines. `version` is `AgentProcess.build`."""
        found = self._load().get(f"{agent} {version}")
        return "unknown" if found is None else "proven" if found else "refuted"

    def note(self, agent: str, version: str | None, *, runs_rewritten: bool) -> None:
        """Note what a version did. One rewritten line that ran proves it."""
        known = self._load()
        name = f"{agent} {version}"
        if known.get(name) == runs_rewritten or known.get(name):
            return
        known[name] = runs_rewritten
        temporary = f"{self._path}.{os.getpid()}"
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(known, file, indent=1, sort_keys=True)
        os.replace(temporary, self._path)

    def _load(self) -> dict[str, bool]:
        if self._known is None:
            try:
                with open(self._path, encoding="utf-8") as file:
                    self._known = {str(name): value is True for name, value in json.load(file).items()}
            except (OSError, ValueError, AttributeError):
                self._known = {}
        return self._known
