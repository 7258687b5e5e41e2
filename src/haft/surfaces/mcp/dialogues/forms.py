"""Questions as MCP writes them, and what an answer says.

An approval is a form with one required choice: some clients accept a form without fields by themselves. Everything that
a tool or a server wrote stands behind a bar, so that no text of theirs can look like a question of haft.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from haft.contracts import FORM, ApprovalAnswer, ApprovalRequest, HaftError, Question
from haft.surfaces.text.requests import call_lines, claim_lines, url_host
from haft.surfaces.text.terminal import framed, one_line
from haft.values import dataclass

LONGEST_MESSAGE: Final = 50_000
"""The most characters of a question that a client gets. A person could not approve what a dialogue does not show, so a
longer question waits in the inbox only."""
LONGEST_NOTE: Final = 1000
DECISION: Final = "decision"
NOTE: Final = "note"
CONFIRM: Final = "confirm"
_QUESTION_KEYS: Final = ("mode", "url", "elicitationId")
"""The parameters of a question that go to the client as they are."""
_DECISION_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        DECISION: {
            "type": "string",
            "title": "Decision",
            "description": "Approve this call once, or reject it",
            "enum": ["approve", "reject"],
        },
        NOTE: {"type": "string", "title": "Note", "description": "Why; the model reads it if you reject the call"},
    },
    "required": [DECISION],
}
_CONFIRM_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {CONFIRM: {"type": "string", "title": "Answer", "enum": ["yes", "no"]}},
    "required": [CONFIRM],
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a client's answer says."""

    kind: Literal["answer", "leave", "invalid"]
    """`leave`: nobody has answered, so the question stays in the inbox."""
    answer: ApprovalAnswer | None = None
    problem: str = ""
    """What is wrong with an invalid answer."""


def request_form(request: ApprovalRequest, workspace: str, problem: str = "") -> dict[str, Any] | None:
    """The question as MCP writes a request: its method and parameters. None if it is too long for a dialogue, or if its
    names or values have characters that a dialogue would not show: then only the inbox has it, which shows all of them.
    `problem` says what was wrong with the answer before."""
    question = request.question
    if question is not None and not question.is_for_person:
        return {"method": question.method, "params": dict(question.params)}
    params = _approval(request, workspace) if question is None else _question(request, question)
    if problem:
        said = one_line(problem[:LONGEST_NOTE])  # It can repeat words of the tool's form.
        params["message"] = f"The last answer was not valid: {said}\n\n{params['message']}"
    schema = params.get("requestedSchema", {})
    is_long = max(len(params["message"]), len(json.dumps(schema))) > LONGEST_MESSAGE
    if is_long or _hides(schema) or _hides(params.get("url")):
        return None
    return {"method": FORM, "params": params}


def together_form(requests: Mapping[str, ApprovalRequest], workspace: str, problem: str = "") -> dict[str, Any] | None:
    """One question about several calls of a batch, each with a field of its own. None if it is too long for a
    dialogue."""
    count = len(requests)
    lines = [f"{count} calls of a batch need approval. Decide about each of them."]
    properties: dict[str, Any] = {}
    for number, (field, request) in enumerate(requests.items(), 1):
        lines += ["", f"call {number} of {count}:"]
        lines += call_lines(request, request.arguments, workspace, io.StringIO())
        title = f"Call {number}: {one_line(request.tool)}"
        properties[field] = {**_DECISION_FORM["properties"][DECISION], "title": title}
    if (batch := next(iter(requests.values())).batch) is not None:
        where = f"haft approve {batch[0]}, haft reject {batch[0]}"
        lines += ["", f"All calls of the batch that wait can also be answered together in a terminal: {where}"]
    if problem:
        lines[0:0] = [f"The last answer was not valid: {one_line(problem[:LONGEST_NOTE])}", ""]
    message = "\n".join(lines)
    schema = {"type": "object", "properties": properties | {NOTE: _DECISION_FORM["properties"][NOTE]}}
    params = {"mode": "form", "message": message, "requestedSchema": {**schema, "required": list(properties)}}
    is_long = max(len(message), len(json.dumps(schema))) > LONGEST_MESSAGE
    return None if is_long else {"method": FORM, "params": params}


def response_part(response: Any, field: str) -> Any:
    """An answer to a question about several calls, as the answer to the one with this field."""
    content = response.get("content") if isinstance(response, Mapping) else None
    if not isinstance(content, Mapping):
        return response
    return {**response, "content": {DECISION: content.get(field), NOTE: content.get(NOTE)}}


def _approval(request: ApprovalRequest, workspace: str) -> dict[str, Any]:
    stream = io.StringIO()
    if request.diff is not None:
        lines = [
            f"Apply the changes of {one_line(request.tool)}? It ran; nothing below is in the workspace yet.",
            *claim_lines(request),
            *framed(request.diff),
        ]
    else:
        lines = list(call_lines(request, request.arguments, workspace, stream))
    if request.build is not None:
        lines.append("Approve only if packages may be built: that runs code of their authors.")
    if request.id is not None:
        lines.append(f"This can also be answered in a terminal: haft approve {request.id}, haft reject {request.id}")
    return {"mode": "form", "message": "\n".join(lines), "requestedSchema": _DECISION_FORM}


