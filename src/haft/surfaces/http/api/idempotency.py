"""Requests with an `Idempotency-Key`: the same request, sent again within a day, begins nothing new. It gets the runs
of the first one, also after a restart of the server, and also if they were interrupted."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from haft.surfaces.http.api.problems import HttpError

if TYPE_CHECKING:
    from haft.contracts import RunId
    from haft.service import Run, RunRecord
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.types.given import Given

HEADER: Final = "Idempotency-Key"
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


def key_in(values: Sequence[str]) -> str | None:
    """The key that the header of a request brings; None if it has none."""
    if not values:
        return None
    if len(values) > 1 or _KEY.fullmatch(values[0]) is None:
        raise HttpError("invalid-request", f"`{HEADER}` must be 1 to 255 visible characters of ASCII, and occur once")
    return values[0]


async def once(
    ask: Ask, operation: str, given: Given, count: int, start: Callable[[Sequence[RunId]], Sequence[Run]]
) -> Sequence[Run | RunRecord]:
    """The runs that `start` begins, which gets their ids if they were made before; or those that the same request has
    begun. How long a request waits makes no difference."""
    if ask.key is None:
        return start(())
    told = given.model_dump(mode="json", exclude={"wait"})
    return await ask.service.keyed_requests.runs_of(
        _digest("key", ask.identity.key, ask.key),
        _digest("request", operation, ask.here.path, json.dumps(told, sort_keys=True)),
        count,
        start,
    )


def _digest(*words: str) -> str:
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()
