"""`haft inbox`, `haft approve`, `haft reject`: lists waiting calls and answers them, from any process.

Listing and answering start no host. If the process that asked is alive, that process acts on the answer. If it has
ended after a trial run, the process that answers applies or discards the changes.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from haft.contracts import EXIT_CODES, BadUsage, Grants, HaftError, Network, UnknownRequest, is_batch_id
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.person.passphrase import asked_signer, passphrase_option
from haft.surfaces.cli.place import recover, require_person, tell_what_is_logged, workspace_of
from haft.surfaces.cli.screen.printing import complain, facts, lines, say, table
from haft.surfaces.cli.words.network_option import CommandWithNetwork, network_option
from haft.surfaces.cli.words.times import lasted
from haft.surfaces.cli.words.workspace_paths import in_workspace
from haft.surfaces.text.home import state_home
from haft.surfaces.text.sandbox import network_words
from haft.surfaces.text.terminal import framed, is_terminal, one_line

if TYPE_CHECKING:
    from haft.service import InboxFacade, Reply, Signer, Waiting
    from haft.surfaces.cli.commands.inbox_notify import Detail

MOST: Final = 50


@click.command("inbox", cls=HaftCommand)
@click.option("--all", "everywhere", is_flag=True, help="List the calls of every workspace.")
@click.option(
    "--watch",
    is_flag=True,
    help="Stay, show each call when it comes, and take answers: a key chooses, Enter confirms. "
    "Without a terminal: print each call once, as a line of JSON.",
)
@click.option(
    "--notify",
    type=click.Choice(["names", "arguments"]),
    is_flag=False,
    flag_value="names",
    help="With --watch: also show a desktop notification for each new call, with the names of the tool, the caller and "
    "the workspace. `--notify=arguments`: also with the arguments of the call.",
)
@click.pass_obj
def list_inbox(options: Globals, everywhere: bool, watch: bool, notify: Detail | None) -> None:
    """List the calls in this workspace that wait for a person's answer, and the connections of calls. The oldest comes
    first. haft prints all arguments of each call."""
    from haft.service import to_json

    workspace = None if everywhere else os.path.realpath(workspace_of(options))
    if notify is not None and not watch:
        raise BadUsage("`--notify` needs `--watch`: without it, haft lists the calls and ends")
    if watch:
        _watch(options, workspace, notify)
        return
    with _inbox() as inbox:
        found = [] if inbox is None else inbox.waiting(workspace)
    if options.json:
        facts([to_json(waiting) for waiting in found])
        return
    now = time.time()
    found = _by_batch(found)
    table([_row(waiting, now) for waiting in found])
    shown: set[str] = set()
    for waiting in found:
        batch = waiting.shown.get("batch")
        if batch is not None and batch not in shown:
            shown.add(batch)
            count = sum(each.shown.get("batch") == batch for each in found)
            waits = "1 call waits" if count == 1 else f"{count} calls wait"
            lines(["", f"batch {batch}: {waits}; `haft approve {batch}` and `haft reject {batch}` answer for all"])
        lines(["", one_line(f"{waiting.id}, asked by {waiting.who} in {waiting.thread}, {waiting.workspace}")])
        lines(_waiting_lines(waiting))
    if options.quiet:
        return
    if not found:
        say(
            "no call waits for an answer"
            + ("" if everywhere else " in this workspace: `haft inbox --all` lists those of all workspaces")
        )
    else:
        say("`haft approve ID`, `haft reject ID`")


def _by_batch(found: Sequence[Waiting]) -> list[Waiting]:
    """The requests with those of one batch next to each other, where the first of them stands."""
    first: dict[str, int] = {}
    for at, waiting in enumerate(found):
        first.setdefault(waiting.shown.get("batch") or waiting.id, at)
    return sorted(found, key=lambda waiting: first[waiting.shown.get("batch") or waiting.id])


def _watch(options: Globals, workspace: str | None, notify: Detail | None) -> None:
    from haft.service import InboxFacade, has_state, to_json
    from haft.surfaces.cli.commands.inbox_notify import InboxNotifications
    from haft.surfaces.cli.commands.inbox_watch import PAUSE, WatchedInbox, print_as_they_come

    tell_what_is_logged(options)
    if not options.quiet:
        say("waiting for calls that need an answer; q or Ctrl-C ends")
    on_new = None if notify is None else InboxNotifications(notify, os.environ).show
    while not has_state(state_home()):  # No call was ever made.
        time.sleep(PAUSE)
    with contextlib.closing(InboxFacade(state_home())) as inbox:
        if options.json or not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
            print_as_they_come(inbox, workspace, to_json, on_new)
        require_person("inbox --watch")
        signer = asked_signer(inbox.secret, None)

        def show(waiting: Waiting) -> None:
            lines(["", one_line(f"{waiting.id}, asked by {waiting.who} in {waiting.thread}, {waiting.workspace}")])
            lines(_watched_lines(waiting))

        def answer(waiting: Waiting, given: dict[str, Any]) -> None:
            more = {"allow": 0, "arguments": None, "grants": Grants()} if given["approved"] else {}
            require_person("inbox --watch")
            _give_answer(inbox, waiting, options, signer, repeats_call=False, **more, **given)

        WatchedInbox(inbox, workspace, show, answer, on_new).run()


def _row(waiting: Waiting, now: float) -> tuple[str, ...]:
    shown = waiting.shown
    age = lasted(max(0.0, now - waiting.created_at))
    left = f"expires in {lasted(max(0.0, waiting.expires_at - now))}" if waiting.expires else "does not expire"
    return waiting.id, f"{age} ago", left, shown["tool"], shown["reason"]


def _waiting_lines(waiting: Waiting) -> Iterator[str]:
    """A request, and the options of `haft approve` that it offers."""
    from haft.surfaces.text.requests import choice_lines, request_from_inbox

    request = request_from_inbox(waiting)
    yield from _request_lines(waiting)
    yield from choice_lines(request.to_allow, "--thread or --always also allows")
    if request.withheld:
        options = " ".join(f"--env {name}" for name in request.withheld)
        yield f"  {options}: the tool sees the value; with --always in all such calls"


def _watched_lines(waiting: Waiting) -> Iterator[str]:
    """A request, and the keys that it offers; where a key cannot choose, the command that can."""
    from haft.surfaces.cli.commands.inbox_watch import has_one_rule
    from haft.surfaces.text.requests import choice_lines, request_from_inbox

    request = request_from_inbox(waiting)
    yield from _request_lines(waiting)
    command = f"haft approve {waiting.id}"
    lead = f"`{command} --always --as N` also allows"
    if has_one_rule(waiting):
        keys = "t (in its thread) or a (always) also allows"
        lead = keys if len(request.to_allow) == 1 else f"{keys} 1, and {lead} another"
    yield from choice_lines(request.to_allow, lead)
    if request.withheld:
        options = " ".join(f"--env {name}" for name in request.withheld)
        yield f"  `{command} {options}`: the tool sees the value; with --always in all such calls"


def _request_lines(waiting: Waiting) -> Iterator[str]:
    from haft.surfaces.text.requests import call_lines, request_from_inbox, trial_lines

    request = request_from_inbox(waiting)
    yield from call_lines(request, request.arguments, waiting.workspace, sys.stdout)
    if request.diff is not None:
        if request.output:
            yield from framed(request.output.removesuffix("\n"))
        yield from trial_lines(request, request.diff, sys.stdout)


@contextlib.contextmanager
def _inbox() -> Iterator[InboxFacade | None]:
    """A context manager that cleans up after dead hosts, and yields the inbox; None if there is no state home yet."""
    from haft.service import InboxFacade, has_state

    home = state_home()
    if not has_state(home):
        yield None
        return
    recover(home)
    with contextlib.closing(InboxFacade(home)) as inbox:
        yield inbox


def _complete(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion: the waiting calls."""
    from click.shell_completion import CompletionItem

    from haft.service import InboxFacade, has_state

    try:
        home = state_home()
        if not has_state(home):
            return []
        with contextlib.closing(InboxFacade(home)) as inbox:
            found = inbox.waiting()
    except (HaftError, OSError):
        return []
    matching = [one for one in found if one.id.startswith(incomplete)][-MOST:]
    return [CompletionItem(one.id, help=f"{one.shown['tool']}: {one.shown['reason']}") for one in matching]


