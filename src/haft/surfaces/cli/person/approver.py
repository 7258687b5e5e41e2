"""The prompt at the terminal: shows the whole call as it would run, and asks until the answer is valid.

After a trial run, the prompt shows the changes instead of the call. It also asks about connections of a call in
progress to hosts that were not granted. The prompt ends without an answer if the call is
cancelled, or if somebody answers the request in the inbox.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from haft.contracts import (
    ApprovalAnswer,
    ApprovalRequest,
    BadUsage,
    Grants,
    HaftError,
    HeldConnection,
    Scope,
    check_owned,
    hosts_in,
    network_from,
)
from haft.lazy import regex
from haft.surfaces.cli.person.batch_prompt import ask_about_batch
from haft.surfaces.cli.person.input_prompt import ask_for_input
from haft.surfaces.cli.person.interrupts import Interrupts
from haft.surfaces.cli.person.line_input import NO, YES, confirm, not_understood, read_line
from haft.surfaces.cli.screen.display import Display
from haft.surfaces.cli.screen.printing import complain, say, warn
from haft.surfaces.cli.words.json_input import parse_json
from haft.surfaces.text.home import state_home
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.requests import call_lines, choice_lines, claim_lines, trial_lines
from haft.surfaces.text.terminal import framed, is_terminal, one_line, visible
from haft.values import dataclass, replace

QUESTION: Final = "Approve {tool}? [{choices}] "
APPLY_QUESTION: Final = "Apply these changes? [y/N] "
BUILD_QUESTION: Final = "Build? [y/N] "
CONNECTION_QUESTION: Final = "Let it connect to {where}? [{choices}] "
MESSAGE_QUESTION: Final = "Message for the caller: "
_WITH_NETWORK: Final = regex(r"(?:with network|with|network|w)((?: +\S*[.:@/]\S*)* *)")
"""Hosts at the prompt have a dot, a port or `@`: a single word is more likely a slip of the keyboard."""
_LASTING_ANSWER: Final = regex(r"([tav])\s*([0-9]{1,3})?")
APPROVED: Final = "the person at the terminal approved it"
REJECTED: Final = "the person at the terminal rejected it"


async def approve_all(request: ApprovalRequest) -> ApprovalAnswer:
    """The answer under `--approve`: the call is approved, but not the build of packages for its environment."""
    if request.build is not None:
        message = f"`--approve` approves the call, not the code that builds packages; `{request.build}` approves that"
        return ApprovalAnswer(approved=False, message=message)
    if request.definition_diff is not None:
        warn(f"{one_line(request.tool)} has changed since you approved it; this call approves it as it is now")
    return ApprovalAnswer(approved=True, message="approved by --approve")


def terminal_approver(
    interrupts: Interrupts, workspace: str, display: Display, thread_lifetime: str | None
) -> TerminalApprover | None:
    """An approver that asks the person at the terminal; None if there is no terminal. `thread_lifetime` says in words
    how long an answer for the thread holds; None if it would hold for this call only."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return None

    return TerminalApprover(interrupts, workspace, display, thread_lifetime)


class TerminalApprover:
    """Asks the person at the terminal."""

    def __init__(
        self, interrupts: Interrupts, workspace: str, display: Display, thread_lifetime: str | None = None
    ) -> None:
        self._interrupts = interrupts
        self._workspace = workspace
        self._display = display
        self._thread_lifetime = thread_lifetime
        self.turn = asyncio.Lock()
        """Held while the person answers. A call can have several connections that wait, and a batch several calls.
        Whoever prints meanwhile takes it, so that nothing gets into the question."""

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        async with self.turn:
            try:
                return await self._ask(request)
            except asyncio.CancelledError:
                if not self._interrupts.heard:
                    _tell_question_ended(request)
                raise

    async def approve_batch(self, requests: Sequence[ApprovalRequest]) -> list[ApprovalAnswer]:
        """The answers to the requests of a batch, of which the person sees all before answering."""
        async with self.turn:
            try:
                return await ask_about_batch(requests, self._workspace, self._ask)
            except asyncio.CancelledError:
                if not self._interrupts.heard:
                    sys.stderr.write("\n")
                    say("no answer is needed any more")
                raise

    async def _ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        if request.question is not None:
            return await ask_for_input(request, request.question)
        if request.connection is not None:
            return await _ask_about_connection(request, request.connection, self._workspace, self._thread_lifetime)
        if request.diff is not None:
            return await _ask_after_trial(request, request.diff, self._display)
        if request.build is not None:
            return await _ask_about_build(request, self._workspace)
        return await _Prompt(request, self._interrupts, self._workspace, self._thread_lifetime).ask()


def _tell_question_ended(request: ApprovalRequest) -> None:
    """Print why the question needs no answer any more."""
    from haft.service import answered_by

    by = None if request.id is None else answered_by(state_home(), request.id)
    sys.stderr.write("\n")
    say("no answer is needed any more" if by is None else f"answered elsewhere: {by}")


