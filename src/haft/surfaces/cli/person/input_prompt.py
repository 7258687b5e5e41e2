"""The prompt for a question that a tool asks while it runs: one line for each field of the form.

The tool, or an MCP server behind it, wrote the question. So the prompt says who asks, shows foreign text behind a bar,
and opens no web address.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from haft.contracts import ApprovalAnswer, ApprovalRequest, HaftError, Question
from haft.service import check_form, coerce
from haft.surfaces.cli.person.line_input import confirm, read_line
from haft.surfaces.cli.screen.printing import complain, say
from haft.surfaces.text.requests import choices_of, form_fields, question_lines, required_of
from haft.surfaces.text.terminal import visible

ANSWER_QUESTION: Final = "Answer? [y/N] "
VISITED_QUESTION: Final = "Say that you visited it? [y/N] "


async def ask_for_input(request: ApprovalRequest, question: Question) -> ApprovalAnswer:
    """Show a question, and let the person fill in the form, or decline."""
    for line in question_lines(request, question, sys.stderr):
        sys.stderr.write(f"{line}\n")
    if not await confirm(VISITED_QUESTION if question.url is not None else ANSWER_QUESTION, is_answer_needed=True):
        return ApprovalAnswer(approved=False)
    if question.url is not None:
        return ApprovalAnswer(approved=True)
    while True:
        values = {name: value for name in form_fields(question) if (value := await _value(question, name)) is not None}
        try:
            check_form(question, values)
        except HaftError as error:
            complain(error.message, "answer again")
            continue
        return ApprovalAnswer(approved=True, arguments=values)


async def _value(question: Question, name: str) -> Any:
    """The value that the person types for one field; None if an optional field stays empty."""
    field = form_fields(question)[name]
    is_list = isinstance(field, dict) and field.get("type") == "array"
    hint = " (several: separate them with commas)" if is_list else ""
    while True:
        line = await read_line(f"{visible(name)[:80]}{hint}: ")
        if not line:
            raise EOFError
        text = line.strip()
        if not text and isinstance(field, dict) and "default" in field:
            return field["default"]
        if not text and name not in required_of(question):
            return None
        try:
            texts = [part.strip() for part in text.split(",") if part.strip()] if is_list else [text]
            return coerce(question.schema, name, texts)
        except ValueError as error:
            options = choices_of(field) if isinstance(field, dict) else []
            say(f"{error}{f': type one of {visible(chr(44).join(options))}' if options else ''}")
