"""Asking at the terminal: the whole call as it would run, and a question that is asked again until the answer is one.

Of a call that was tried, its changes are shown instead. A cancelled call does not wait for a person, and neither does
one that somebody else has answered in the inbox.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from haft.contracts import ApprovalAnswer, ApprovalRequest, Approver, BadUsage, Grants, HaftError, Scope
from haft.lazy import regex
from haft.surfaces.cli.home import state_home
from haft.surfaces.cli.person.interrupts import Interrupts
from haft.surfaces.cli.person.line_input import NO, YES, confirmed, not_understood, typed
from haft.surfaces.cli.person.questions import shown_call, shown_choices, shown_trial
from haft.surfaces.cli.screen.display import Display
from haft.surfaces.cli.screen.printing import complain, say, to_json_text, warn
from haft.surfaces.cli.screen.terminal import framed, is_terminal, one_line, visible
from haft.surfaces.cli.words.written_json import parse_json
from haft.values import dataclass, replace

QUESTION: Final = "Approve {tool}? [{choices}] "
COMMIT: Final = "Apply these changes? [y/N] "
BUILD: Final = "Build? [y/N] "
MESSAGE: Final = "What shall be said to whoever called? "
_FOR_LONGER: Final = regex(r"([tav])\s*([0-9]{1,3})?")
SAID_YES: Final = "the person at the terminal approved it"
SAID_NO: Final = "the person at the terminal rejected it"


async def approve_all(request: ApprovalRequest) -> ApprovalAnswer:
    """`--approve`: the person calling has said so beforehand, of the call: not of what builds its environment."""
    if request.build is not None:
        message = f"`--approve` speaks of the call, not of code that builds packages; `{request.build}` allows that"
        return ApprovalAnswer(approved=False, message=message)
    if request.definition_diff is not None:
        warn(f"{one_line(request.tool)} has changed since you approved it; this call approves it as it is now")
    return ApprovalAnswer(approved=True, message="approved beforehand, by --approve")


def approver_here(interrupts: Interrupts, workspace: str, display: Display, lasts: str | None) -> Approver | None:
    """Whoever sits at the terminal; None where there is no terminal to ask at. `lasts` says how long an answer for the
    thread holds; None where that would be for this call only."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return None

    async def ask(request: ApprovalRequest) -> ApprovalAnswer:
        try:
            if request.diff is not None:
                return await _asked_after(request, request.diff, display)
            if request.build is not None:
                return await _asked_to_build(request, workspace)
            return await _Prompt(request, interrupts, workspace, lasts).ask()
        except asyncio.CancelledError:
            if not interrupts.heard:
                _tell_called_off(request)
            raise

    return ask


def _tell_called_off(request: ApprovalRequest) -> None:
    """Why the question stands there without an answer."""
    from haft.service import answered_by

    by = None if request.id is None else answered_by(state_home(), request.id)
    sys.stderr.write("\n")
    say("no answer is needed any more" if by is None else f"answered elsewhere: {by}")


async def _asked_after(request: ApprovalRequest, diff: str, display: Display) -> ApprovalAnswer:
    """What was tried already: its output, its changes, and whether they shall count."""
    await display.show_tried(request.output or "")
    for line in shown_trial(request, diff, sys.stderr):
        sys.stderr.write(f"{line}\n")
    if await confirmed(COMMIT):
        return ApprovalAnswer(approved=True, message=f"{SAID_YES}, after seeing the changes")
    return ApprovalAnswer(approved=False, message=SAID_NO)


async def _asked_to_build(request: ApprovalRequest, workspace: str) -> ApprovalAnswer:
    """Whether packages are built: yes or no, nothing of the call can be changed by it."""
    for line in shown_call(request, request.arguments, workspace):
        sys.stderr.write(f"{line}\n")
    is_agreed = await confirmed(BUILD)
    return ApprovalAnswer(approved=is_agreed, message=SAID_YES if is_agreed else SAID_NO)


