"""The first page of the API's list of runs, for an operator and for somebody who sees only their own runs."""

from __future__ import annotations

import os
import statistics
import time

from haft.service import Identity, ServedWorkspaces, StateHome
from haft.surfaces.http.api.ask import Ask
from haft.surfaces.http.server import Server
from haft.surfaces.http.sign_in import SignIn

TIMES = 30
QUERIES = (
    ("the first page", "operator", {}),
    ("the first page of one's own runs", "caller", {}),
    ("the first page of a tool", "operator", {"tool": "nothing"}),
)


async def page_seconds(base: str) -> dict[str, float]:
    """Seconds for the first page of each query: the median."""
    home = os.path.join(base, "home")
    taken: dict[str, float] = {}
    async with ServedWorkspaces.only(os.path.join(base, "workspace"), home=home, installed=False) as workspaces:
        server = Server(workspaces, SignIn(StateHome(home)), StateHome(home))
        who = next(iter(workspaces)).service.who
        for name, role, query in QUERIES:
            ask = Ask(server, Identity(who, "person", frozenset({role}), "bench")).within("default")  # type: ignore[arg-type]
            times = []
            for _ in range(TIMES):
                begin = time.perf_counter()
                page = await ask.perform("listRuns", query)
                times.append(time.perf_counter() - begin)
                assert len(page["runs"]) == 50, name
            taken[name] = statistics.median(times)
    return taken
