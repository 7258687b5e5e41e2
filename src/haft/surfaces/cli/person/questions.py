"""A call that waits for a person, as that person reads it: at the prompt, and in `haft inbox`.

Arguments are shown in full, never cut, with everything invisible written as an escape: what is agreed to is what is
seen. Differences are cut where they are long, and it is said where the rest is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Final

from haft.contracts import Allowable, ApprovalRequest, Confinement, DecidedPart, ToolName, with_names_of_today
from haft.surfaces.cli.screen.patches import coloured
from haft.surfaces.cli.screen.printing import to_json_text
from haft.surfaces.cli.screen.sandbox import sandbox_words
from haft.surfaces.cli.screen.short_names import shortened
from haft.surfaces.cli.screen.terminal import framed, one_line, styled, visible

if TYPE_CHECKING:
    from haft.service import Waiting

MOST_LINES: Final = 200
"""Of a difference, in a question."""
MOST_COLUMNS: Final = 1000


def shown_call(
    request: ApprovalRequest,
    arguments: Mapping[str, Any],
    workspace: str,
    stream: IO[Any] | None = None,
    *,
    verb: str = "needs approval",
) -> Iterator[str]:
    """The call line by line: why it asks, its arguments, what was found in them, what it could reach. `arguments` may
    be others than those of the request; what was found in those is then not shown. `stream` is where it goes."""
    stream = stream or sys.stderr
    first, *more = framed(one_line(f"{request.tool} {verb}: {request.reason}"), "", at_blanks=True)
    yield styled(first, "bold", stream)
    yield from more
    if not arguments:
        yield "  (no arguments)"
    for name, value in arguments.items():
        text = value if isinstance(value, str) else to_json_text(value)
        yield from _wrapped(one_line(name), text)
    if request.preview is not None and arguments == request.arguments:
        yield from _wrapped("its own words", one_line(request.preview))
    if request.cwd != ".":
        yield from _wrapped("in", one_line(request.cwd))
    if request.env:
        yield from _wrapped("with variables", to_json_text(dict(request.env)))
    if request.timeout is not None:
        yield f"  ended after: {request.timeout:g} seconds"
    if request.chain:
        tools = request.chain_tools or ("",) * len(request.chain)
        named = [f"{run} ({tool})" if tool else run for run, tool in zip(request.chain, tools, strict=True)]
        verb = "waits" if len(named) == 1 else "all wait"
        yield from _wrapped("called by", f"{' → '.join(map(one_line, named))}: {verb} for the answer")
    if arguments == request.arguments:
        yield from _parts(request)
    if request.definition_diff is not None:
        yield styled(f"  its {what_changed(request.definition_diff)} is not the one that was approved:", "warn", stream)
        yield from cut_diff(request.definition_diff, stream, "`haft inbox --json` shows all")
    yield from _wrapped("sandbox", sandbox_words(request.sandbox, workspace))
    if request.withheld:
        # Names by their form, and set here: nothing else can stand there.
        yield from _wrapped("withheld", f"{', '.join(request.withheld)} (the tool names it)")


def what_changed(difference: str) -> str:
    """What of a tool is not as it was agreed to, by the difference, in which its definition comes before its files."""
    return "definition" if difference.startswith("--- definition as ") else "file"


def _parts(request: ApprovalRequest) -> Iterator[str]:
    """Each part of a command with what was decided about it, where that says more than the first line did."""
    parts = request.parts
    if len(parts) == 1 and (parts[0].action == "allow" or parts[0].reason == request.reason):
        return
    for part in parts:
        rule = "" if part.rule is None else f" ({one_line(part.source or part.rule)})"
        yield from _wrapped(f"- {part.action}", f"{one_line(part.command)}")
        yield from _wrapped("    because", f"{one_line(part.reason)}{rule}")


def shown_trial(request: ApprovalRequest, diff: str, stream: IO[Any]) -> Iterator[str]:
    """What a call changed that was tried."""
    yield styled(f"trial run of {visible(request.tool)}: nothing below is in the workspace yet", "bold", stream)
    yield from cut_diff(diff, stream, f"`haft diff {shortened(request.run)}` in another terminal shows all")


def cut_diff(diff: str, stream: IO[Any], more_at: str) -> Iterator[str]:
    """A difference, its beginning where it is long."""
    text = diff.removesuffix("\n").split("\n")
    yield from coloured("\n".join(map(_cut, text[:MOST_LINES])), stream)
    rest = text[MOST_LINES:]
    if rest:
        more = sum(line.startswith("diff --git ") for line in rest)
        files = f", of {more} more file{'s' if more > 1 else ''}" if more else ""
        yield styled(f"… {len(rest):_} more lines{files}: {more_at}", "warn", stream)


def shown_choices(to_allow: Sequence[Allowable], lead: str) -> Iterator[str]:
    """What could be allowed for good, numbered from 1 where there is a choice."""
    if len(to_allow) == 1:
        yield from _wrapped(lead, to_allow[0].label)
    elif to_allow:
        yield f"  {lead}, with its number:"
        for number, one in enumerate(to_allow, 1):
            yield from _wrapped(f"  {number}", one.label)


def request_in(waiting: Waiting) -> ApprovalRequest:
    """The question as it lies in the inbox."""
    shown = with_names_of_today(waiting.shown)
    confinement: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in shown["sandbox"].items()
    }
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
        parts=tuple(DecidedPart(**part) for part in shown["parts"]),
        to_allow=tuple(Allowable(**one) for one in shown["toAllow"]),
        definition_diff=shown["definitionDiff"],
        pin=shown["pin"],
        build=shown.get("build"),
        chain=tuple(shown["chain"]),
        chain_tools=tuple(shown.get("chainTools", ())),
        id=waiting.id,
        expires_at=waiting.expires_at,
    )


def _cut(line: str) -> str:
    return line if len(line) <= MOST_COLUMNS else f"{line[:MOST_COLUMNS]}… ({len(line):_} characters)"


def _wrapped(name: str, text: str) -> Iterator[str]:
    """`name: text` on one line, or each line of the text broken to the terminal's width and marked with a bar."""
    whole = list(framed(f"{name}: {text}", "  "))
    if len(whole) == 1:
        yield from whole
        return
    yield from framed(f"{name}:", "  ")
    yield from framed(text)