digest_option = click.option(
    "--digest",
    metavar="DIGEST",
    help="Answer only if the request still shows what you saw: the field `digest` of `haft inbox --json`.",
)


@click.command("approve", cls=CommandWithNetwork)
@click.argument(
    "name",
    metavar="ID",
    shell_complete=_complete,
    help="The id of the request or of its run, or the beginning of the id; or the id of a batch, for all its calls.",
)
@click.option("--thread", "for_thread", is_flag=True, help="Also approve later matching calls in the same thread.")
@click.option("--always", "for_good", is_flag=True, help="Also approve later matching calls in the same workspace.")
@click.option(
    "--as",
    "choice",
    metavar="N",
    type=click.IntRange(min=1),
    help="If `haft inbox` shows several rules: use rule number N.",
)
@click.option(
    "--args",
    metavar="JSON|@FILE|-",
    help="Approve the call with these arguments instead of its own. For a question: the values of its form.",
)
@network_option("Let the call use the whole network. The call then has an empty /tmp.")
@click.option("--scratch", is_flag=True, help="With --network: let the call use the /tmp of its thread.")
@click.option(
    "--read", metavar="PATH", multiple=True, type=click.Path(), help="Let the call also read PATH (repeatable)."
)
@click.option(
    "--write", metavar="PATH", multiple=True, type=click.Path(), help="Let the call also write to PATH (repeatable)."
)
@click.option(
    "--env", metavar="NAME", multiple=True, help="Pass this environment variable on to the call (repeatable)."
)
@click.option(
    "--path",
    "paths",
    metavar="PATH",
    multiple=True,
    type=click.Path(),
    help="Of a trial run: apply only the changes of PATH, and of everything below it (repeatable).",
)
@click.option("--message", metavar="TEXT", help="Your reason, for the audit log.")
@digest_option
@passphrase_option
@click.pass_context
def approve_request(
    context: click.Context,
    name: str,
    for_thread: bool,
    for_good: bool,
    choice: int | None,
    args: str | None,
    network: Network,
    scratch: bool,
    read: tuple[str, ...],
    write: tuple[str, ...],
    env: tuple[str, ...],
    paths: tuple[str, ...],
    message: str | None,
    digest: str | None,
    passphrase: str | None,
) -> None:
    """Approve one waiting call, all waiting calls of a batch, or one waiting connection. With `--thread` or `--always`,
    haft also approves later calls that match the rule shown by `haft inbox`. With `--args`, haft validates the new
    arguments and decides about the call again.

    If the changes of a trial run wait, haft applies them. With `--path`, haft applies only a part of them, and the rest
    stays held.

    `--network`, `--scratch`, `--read` and `--write` open the sandbox for this call only. `--env` passes on a variable
    of the process that made the call. With `--thread` or `--always`, later matching calls get this variable too.

    If a connection to a host waits, the call may use this host and port until it ends. With `--thread` or `--always`,
    later calls that are approved may use them too, as the rule shown by `haft inbox` says.

    If a tool asks a question, `--args` has the values of the form, as JSON. `haft reject` declines to answer.

    If the process that made the call has ended, haft keeps your approval for the next identical call."""
    from haft.surfaces.cli.words.json_input import read_arguments
    from haft.surfaces.cli.words.use_options import granted_places, granted_variables

    require_person("approve")
    if for_thread and for_good:
        raise BadUsage("`--thread` and `--always` cannot be used together")
    longer = for_thread or for_good or choice is not None
    if longer and args is not None:
        raise BadUsage("`--args` approves one call: it cannot be used with --thread, --always or --as")
    _answer(
        context,
        name,
        approved=True,
        scope="thread" if for_thread else "always" if longer else "once",
        allow=(choice or 1) - 1,
        arguments=None if args is None else read_arguments(args),
        grants=Grants(
            network=network,
            scratch=scratch,
            env=granted_variables(env),
            read=granted_places("--read", read),
            write=granted_places("--write", write),
        ),
        message=message,
        paths=paths,
        digest=digest,
        passphrase=passphrase,
        choice_is_open=longer and choice is None,
    )


