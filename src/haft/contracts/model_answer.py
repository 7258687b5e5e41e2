"""What a model reads of an outcome: its output, bounded, and in plain words how the call ended.

Nothing here says how to open the sandbox or how to allow a call: that is for the person.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.lazy import regex
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.contracts.outcome import Outcome

MODEL_CHARS: Final = 20_000
"""How many characters of an outcome a model reads, unless the caller says otherwise."""
MOST_FILES: Final = 50
LONGEST_FACTS: Final = 4_000
"""Of the facts beside the output, such as the error and the notes."""
PAGER: Final = "the stored output of run {run} has all of it"

_FOR_THE_USER: Final = ("sandbox-denied", "rejected")
"""Errors whose hint says how to allow what was refused."""
_OPENS = regex(r"--(network|write|read|env|approve|config)\b|\bgrants?\b|\bhaft (approve|trust|permissions)\b")
"""Words of a text that says how to open the sandbox, or how to allow a call."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The answer to a model's tool call."""

    text: str
    content: tuple[Mapping[str, Any], ...] = ()
    """Images and other blocks that are no text, as MCP writes them."""
    is_error: bool = False

    def __str__(self) -> str:
        return self.text


def answer_for_model(outcome: Outcome, max_chars: int = MODEL_CHARS, pager: str = PAGER) -> ModelAnswer:
    """The outcome as a model reads it. `pager` says how to read the rest of a cut output; `{run}` in it stands for the
    run."""
    facts = facts_in_words(outcome, found) if (found := facts_for_model(outcome, pager)) else ""
    facts = cut_middle(facts, min(LONGEST_FACTS, max_chars))
    room = max(max_chars - len(facts) - 1, 0)
    text = outcome.output
    if outcome.result is not None:
        result = json.dumps(outcome.result, ensure_ascii=False, default=str)
        if not text.strip():
            text = result
        elif not _says_the_same(text, outcome.result):
            text = f"{text.rstrip()}\nresult: {result}"
    if len(text) > room and not outcome.truncated:
        rest = f"note: only the beginning and the end of the answer are here; {pager.format(run=outcome.run_id)}"
        facts = f"{facts}\n{rest}" if facts else f"[haft] run {outcome.run_id}: {outcome.status}\n{rest}"
        facts = cut_middle(facts, max_chars)
        room = max(max_chars - len(facts) - 1, 0)
    text = cut_middle(text, room)
    both = f"{text.rstrip()}\n{facts}" if text.strip() and facts else text or facts
    return ModelAnswer(both, outcome.content, is_error=outcome.status != "done")


def _says_the_same(text: str, result: Any) -> bool:
    """Whether the output is the result itself, as text or as JSON."""
    if text.strip() == str(result).strip():
        return True
    try:
        return bool(json.loads(text) == result)
    except ValueError:
        return False


def cut_middle(text: str, most: int) -> str:
    """The beginning and the end of a text, in at most `most` characters; two thirds of them for the beginning."""
    if len(text) <= most:
        return text
    mark = "\n[… {:_} characters are left out …]\n"
    room = most - len(mark.format(len(text)))
    if room < 1:
        return text[:most]
    mark, tail = mark.format(len(text) - room), room // 3
    return text[: room - tail] + mark + text[len(text) - tail :]


def facts_for_model(outcome: Outcome, pager: str = PAGER) -> dict[str, Any]:
    """The facts that the model must read beside the output; empty if the call is done and there are none."""
    facts: dict[str, Any] = {}
    error = outcome.error
    if error is not None:
        facts["error"] = {"code": error.code, "message": error.message, "retryable": error.retryable}
        if error.hint:
            is_for_user = error.code in _FOR_THE_USER or _OPENS.search(error.hint)
            facts["error"]["hint"] = _for_user(outcome) if is_for_user else error.hint
    changes = outcome.changes
    if changes.files:
        files = [{"path": each.path, "type": each.type} for each in changes.files[:MOST_FILES]]
        facts["changes"] = {"state": changes.state, "files": files}
        if len(changes.files) > MOST_FILES:
            facts["changes"]["more"] = len(changes.files) - MOST_FILES
    notes = [_for_user(outcome) if _OPENS.search(note) else note for note in outcome.notes]
    notes = list(dict.fromkeys(notes))
    if outcome.truncated:
        notes.append(
            f"the output has {outcome.output_bytes:_} bytes, and only its beginning and end are here: "
            + pager.format(run=outcome.run_id)
        )
    if notes:
        facts["notes"] = notes
    return facts


def _for_user(outcome: Outcome) -> str:
    """A hint in place of one that says how to open the sandbox, or how to allow the call: that is for the person."""
    return f"the user can see what this is about, and allow it, with `haft show {outcome.run_id}`"


def facts_in_words(outcome: Outcome, facts: Mapping[str, Any]) -> str:
    """The facts as text."""
    lines = [f"[haft] run {outcome.run_id}: {outcome.status}"]
    error = facts.get("error")
    if error is not None:
        lines.append(f"error ({error['code']}): {error['message']}")
        if "hint" in error:
            lines.append(f"hint: {error['hint']}")
    changes = facts.get("changes")
    if changes is not None:
        more = f" and {changes['more']} more" if "more" in changes else ""
        files = ", ".join(f"{each['path']} ({each['type']})" for each in changes["files"])
        lines.append(f"changed files ({changes['state']}): {files}{more}")
    lines += [f"note: {note}" for note in facts.get("notes", ())]
    return "\n".join(lines)
