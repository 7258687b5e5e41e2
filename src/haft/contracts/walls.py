"""What confines a call. Today nothing does, and every run says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Walls:
    """The confinement a call ran in."""

    profile: str = "none"
    network: bool = True

    def to_json(self) -> dict[str, Any]:
        return {"profile": self.profile, "network": self.network}


OPEN_WALLS = Walls()