@click.command("reject", cls=HaftCommand)
@click.argument(
    "name",
    metavar="ID",
    shell_complete=_complete,
    help="The id of the request or of its run, or the beginning of the id; or the id of a batch, for all its calls.",
)
@click.option("--message", metavar="TEXT", help="Your reason. It becomes part of the outcome, which the model reads.")
@digest_option
@passphrase_option
@click.pass_context
def reject_request(
    context: click.Context, name: str, message: str | None, digest: str | None, passphrase: str | None
) -> None:
    """Reject a waiting call, all waiting calls of a batch, or a waiting connection of a call."""
    require_person("reject")
    _answer(context, name, approved=False, message=message, digest=digest, passphrase=passphrase)


def _answer(
    context: click.Context, name: str, *, passphrase: str | None, choice_is_open: bool = False, **answer: Any
) -> None:
    from haft.service import check_together

    options = context.find_object(Globals) or Globals()
    tell_what_is_logged(options)
    with _inbox() as inbox:
        if inbox is None:
            raise UnknownRequest(name)
        found = inbox.find_all(name)
        check_together(found, answer)
        waiting = found[0]
        if answer.get("paths"):
            answer["paths"] = [in_workspace(path, waiting.workspace) for path in answer["paths"]]
        if "grants" in answer and answer["grants"].network:
            _require_grantable(waiting)
        if answer.get("arguments") is not None:
            _require_fit(waiting, answer["arguments"], options)
        _require_choice(waiting, is_open=choice_is_open)
        signer = asked_signer(inbox.secret, passphrase)
        given = [_give_answer(inbox, each, options, signer, **answer) for each in found]
    if options.json:
        facts([shape for shape, _ in given] if is_batch_id(name) else given[0][0])
    failure = next((failure for _, failure in given if failure is not None), None)
    if failure is not None:
        context.exit(EXIT_CODES.get(failure["code"], 1))


