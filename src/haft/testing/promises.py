"""Compares the result of a call with the output schema that the tool declares."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import BadConfig, ToolSpec
from haft.schema import validator_for

NO_JSON: Final = "the tool has an output schema, and its output is not JSON"
_MOST_NAMED: Final = 3


def broken_promise(spec: ToolSpec, outcome: Mapping[str, Any]) -> str | None:
    """In what the result of a call that is done, given as JSON, breaks the output schema of the tool; None if it does
    not, or if the tool has none."""
    if spec.output_schema is None or outcome["status"] != "done" or outcome.get("content"):
        return None
    try:
        problems = validator_for(spec.output_schema).problems(outcome["result"])
    except BadConfig:  # A schema that cannot be used says nothing.
        return None
    if not problems:
        return None
    if outcome["result"] is None and not _is_json(outcome["output"]):
        return NO_JSON
    return "; ".join(problems[:_MOST_NAMED])


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