async def _ask_after_trial(request: ApprovalRequest, diff: str, display: Display) -> ApprovalAnswer:
    """Show the output and the changes of a trial run, and ask whether to apply them."""
    await display.show_trial_output(request.output or "")
    for line in claim_lines(request):
        sys.stderr.write(f"{line}\n")
    for line in trial_lines(request, diff, sys.stderr):
        sys.stderr.write(f"{line}\n")
    if await confirm(APPLY_QUESTION, is_answer_needed=True):
        return ApprovalAnswer(approved=True, message=f"{APPROVED}, after seeing the changes")
    return ApprovalAnswer(approved=False, message=REJECTED)


async def _ask_about_build(request: ApprovalRequest, workspace: str) -> ApprovalAnswer:
    """Ask whether packages may be built. The only answers are yes and no."""
    for line in call_lines(request, request.arguments, workspace):
        sys.stderr.write(f"{line}\n")
    is_approved = await confirm(BUILD_QUESTION, is_answer_needed=True)
    return ApprovalAnswer(approved=is_approved, message=APPROVED if is_approved else REJECTED)


async def _ask_about_connection(
    request: ApprovalRequest, held: HeldConnection, workspace: str, thread_lifetime: str | None
) -> ApprovalAnswer:
    """Ask whether a call in progress may connect to a host: once, in its thread, always, or not."""
    for line in call_lines(request, request.arguments, workspace):
        sys.stderr.write(f"{line}\n")
    lead = (
        "a (always, here) also allows"
        if thread_lifetime is None
        else "t (in this thread) or a (always, here) also allows"
    )
    for line in choice_lines(request.to_allow, lead):
        sys.stderr.write(f"{line}\n")
    longer = ["t(hread)", "a(lways)"] if thread_lifetime is not None else ["a(lways)"]
    choices = ", ".join(["y/N", *(longer if request.to_allow else [])])
    question = CONNECTION_QUESTION.format(where=visible(f"{held.host}:{held.port}"), choices=choices)
    while True:
        line = await read_line(question)
        if not line:
            raise EOFError  # The terminal was closed: no person refused the connection.
        answer = _key(line)
        if answer in ("", "n"):
            return ApprovalAnswer(approved=False, message=None)
        if answer == "y":
            return ApprovalAnswer(approved=True, message=APPROVED)
        lasting = _LASTING_ANSWER.fullmatch(answer)
        number = int(lasting[2] or 1) if lasting is not None else 0
        is_offered = lasting is not None and lasting[1] in ("ta" if thread_lifetime is not None else "a")
        if lasting is not None and is_offered and 1 <= number <= len(request.to_allow):
            scope: Scope = "thread" if lasting[1] == "t" else "always"
            return ApprovalAnswer(approved=True, message=APPROVED, scope=scope, allow=number - 1)
        say(not_understood(answer, f"one of {choices}"))


KEYS: Final = {
    **dict.fromkeys(YES, "y"),
    **dict.fromkeys(NO, "n"),
    "thread": "t",
    "always": "a",
    "variable": "v",
    "once": "o",
    "edit": "e",
    "message": "m",
    "h": "?",
    "help": "?",
}
"""The words that a person may type instead of a key, each with its key."""

HELP = (
    "y, yes: approve this call, once",
    "t: approve this call, and calls exactly as shown in this thread",
    "a: approve this call, and calls exactly as shown in this workspace, always",
    "w: approve this call with the whole network and an empty /tmp",
    "w HOST…: approve this call with network only to these hosts, as in `w registry.example:443 db.internal:5432`",
    "w … /tmp: the same with this thread's /tmp",
    "o: approve this call, once, and pass on the withheld variables; the tool sees their values",
    "v: approve as with `a`, and pass on the withheld variables to all these calls",
    "e: edit the arguments; haft decides again about the edited call",
    "m: reject this call, with a message for the model",
    "n, no, Enter: reject this call",
)