def _give_answer(
    inbox: InboxFacade,
    waiting: Waiting,
    options: Globals,
    signer: Signer | None,
    *,
    repeats_call: bool = True,
    **answer: Any,
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Answer a request, and print for people what follows from it; with `repeats_call`, also the call that is approved.
    Returns the answer as JSON, and the error if the changes of a trial run could not be applied or dropped."""
    from haft.service import this_user

    reply = inbox.answer(waiting, who=this_user(), signer=signer, **answer)
    held_changes = _settle(reply, options) if reply.settle else None
    shape = {**reply.to_json(), "scope": answer.get("scope", "once"), "settled": held_changes}
    if not options.json:
        lines([one_line(_reply_line(reply, answer, held_changes))])
        if repeats_call and not options.quiet and answer["approved"]:
            for line in _approved_lines(waiting, answer):
                sys.stderr.write(f"{line}\n")
    if held_changes is not None and held_changes["error"] is not None:
        complain(held_changes["error"]["message"], held_changes["error"]["hint"])
        return shape, dict(held_changes["error"])
    return shape, None


def _require_grantable(waiting: Waiting) -> None:
    """Raise `BadUsage` if the configuration of the waiting call's workspace never grants the network."""
    from haft.service import load_config, never_granted

    source = load_config(waiting.workspace, os.environ, trust_home=state_home().path).never_network
    if source is not None:
        raise never_granted(source)


def _require_fit(waiting: Waiting, arguments: Mapping[str, Any], options: Globals) -> None:
    """Raise `InvalidArguments` if the arguments do not fit the schema of the waiting call's tool. If only the process
    that asked knows the tool, nothing is checked here: that process checks the arguments."""
    if waiting.shown.get("question") is not None:
        return  # The values of a form; `InboxFacade.answer` checks them.
    from haft.service import check_arguments
    from haft.surfaces.cli.commands.tools import listings

    tool = waiting.shown["tool"]
    spec = next((one.spec for one in listings(options) if one.spec.name == tool and one.enabled), None)
    if spec is not None and not spec.preprocesses:
        check_arguments(spec, arguments)


def _require_choice(waiting: Waiting, *, is_open: bool) -> None:
    offered = waiting.shown["toAllow"]
    if waiting.shown.get("connection") is not None:
        return  # The first rule is the narrowest, and the reply says which one it is.
    if is_open and len(offered) > 1:
        listed = "; ".join(f"{number}: {one_line(one['label'])}" for number, one in enumerate(offered, 1))
        raise BadUsage(f"{len(offered)} rules are offered: choose one with `--as N`", hint=listed)


def _approved_lines(waiting: Waiting, answer: Mapping[str, Any]) -> Iterator[str]:
    """The approved call as lines for a person: the arguments in full, and the grants of the answer."""
    from haft.surfaces.text.requests import call_lines, request_from_inbox

    request = request_from_inbox(waiting)
    if request.question is not None:
        return
    others = answer["arguments"]
    reason = request.reason if others is None else "approved with other arguments; haft decides about them again"
    arguments = request.arguments if others is None else others
    yield from call_lines(replace(request, reason=reason), arguments, waiting.workspace, verb="needed approval")
    grants: Grants = answer["grants"]
    if grants.network:
        yield f"  and {network_words(grants.network)}"
    if grants.scratch:
        yield "  and its thread's /tmp"
    for name in grants.env:
        yield f"  and the variable {one_line(name)}"
    for place in grants.read:
        yield f"  and reading {one_line(place)}"
    for place in grants.write:
        yield f"  and writing to {one_line(place)}"


def _reply_line(reply: Reply, answer: Mapping[str, Any], held_changes: Mapping[str, Any] | None) -> str:
    waiting = reply.waiting
    held = waiting.shown.get("connection")
    tool = waiting.shown["tool"]
    if held is not None:
        tool = f"the connection of {tool} to {held['host']}:{held['port']}"
    if waiting.shown.get("question") is not None:
        return f"{waiting.id}: the question of {tool} is {'answered' if reply.approved else 'declined'}"
    if not reply.approved:
        after = "" if reply.host_lives or reply.is_paused or waiting.tried else "; the process that asked has ended"
        return f"{waiting.id}: {tool} is rejected{after}"
    longer = ""
    if answer["scope"] != "once":
        label = waiting.shown["toAllow"][answer["allow"]]["label"]
        if answer["grants"].env:
            label += f", with {', '.join(answer['grants'].env)}"
        longer = f", and from now on {'in its thread' if answer['scope'] == 'thread' else 'always'}: {label}"
    if reply.paths:
        longer = " in part"
    if held_changes is not None:
        changes = "the chosen changes" if reply.paths else "its changes"
        return f"{waiting.id}: {tool} is approved{longer}; {changes} are {held_changes['state']}"
    if reply.host_lives:
        return f"{waiting.id}: {tool} is approved{longer}; {waiting.run} goes on"
    if reply.is_paused:
        return f"{waiting.id}: {tool} is approved{longer}; {waiting.run} goes on when its program resumes it"
    return f"{waiting.id}: {tool} is approved{longer}; the process that asked has ended: the next call like it passes"


def _settle(reply: Reply, options: Globals) -> dict[str, Any]:
    """Apply or discard the changes of a trial run whose host has ended. Returns the result as JSON: the run that did
    so, the state of the changes, and the error."""
    import asyncio

    from haft.service import ToolService
    from haft.surfaces.cli.person.change_run import wait_for_changes

    async def perform() -> dict[str, Any]:
        async with ToolService.open(reply.waiting.workspace) as service:
            changes, run_id = service.changes, reply.waiting.run
            run = changes.apply(run_id, paths=reply.paths) if reply.approved else changes.drop(run_id)
            outcome = await wait_for_changes(run, options)
        state = "held" if outcome.error is not None else "committed" if reply.approved else "discarded"
        error = None if outcome.error is None else outcome.error.to_json()
        return {"run": outcome.run_id, "state": state, "error": error}

    return asyncio.run(perform())
