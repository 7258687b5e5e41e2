"""The state that a client carries from a result `input_required` to its next request: which run, and which questions.

`request_state` seals it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from haft.contracts import BatchId, RunId
from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class CarriedState:
    """What a request state says."""

    run: RunId | BatchId
    asked: Mapping[str, str]
    """The ids of the requests, by the keys of the questions. A question about several calls has several ids."""
    seen: Mapping[str, str]
    """The digests of the questions, by their keys."""
    left: tuple[str, ...]
    """The requests that this client left in the inbox."""
    at: float

    def to_text(self) -> str:
        form = {"run": self.run, "asked": dict(self.asked), "seen": dict(self.seen), "left": list(self.left)}
        return json.dumps({**form, "at": self.at})


def carried_state(params: Mapping[str, Any]) -> CarriedState | None:
    """The state that a request carries; None if it carries none. The state is sealed, so it is one of haft's own."""
    text = params.get("requestState")
    if not isinstance(text, str):
        return None
    form = json.loads(text)
    return CarriedState(RunId(form["run"]), form["asked"], form["seen"], tuple(form["left"]), form["at"])
