"""The life of an MCP server."""

import json


def test_the_first_call_starts_the_server_and_later_calls_use_it(place):
    place.add()
    echo, pid = place.call(("echo", {"text": "hi"}), ("pid", {}))
    assert echo.output == "hi"
    assert json.loads(pid.output) == {"pid": 2, "calls": 2, "cwd": str(place.workspace)}