def _question(request: ApprovalRequest, question: Question) -> dict[str, Any]:
    params = {key: value for key, value in question.params.items() if key in _QUESTION_KEYS}
    said = "\n".join(framed(question.message))
    what = "wants you to visit a web address" if question.url is not None else "asks"
    by = question.by or f"`{request.tool}`"
    params["message"] = f"{one_line(by)} {what}. Its words:\n{said}"
    if question.url is not None:
        host = one_line(url_host(question.url))
        params["message"] = f"{params['message']}\nThe host of this address: {host}"
    elif not question.schema.get("properties"):
        params["requestedSchema"] = _CONFIRM_FORM
    else:
        params["requestedSchema"] = _visible_texts(dict(question.schema))
    return params


def _visible_texts(schema: Any) -> Any:
    """A schema whose titles and descriptions are single lines without invisible characters. Names and values stay as
    they are."""
    if isinstance(schema, Mapping):
        return {key: _visible_text(key, value) for key, value in schema.items()}
    return [_visible_texts(each) for each in schema] if isinstance(schema, list) else schema


def _visible_text(key: str, value: Any) -> Any:
    if key in ("title", "description") and isinstance(value, str):
        return one_line(value)
    if key == "enumNames" and isinstance(value, list):
        return [one_line(each) if isinstance(each, str) else each for each in value]
    return _visible_texts(value)


def _hides(schema: Any) -> bool:
    """Whether a name or a value in a schema has characters that are not seen."""
    if isinstance(schema, str):
        return one_line(schema) != schema
    if isinstance(schema, Mapping):
        return any(_hides(key) or _hides(value) for key, value in schema.items())
    return isinstance(schema, list | tuple) and any(map(_hides, schema))


def read_answer(
    request: ApprovalRequest, response: Any, client: str, *, shows_person: bool, check_form: Any
) -> Reading:
    """What a client's answer to this request says. `shows_person`: whether the answer took as long as a person takes.
    `check_form` is the function of the service that checks the values of a tool's form."""
    question = request.question
    if not isinstance(response, Mapping):
        return Reading("invalid", problem="it is not an object")
    if question is not None and not question.is_for_person:
        expected = "roots" if question.method == "roots/list" else "content"
        if expected not in response:
            return Reading("invalid", problem=f"it has no `{expected}`")
        return Reading("answer", ApprovalAnswer(approved=True, arguments=dict(response), via=client))
    action, content = response.get("action"), response.get("content")
    if action == "cancel" or (action == "decline" and not shows_person):
        return Reading("leave")
    if action == "decline":
        return Reading("answer", _rejected(client, None))
    if action != "accept":
        return Reading("invalid", problem="its `action` is none of accept, decline, cancel")
    values = dict(content) if isinstance(content, Mapping) else {}
    if question is None:
        return _decision(values, client)
    return _form_values(question, values, client, check_form)


def _decision(values: Mapping[str, Any], client: str) -> Reading:
    note = values.get(NOTE)
    said = note[:LONGEST_NOTE] if isinstance(note, str) and note.strip() else None
    if values.get(DECISION) == "approve":
        message = said or f"a person approved it through {client}"
        return Reading("answer", ApprovalAnswer(approved=True, message=message, via=client))
    if values.get(DECISION) == "reject":
        return Reading("answer", _rejected(client, said))
    return Reading("invalid", problem=f"`{DECISION}` is neither approve nor reject")


def _form_values(question: Question, values: dict[str, Any], client: str, check_form: Any) -> Reading:
    if question.url is not None:
        return Reading("answer", ApprovalAnswer(approved=True, via=client))
    if not question.schema.get("properties"):
        if values.get(CONFIRM) not in ("yes", "no"):
            return Reading("invalid", problem=f"`{CONFIRM}` is neither yes nor no")
        if values.pop(CONFIRM) == "no":
            return Reading("answer", _rejected(client, None))
    try:
        check_form(question, values)
    except HaftError as error:
        return Reading("invalid", problem=error.message)
    return Reading("answer", ApprovalAnswer(approved=True, arguments=values, via=client))


def _rejected(client: str, note: str | None) -> ApprovalAnswer:
    return ApprovalAnswer(approved=False, message=note or f"a person rejected it through {client}", via=client)


def shown_digest(form: Mapping[str, Any], request: ApprovalRequest) -> str:
    """A digest of the question that a person saw, without the ids that differ each time."""
    text = json.dumps(form, sort_keys=True, default=str)
    for name in (request.id, request.run):
        text = text.replace(name, "") if name else text
    return hashlib.sha256(f"{request.pin}\n{text}".encode()).hexdigest()[:32]
