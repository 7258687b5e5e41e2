"""Requests with an `Idempotency-Key`: the same request, sent again within a day, begins nothing new. It gets the runs
of the first one, also after a restart of the server, and also if they were interrupted."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from haft.contracts import BadUsage, RunId
from haft.surfaces.http.api.problems import HttpError

if TYPE_CHECKING:
    from haft.service import Run, RunRecord
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.types.given import Given

HEADER: Final = "Idempotency-Key"
_MOST_SKEW: Final = 600.0
"""How many seconds the time in an id that a client has made may be wrong."""
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


def key_in(values: Sequence[str]) -> str | None:
    """The key that the header of a request brings; None if it has none."""
    if not values:
        return None
    if len(values) > 1 or _KEY.fullmatch(values[0]) is None:
        raise HttpError("invalid-request", f"`{HEADER}` must be 1 to 255 visible characters of ASCII, and occur once")
    return values[0]


async def once(
    ask: Ask,
    operation: str,
    given: Given,
    count: int,
    start: Callable[[Sequence[RunId]], Sequence[Run]],
    *,
    ids: Sequence[str] | None = None,
) -> Sequence[Run | RunRecord]:
    """The runs that `start` begins, which gets their ids if they were made before; or those that the same request has
    begun. How long a request waits makes no difference. `ids` are those that the client has made for the runs."""
    if ids is not None:
        _check_ids(ask, ids, count)
    if ask.key is None:
        return start(())
    told = given.model_dump(mode="json", exclude={"wait"})
    return await ask.service.keyed_requests.runs_of(
        _digest("key", ask.identity.key, ask.key),
        _digest("request", operation, ask.here.path, json.dumps(told, sort_keys=True)),
        count,
        start,
        ids=[RunId(name) for name in ids or ()],
    )


def _check_ids(ask: Ask, ids: Sequence[str], count: int) -> None:
    """Raise an error if a client may not use these ids for its runs. Runs are listed in the order of their ids, so an
    id must say when it was made."""
    if ask.key is None:
        raise BadUsage(f"a run whose id the client makes needs an `{HEADER}`")
    if len({*ids}) != count:
        raise BadUsage(f"{count} runs need {count} different ids, and there are {len({*ids})}")
    now = time.time()
    if any(abs(int(name[2:13], 16) / 1000 - now) > _MOST_SKEW for name in ids):
        raise BadUsage("the time in the id of a run is not the time of now", hint="the header `Date` has the server's")


def _digest(*words: str) -> str:
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()