@dataclass(slots=True)
class _Prompt:
    """One question about one call. It is repeated after the person has edited the arguments."""

    request: ApprovalRequest
    interrupts: Interrupts
    workspace: str
    thread_lifetime: str | None
    """How long an answer for the thread holds, in words; None if `t` is not offered."""
    decided_arguments: Mapping[str, Any] | None = None
    """The edited arguments that haft decided about last; None if the person has edited nothing."""

    async def ask(self) -> ApprovalAnswer:
        arguments: Mapping[str, Any] = self.request.arguments
        is_shown = False
        while True:
            if not is_shown:
                for line in self._question_lines(arguments):
                    sys.stderr.write(f"{line}\n")
            line = await read_line(self._question(arguments))
            if not line:
                raise EOFError  # The terminal was closed: no person rejected the call.
            answer = _key(line)
            is_shown = False
            if answer == "e":
                try:
                    arguments = await self._edit(arguments)
                except HaftError as error:
                    complain(error.message, "the arguments were not changed")
            elif answer == "?":
                for line in HELP:
                    sys.stderr.write(f"  {line}\n")
                is_shown = True
            elif (given := await self._answer_for(answer, arguments)) is not None:
                return given
            else:
                say(self._not_understood(answer, arguments))
                is_shown = True

    async def _edit(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Let the person edit the arguments, and return them. Also decides about the new arguments, and keeps that
        decision in `request`."""
        edited = await _edited(arguments, self.interrupts)
        if edited != arguments and self.request.revise is not None:
            again = await self.request.revise(edited)
            self.request = replace(self.request, reason=again.reason, parts=again.parts, sandbox=again.sandbox)
            self.request = replace(self.request, withheld=again.withheld)
            self.decided_arguments = again.arguments
        return edited

    async def _answer_for(self, answer: str, arguments: Mapping[str, Any]) -> ApprovalAnswer | None:
        """The answer for a typed key; None if the key is not offered, or needs a number that is missing."""
        if answer in ("", "n"):
            return ApprovalAnswer(approved=False, message=REJECTED)
        if answer == "y":
            return ApprovalAnswer(approved=True, message=APPROVED, arguments=arguments)
        if _is_about_network(answer):
            return self._with_network(answer, arguments)
        variables = Grants(env=self.request.withheld)
        if answer == "o" and variables.env:
            return ApprovalAnswer(
                approved=True, message=f"{APPROVED}, with {self._withheld()}", arguments=arguments, grants=variables
            )
        if answer == "m":
            message = " ".join((await read_line(MESSAGE_QUESTION)).split())
            return ApprovalAnswer(approved=False, message=message or REJECTED)
        longer = _LASTING_ANSWER.fullmatch(answer)
        offered = len(self._to_allow(arguments))
        may_last = longer is not None and (longer[1] != "v" or bool(variables.env))
        may_last = may_last and longer is not None and (longer[1] != "t" or self.thread_lifetime is not None)
        may_last = may_last and longer is not None and (longer[1] == "t" or self.request.sandbox.ungrantable is None)
        if longer is not None and may_last and (longer[2] is not None or offered == 1):
            number = int(longer[2] or 1)
            scope: Scope = "thread" if longer[1] == "t" else "always"
            if 1 <= number <= offered:
                answered = ApprovalAnswer(approved=True, message=APPROVED, scope=scope, allow=number - 1)
                return replace(answered, grants=variables) if longer[1] == "v" else answered
        return None

    def _with_network(self, answer: str, arguments: Mapping[str, Any]) -> ApprovalAnswer | None:
        """The answer that approves the call with the network, or only with the typed hosts; None if this is not
        possible."""
        hosts, scratch = _typed_hosts(answer)
        if not (self._may_open_network() or (scratch and not hosts and self.request.sandbox.network)):
            return None
        if _problem_with(hosts) is not None:
            return None
        message = f"{APPROVED}, with network"
        message += f" only to {', '.join(hosts)}" if hosts else ""
        message += ", and with this thread's /tmp" if scratch else ""
        grants = Grants(network=hosts or True, scratch=scratch)
        return ApprovalAnswer(approved=True, message=message, arguments=arguments, grants=grants)

    def _not_understood(self, answer: str, arguments: Mapping[str, Any]) -> str:
        offered = len(self._to_allow(arguments))
        if offered > 1 and _LASTING_ANSWER.fullmatch(answer):
            return f"there are {offered} choices: type one of `{answer[0]} 1` to `{answer[0]} {offered}`"
        keys = f"{self._keys(arguments)}; `?` explains them"
        why = self._why_not_offered(answer, arguments)
        return not_understood(answer, keys) if why is None else f"`{answer}` is not offered: {why}; type {keys}"

    def _why_not_offered(self, answer: str, arguments: Mapping[str, Any]) -> str | None:
        """Why the typed key is not offered for this call; None if there is no such key at all."""
        longer = _LASTING_ANSWER.fullmatch(answer)
        if (answer == "o" or (longer is not None and longer[1] == "v")) and not self.request.withheld:
            return "no variable is withheld"
        holder = self.request.sandbox.ungrantable
        if holder is not None and (_is_about_network(answer) or (longer is not None and longer[1] == "a")):
            what = "gets no grants" if longer is None else "has only answers that end with the task"
            return f"{holder} {what}"
        if _is_about_network(answer):
            if self._may_open_network():
                return _problem_with(_typed_hosts(answer)[0])
            if self.request.sandbox.session and self.request.sandbox.keeps_state:
                where = self.request.sandbox.entry
                return f"one process answers all calls of this tool, and gets the network by a grant {where}"
            is_open = self.request.sandbox.network is True and not self.request.sandbox.never_network
            return "the network is open already" if is_open else "the tool cannot get the network"
        if longer is None:
            return None
        if not self._to_allow(arguments):
            reason = one_line(self.request.reason)
            return reason if arguments == self.request.arguments else "the arguments were edited"
        return "it would hold for this call only" if longer[1] == "t" and self.thread_lifetime is None else None

    def _question_lines(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        edited = self.decided_arguments
        request = self.request if edited is None else replace(self.request, arguments=edited)
        yield from call_lines(request, arguments, self.workspace)
        offered = self._to_allow(arguments)
        ends_with_task = self.request.sandbox.ungrantable is not None
        if self.thread_lifetime is None:
            yield from choice_lines(() if ends_with_task else offered, "a (always, here) also allows")
        else:
            always = "" if ends_with_task else " or a (always, here)"
            yield from choice_lines(offered, f"t (in this thread){always} also allows")
            is_of_task = any(purpose is not None for purpose in self.request.chain_purposes)
            lasts = "until the task ends" if is_of_task else self.thread_lifetime
            yield from framed(f"t lasts {lasts}", "  ") if offered else ()
        if self.request.withheld:
            with_variable = f"  v: always, with {self._withheld()}: the tool sees the value"
            yield from (with_variable,) if self._to_allow(arguments) else ()
            yield f"  o: this once, with {self._withheld()}: the tool sees the value"

    def _question(self, arguments: Mapping[str, Any]) -> str:
        return QUESTION.format(tool=visible(self.request.tool), choices=self._keys(arguments))

    def _keys(self, arguments: Mapping[str, Any]) -> str:
        longer = ["t(hread)", "a(lways)"] if self._to_allow(arguments) else []
        longer = longer if self.thread_lifetime is not None else longer[1:]
        if self.request.sandbox.ungrantable is not None:
            longer = longer[:1] if self.thread_lifetime is not None else []
        network = ["w(ith network)", "w HOST"] if self._may_open_network() else []
        if self.request.withheld:
            longer += ["v(ariable, always)"] if longer else []
            longer += ["o(nce with variable)"]
        return ", ".join(["y/N", *longer, *network, "e(dit)", "m(essage)"])

    def _to_allow(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """The rules that an answer can add; none if the person has edited the arguments."""
        return self.request.to_allow if arguments == self.request.arguments else ()

    def _withheld(self) -> str:
        return " and ".join(self.request.withheld)

    def _may_open_network(self) -> bool:
        confinement = self.request.sandbox
        if confinement.ungrantable is not None or (confinement.session and confinement.keeps_state):
            return False
        return confinement.profile != "none" and confinement.network is not True and not confinement.never_network


def _is_about_network(answer: str) -> bool:
    return _WITH_NETWORK.fullmatch(answer) is not None


def _typed_hosts(answer: str) -> tuple[tuple[str, ...], bool]:
    """The hosts in an answer about the network, and whether it also names the thread's `/tmp`."""
    words = answer.split()[1:]
    hosts = [word for word in words if word != "/tmp"]  # noqa: S108  the word that a person types
    return hosts_in(",".join(hosts)), len(hosts) < len(words)


def _problem_with(hosts: Sequence[str]) -> str | None:
    """Why these hosts cannot be granted; None if they can."""
    try:
        check_owned(network_from(hosts))
    except ValueError as error:
        return str(error)
    return None


def _key(typed_line: str) -> str:
    """The typed line with words replaced by their keys: `Always 2` becomes `a 2`."""
    answer = " ".join(typed_line.lower().split())
    if (network := _WITH_NETWORK.fullmatch(answer.replace(",", " "))) is not None:
        return f"w {' '.join(network[1].split())}".strip()
    word, _, number = answer.rpartition(" ") if answer[-1:].isdecimal() else (answer, "", "")
    return f"{KEYS.get(word, word)} {number}".strip() if word else answer


async def _edited(arguments: Mapping[str, Any], interrupts: Interrupts) -> Mapping[str, Any]:
    """The arguments that the person writes: in an editor if `VISUAL` or `EDITOR` is set, else as a line of JSON."""
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        with interrupts.paused():
            text = await asyncio.to_thread(_in_editor, to_json_text(dict(arguments), indent=2))
    else:
        text = await read_line("Arguments as JSON on one line (empty: unchanged): ")
    if not text.strip():
        return arguments
    value = parse_json(text, "the edited text")
    if not isinstance(value, dict):
        raise BadUsage("the edited text must be a JSON object")
    return value


def _in_editor(text: str) -> str:
    try:
        return click.edit(text, extension=".json", require_save=False) or ""
    except click.ClickException as error:
        raise BadUsage(error.format_message()) from error
