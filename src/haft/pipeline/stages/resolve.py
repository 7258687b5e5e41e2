"""Changes the call: finds the tool it names, or stops it with the name that was probably meant."""

from __future__ import annotations

from collections.abc import Mapping

from haft.contracts import Call, Outcome, RunId, revised
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.registry import Catalogue


class Resolve:
    """From a name to a tool."""

    def __init__(self, live: Mapping[RunId, Run], catalogue: Catalogue) -> None:
        self._live = live
        self._catalogue = catalogue

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        if call.tool is None:  # Undo and its like bring their own: nobody can name them.
            call = revised(call, tool=self._catalogue.get(call.name))
            self._live[call.run].call = call
        return await proceed(call)
