"""What a trace says of the arguments and the answer of a call, if the setting `telemetry.content` allows it. Secrets
are masked by the redactor of the audit log."""

from __future__ import annotations

from typing import Any, Final

from haft.audit import Redactor
from haft.contracts import Outcome, cut_middle
from haft.pipeline import Run
from haft.storage import decode, encode

MOST_CHARACTERS: Final = 16_000
"""How much of the arguments, and how much of the answer, a trace has at most."""


def content_of(run: Run, outcome: Outcome, redactor: Redactor) -> dict[str, str]:
    """The arguments, the answer and the error message of a call, by the names of OpenTelemetry's attributes."""
    result: Any = outcome.output if outcome.result is None else outcome.result
    message = None if outcome.error is None else outcome.error.message
    known = redactor(encode({"arguments": run.call.arguments, "result": result, "message": message}), run.call.secrets)
    masked = decode(known)
    texts = {
        "gen_ai.tool.call.arguments": masked["arguments"],
        "gen_ai.tool.call.result": masked["result"],
        "exception.message": masked["message"],
    }
    return {
        name: cut_middle(value if isinstance(value, str) else encode(value).decode("utf-8", "replace"), MOST_CHARACTERS)
        for name, value in texts.items()
        if value is not None and value != ""
    }