KEYS: Final = {
    **dict.fromkeys(YES, "y"),
    **dict.fromkeys(NO, "n"),
    "thread": "t",
    "always": "a",
    "variable": "v",
    "once": "o",
    "with": "w",
    "network": "w",
    "with network": "w",
    "edit": "e",
    "message": "m",
    "h": "?",
    "help": "?",
}
"""The key that a word stands for; other words stand for themselves."""

HELP = (
    "y, yes: yes, this once",
    "t, a: yes, and from now on in this thread, or always in this workspace, exactly as shown",
    "w: yes, with the network open for this call, and an empty /tmp; `w /tmp`: and with this thread's /tmp",
    "o: yes, this once, with the variables that are withheld; the tool sees their values",
    "v: yes, and always in this workspace, exactly as shown, with these variables",
    "e: edit the arguments; they are looked at again",
    "m: no, with a message for the model",
    "n, no, Enter: no",
)


@dataclass(slots=True)
class _Prompt:
    """One question about one call, repeated where arguments are edited."""

    request: ApprovalRequest
    interrupts: Interrupts
    workspace: str
    lasts: str | None
    """How long an answer for the thread holds; None where it is not offered."""
    judged: Mapping[str, Any] | None = None
    """The arguments that were looked at last, where they are others than those of the request."""

    async def ask(self) -> ApprovalAnswer:
        arguments: Mapping[str, Any] = self.request.arguments
        is_shown = False
        while True:
            if not is_shown:
                for line in self._shown(arguments):
                    sys.stderr.write(f"{line}\n")
            answer = _key(await typed(self._question(arguments)))
            is_shown = False
            if answer == "e":
                try:
                    arguments = await self._revised(arguments)
                except HaftError as error:
                    complain(error.message, "the arguments stay as they were")
            elif answer == "?":
                for line in HELP:
                    sys.stderr.write(f"  {line}\n")
                is_shown = True
            elif (given := await self._answered(answer, arguments)) is not None:
                return given
            else:
                say(self._not_understood(answer, arguments))
                is_shown = True

    async def _revised(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Other arguments, and what is asked about them."""
        wanted = await _edited(arguments, self.interrupts)
        if wanted != arguments and self.request.revise is not None:
            again = await self.request.revise(wanted)
            self.request = replace(self.request, reason=again.reason, parts=again.parts, sandbox=again.sandbox)
            self.request = replace(self.request, withheld=again.withheld)
            self.judged = again.arguments
        return wanted

    async def _answered(self, answer: str, arguments: Mapping[str, Any]) -> ApprovalAnswer | None:
        """What a key means; None where it means nothing here, or needs a number."""
        if answer in ("", "n"):
            return ApprovalAnswer(approved=False, message=SAID_NO)
        if answer == "y":
            return ApprovalAnswer(approved=True, message=SAID_YES, arguments=arguments)
        if answer == "w" and self._may_open_network():
            return ApprovalAnswer(
                approved=True, message=f"{SAID_YES}, with network", arguments=arguments, grants=Grants(network=True)
            )
        if answer == "w /tmp" and (self._may_open_network() or self.request.sandbox.network):
            message = f"{SAID_YES}, with network, and with this thread's /tmp"
            grants = Grants(network=True, scratch=True)
            return ApprovalAnswer(approved=True, message=message, arguments=arguments, grants=grants)
        variables = Grants(env=self.request.withheld)
        if answer == "o" and variables.env:
            return ApprovalAnswer(
                approved=True, message=f"{SAID_YES}, with {self._named()}", arguments=arguments, grants=variables
            )
        if answer == "m":
            message = " ".join((await typed(MESSAGE)).split())
            return ApprovalAnswer(approved=False, message=message or SAID_NO)
        longer = _FOR_LONGER.fullmatch(answer)
        offered = len(self._to_allow(arguments))
        may_last = longer is not None and (longer[1] != "v" or bool(variables.env))
        may_last = may_last and longer is not None and (longer[1] != "t" or self.lasts is not None)
        if longer is not None and may_last and (longer[2] is not None or offered == 1):
            number = int(longer[2] or 1)
            scope: Scope = "thread" if longer[1] == "t" else "always"
            if 1 <= number <= offered:
                answered = ApprovalAnswer(approved=True, message=SAID_YES, scope=scope, allow=number - 1)
                return replace(answered, grants=variables) if longer[1] == "v" else answered
        return None

    def _not_understood(self, answer: str, arguments: Mapping[str, Any]) -> str:
        offered = len(self._to_allow(arguments))
        if offered > 1 and _FOR_LONGER.fullmatch(answer):
            return f"several things could be allowed: type `{answer[0]} 1` to `{answer[0]} {offered}`"
        keys = f"{self._keys(arguments)}; `?` explains them"
        why = self._why_not(answer, arguments)
        return not_understood(answer, keys) if why is None else f"`{answer}` is not offered: {why}; type {keys}"

    def _why_not(self, answer: str, arguments: Mapping[str, Any]) -> str | None:
        """Why a key that there is counts for nothing here."""
        longer = _FOR_LONGER.fullmatch(answer)
        if (answer == "o" or (longer is not None and longer[1] == "v")) and not self.request.withheld:
            return "no variable is withheld"
        if answer in ("w", "w /tmp"):
            return "the network is open already" if self.request.sandbox.network else "it cannot get the network"
        if longer is None:
            return None
        if not self._to_allow(arguments):
            return one_line(self.request.reason) if arguments == self.request.arguments else "the arguments are new"
        return "it would last for this call only" if longer[1] == "t" and self.lasts is None else None

    def _shown(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        shown = self.request if self.judged is None else replace(self.request, arguments=self.judged)
        yield from shown_call(shown, arguments, self.workspace)
        offered = self._to_allow(arguments)
        if self.lasts is None:
            yield from shown_choices(offered, "a (always, here) also allows")
        else:
            yield from shown_choices(offered, "t (in this thread) or a (always, here) also allows")
            yield from framed(f"t lasts {self.lasts}", "  ") if offered else ()
        if self.request.withheld:
            always = f"  v: always, with {self._named()}: it sees the value"
            yield from (always,) if self._to_allow(arguments) else ()
            yield f"  o: this once, with {self._named()}: it sees the value"

    def _question(self, arguments: Mapping[str, Any]) -> str:
        return QUESTION.format(tool=visible(self.request.tool), choices=self._keys(arguments))

    def _keys(self, arguments: Mapping[str, Any]) -> str:
        longer = ["t(hread)", "a(lways)"] if self._to_allow(arguments) else []
        longer = longer if self.lasts is not None else longer[1:]
        network = ["w(ith network)"] if self._may_open_network() else []
        if self.request.withheld:
            longer += ["v(ariable, always)"] if longer else []
            longer += ["o(nce with variable)"]
        return ", ".join(["y/N", *longer, *network, "e(dit)", "m(essage)"])

    def _to_allow(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """What can be allowed for longer: not where the arguments are others than those that were judged."""
        return self.request.to_allow if arguments == self.request.arguments else ()

    def _named(self) -> str:
        return " and ".join(self.request.withheld)

    def _may_open_network(self) -> bool:
        confinement = self.request.sandbox
        return confinement.profile != "none" and not confinement.network and not confinement.never_network


def _key(typed_line: str) -> str:
    """What was typed, with a key for the words that stand for one: `Always 2` is `a 2`."""
    answer = " ".join(typed_line.lower().split())
    word, _, number = answer.rpartition(" ") if answer[-1:].isdecimal() else (answer, "", "")
    return f"{KEYS.get(word, word)} {number}".strip() if word else answer


async def _edited(arguments: Mapping[str, Any], interrupts: Interrupts) -> Mapping[str, Any]:
    """The arguments as the person wants them: from their editor, else from a line of JSON."""
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        with interrupts.paused():
            text = await asyncio.to_thread(_in_editor, to_json_text(dict(arguments), indent=2))
    else:
        text = await typed("Arguments as JSON on one line (empty: unchanged): ")
    if not text.strip():
        return arguments
    value = parse_json(text, "what was written")
    if not isinstance(value, dict):
        raise BadUsage("what was written must be a JSON object")
    return value


def _in_editor(text: str) -> str:
    try:
        return click.edit(text, extension=".json", require_save=False) or ""
    except click.ClickException as error:
        raise BadUsage(error.format_message()) from error
