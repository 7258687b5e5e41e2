"""A call that waits for a person, as text: for the prompt and for `haft inbox`.

Arguments are shown in full and never cut, and invisible characters are written as escapes: a person approves exactly
the text on the screen. Long diffs are cut, with a line that says how to see the rest.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Final

from haft.contracts import (
    ApprovalRequest,
    Confinement,
    DecidedPart,
    HeldConnection,
    Question,
    RuleOffer,
    ToolName,
    with_current_names,
)
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.patches import coloured_lines
from haft.surfaces.text.sandbox import sandbox_words
from haft.surfaces.text.short_names import shortened
from haft.surfaces.text.terminal import framed, one_line, styled, visible

if TYPE_CHECKING:
    from haft.service import Waiting

MOST_LINES: Final = 200
"""How many lines of a diff are shown at most."""
AGENT_SAYS: Final = "the agent says"
"""Stands before a claim, so that nobody takes it for words of haft."""
MOST_COLUMNS: Final = 1000
MOST_TASK_LINES: Final = 12
"""How many lines of the task of a sub-agent are shown at most."""


def call_lines(
    request: ApprovalRequest,
    arguments: Mapping[str, Any],
    workspace: str,
    stream: IO[Any] | None = None,
    *,
    verb: str = "needs approval",
) -> Iterator[str]:
    """The call as lines: why it needs approval, its arguments, the decision about each part, its sandbox. If
    `arguments` differ from those of the request, the decisions about the parts are left out. `stream` is where the
    lines will be printed."""
    stream = stream or sys.stderr
    if request.question is not None:
        yield from question_lines(request, request.question, stream)
        return
    what = request.tool if request.connection is None else f"a connection of {request.tool}"
    first, *more = framed(one_line(f"{what} {verb}: {request.reason}"), "", at_blanks=True)
    yield styled(first, "bold", stream)
    yield from more
    if not arguments:
        yield "  (no arguments)"
    for name, value in arguments.items():
        text = value if isinstance(value, str) else to_json_text(value)
        yield from _wrapped(one_line(name), text)
    yield from claim_lines(request)
    if request.preview is not None and arguments == request.arguments:
        yield from _wrapped("the tool's preview", one_line(request.preview))
    if request.cwd != ".":
        yield from _wrapped("in", one_line(request.cwd))
    if request.env:
        yield from _wrapped("with variables", to_json_text(dict(request.env)))
    if request.timeout is not None:
        yield f"  timeout: {request.timeout:g} seconds"
    yield from _callers(request)
    if arguments == request.arguments:
        yield from _parts(request)
    if request.definition_diff is not None:
        yield styled(f"  its {changed_part(request.definition_diff)} is not the one that was approved:", "warn", stream)
        yield from diff_lines(request.definition_diff, stream, "`haft inbox --json` shows all")
    yield from _wrapped("sandbox", sandbox_words(request.sandbox, workspace))
    yield from _connection(request)
    if request.withheld:
        # These are names of variables that are set, so they cannot contain control characters.
        yield from _wrapped("withheld", f"{', '.join(request.withheld)} (the tool asks for it)")


def claim_lines(request: ApprovalRequest) -> Iterator[str]:
    """What the agent says about why it makes the call; nothing if it says nothing."""
    if request.claim is not None:
        yield from _wrapped(AGENT_SAYS, one_line(request.claim))


def _callers(request: ApprovalRequest) -> Iterator[str]:
    """The runs that wait for the answer, and what sub-agents among them are to do; nothing if there are none."""
    if not request.chain:
        return
    tools = request.chain_tools or ("",) * len(request.chain)
    callers = [f"{run} ({tool})" if tool else run for run, tool in zip(request.chain, tools, strict=True)]
    verb = "waits" if len(callers) == 1 else "all wait"
    yield from _wrapped("called by", f"{' → '.join(map(one_line, callers))}: {verb} for the answer")
    for run, purpose in zip(request.chain, request.chain_purposes, strict=False):
        if purpose is not None:
            written = "\n".join(line for line in purpose.splitlines() if line.strip())
            shown = [*_wrapped(f"prompt of {one_line(run)}, perhaps from a model", written)]
            yield from shown[:MOST_TASK_LINES]  # A long task must not push the call out of sight.
            if len(shown) > MOST_TASK_LINES:
                yield f"  … {len(shown) - MOST_TASK_LINES} more lines: `haft show {one_line(shortened(run))}` shows all"


def _connection(request: ApprovalRequest) -> Iterator[str]:
    """The connection that the request is about; nothing if it is about a call."""
    held = request.connection
    if held is None:
        return
    yield from _wrapped("host", one_line(held.host))
    yield f"  port: {held.port}"
    yield from _wrapped("program", "not known" if held.program is None else one_line(held.program))
    if request.sandbox.scratch is not None:
        yield "  the call sees this thread's /tmp, and could send its files to this host"


def question_lines(request: ApprovalRequest, question: Question, stream: IO[Any]) -> Iterator[str]:
    """A question of a tool in progress. Everything that the tool or its server wrote stands behind a bar."""
    first, *more = framed(one_line(f"{request.tool}: {request.reason}"), "", at_blanks=True)
    yield styled(first, "bold", stream)
    yield from more
    yield from _wrapped("it says", question.message)
    if question.url is not None:
        yield from _wrapped("host", one_line(url_host(question.url)))
        yield from _wrapped("address", one_line(question.url))
        yield "  haft does not open it: open it yourself if you trust this host"
    for name, field in form_fields(question).items():
        yield from _wrapped(one_line(name), one_line(field_words(field, is_required=name in required_of(question))))


def url_host(url: str) -> str:
    """The host and port of a web address, without user and password, as a browser finds them: a browser takes a
    backslash for a slash, and ignores surplus slashes."""
    found = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:[/\\]*([^/\\?#]*)", url)
    return "not a valid address" if found is None else found[1].rpartition("@")[2] or "none"


def form_fields(question: Question) -> Mapping[str, Any]:
    """The fields of a form, each with its JSON Schema."""
    fields = question.schema.get("properties")
    return fields if isinstance(fields, Mapping) else {}


def required_of(question: Question) -> Sequence[Any]:
    """The names of the fields that must be filled in."""
    required = question.schema.get("required")
    return required if isinstance(required, list) else ()


def field_words(field: Any, *, is_required: bool) -> str:
    """What a field of a form takes, in words."""
    if not isinstance(field, Mapping):
        return "any value"
    said = [str(field[key]) for key in ("title", "description") if isinstance(field.get(key), str)]
    options = choices_of(field)
    said.append(f"one of {', '.join(options)}" if options else str(field.get("type", "any value")))
    if "default" in field:
        said.append(f"default {to_json_text(field['default'])}")
    return "; ".join([*said, *([] if is_required else ["optional"])])


def choices_of(field: Mapping[str, Any]) -> list[str]:
    """The values of a choice, with their titles if they have some."""
    for found in (field, field.get("items")):
        if not isinstance(found, Mapping):
            continue
        if isinstance(found.get("enum"), list):
            return [str(each) for each in found["enum"]]
        for key in ("oneOf", "anyOf"):
            if isinstance(found.get(key), list):
                pairs = [each for each in found[key] if isinstance(each, Mapping) and "const" in each]
                return [f"{each['const']} ({each.get('title', each['const'])})" for each in pairs]
    return []


def changed_part(difference: str) -> str:
    """Which part of a tool differs from the approved version: `definition`, `configuration` or `file`. If several
    differ, the first of these."""
    if difference.startswith("configuration: "):
        return "configuration"
    return "definition" if difference.startswith("--- definition as ") else "file"


def _parts(request: ApprovalRequest) -> Iterator[str]:
    """Each part of a command line with the decision about it; nothing if the first line of the question says the
    same."""
    parts = request.parts
    if len(parts) == 1 and (parts[0].action == "allow" or parts[0].reason == request.reason):
        return
    for part in parts:
        rule = "" if part.rule is None else f" ({one_line(part.source or part.rule)})"
        yield from _wrapped(f"- {part.action}", f"{one_line(part.command)}")
        yield from _wrapped("    because", f"{one_line(part.reason)}{rule}")


def trial_lines(request: ApprovalRequest, diff: str, stream: IO[Any]) -> Iterator[str]:
    """The changes of a trial run, as lines for a person."""
    yield styled(f"trial run of {visible(request.tool)}: nothing below is in the workspace yet", "bold", stream)
    yield from diff_lines(diff, stream, f"`haft diff {shortened(request.run)}` in another terminal shows all")


def diff_lines(diff: str, stream: IO[Any], more_at: str) -> Iterator[str]:
    """The lines of a diff; only the beginning of a long one."""
    text = diff.removesuffix("\n").split("\n")
    yield from coloured_lines("\n".join(map(_cut, text[:MOST_LINES])), stream)
    rest = text[MOST_LINES:]
    if rest:
        more = sum(line.startswith("diff --git ") for line in rest)
        files = f", of {more} more file{'s' if more > 1 else ''}" if more else ""
        yield styled(f"… {len(rest):_} more lines{files}: {more_at}", "warn", stream)


def choice_lines(to_allow: Sequence[RuleOffer], lead: str) -> Iterator[str]:
    """The rules that an answer can add, numbered from 1 if there are several."""
    if len(to_allow) == 1:
        yield from _wrapped(lead, to_allow[0].label)
    elif to_allow:
        yield f"  {lead}, with its number:"
        for number, one in enumerate(to_allow, 1):
            yield from _wrapped(f"  {number}", one.label)


def request_from_inbox(waiting: Waiting) -> ApprovalRequest:
    """The request that an entry of the inbox holds."""
    shown = with_current_names(waiting.shown)
    confinement: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in shown["sandbox"].items()
    }
    confinement.pop("connections", None)
    confinement["scratch"] = "thread" if confinement.get("scratch") == "thread" else None
    return ApprovalRequest(
        run=waiting.run,
        tool=ToolName(shown["tool"]),
        description=shown["description"],
        arguments=shown["arguments"],
        reason=shown["reason"],
        who=waiting.who,
        thread=waiting.thread,
        cwd=shown["cwd"],
        env=shown["env"],
        timeout=shown["timeout"],
        sandbox=Confinement(**confinement),
        withheld=tuple(shown.get("withheld", ())),
        diff=shown["diff"],
        output=shown["output"],
        preview=shown.get("preview"),
        claim=shown.get("claim"),
        parts=tuple(DecidedPart(**part) for part in shown["parts"]),
        to_allow=tuple(RuleOffer(**one) for one in shown["toAllow"]),
        definition_diff=shown["definitionDiff"],
        pin=shown["pin"],
        build=shown.get("build"),
        connection=None if shown.get("connection") is None else HeldConnection(**shown["connection"]),
        question=None if shown.get("question") is None else Question(**shown["question"]),
        batch=None if shown.get("batch") is None else (shown["batch"], 1),
        chain=tuple(shown["chain"]),
        chain_tools=tuple(shown.get("chainTools", ())),
        chain_purposes=tuple(shown.get("chainPurposes", ())),
        id=waiting.id,
        expires_at=waiting.expires_at,
    )


def _cut(line: str) -> str:
    return line if len(line) <= MOST_COLUMNS else f"{line[:MOST_COLUMNS]}… ({len(line):_} characters)"


def _wrapped(name: str, text: str) -> Iterator[str]:
    """`name: text` on one line if it fits; else the text below the name, wrapped, each line behind a bar."""
    whole = list(framed(f"{name}: {text}", "  "))
    if len(whole) == 1:
        yield from whole
        return
    yield from framed(f"{name}:", "  ")
    yield from framed(text)
