"""The table of endpoints: all that the API can do."""

from __future__ import annotations

from typing import Final

from haft.surfaces.http.api.endpoint import IN_WORKSPACE as W
from haft.surfaces.http.api.endpoint import Endpoint
from haft.surfaces.http.api.operations import calls, runs, tools
from haft.surfaces.http.api.types.calls import CallGiven, Outcome
from haft.surfaces.http.api.types.runs import RunPage, RunQuery
from haft.surfaces.http.api.types.tools import ToolList, ToolsGiven

LONG: Final = 32_000_000
"""The longest body of an operation that takes arguments of tools."""

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    Endpoint(
        "listTools",
        "GET",
        f"{W}/tools",
        "see-tools",
        tools.list_tools,
        ToolsGiven,
        ToolList,
        "The tools of a workspace",
    ),
    Endpoint(
        "callTool",
        "POST",
        f"{W}/calls",
        "call-tools",
        calls.call_tool,
        CallGiven,
        Outcome,
        "Call a tool",
        codes=("unknown-tool",),
        body_bytes=LONG,
        takes_key=True,
    ),
    Endpoint(
        "listRuns", "GET", f"{W}/runs", "see-own-runs", runs.list_runs, RunQuery, RunPage, "The runs, newest first"
    ),
)
BY_NAME: Final = {endpoint.name: endpoint for endpoint in ENDPOINTS}
