"""`haft connect [AGENT]`: writes haft into the configuration of an agent, or takes it out again. Shows the change
first, and makes it after a yes. Without an agent, lists the agents and how well each is covered."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from haft.contracts import BadUsage, HaftError, Rejected
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import workspace_of, workspace_quietly
from haft.surfaces.cli.screen.printing import data, facts, lines, say, table, warn
from haft.surfaces.cli.words.hook_notes import hook_notes, version_warning
from haft.surfaces.text.home import state_home
from haft.surfaces.text.terminal import framed, is_terminal, styled, visible
from haft.values import replace as evolve

if TYPE_CHECKING:
    from haft.connecting import Agent, Choice, Examined, FileChange, Launch, Plan, Record

ADDRESS: Final = "127.0.0.1:8000"
PLACEHOLDER: Final = "haft_TOKEN"
"""What is shown in place of a token that is made after the yes."""
START: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../hook/start.py")


def complete_agents(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion: the agents."""
    from click.shell_completion import CompletionItem

    from haft.connecting import AGENTS

    return [CompletionItem(name, help=agent.title) for name, agent in AGENTS.items() if name.startswith(incomplete)]


@click.command("connect", cls=HaftCommand)
@click.argument(
    "name",
    metavar="[AGENT]",
    required=False,
    shell_complete=complete_agents,
    help="claude-code, codex, opencode, gemini, antigravity, cursor, vscode or amp. Default: list all of them.",
)
@click.option("--hooks", is_flag=True, help="Also let haft decide about the agent's own tools, and record them.")
@click.option("--replace", is_flag=True, help="Also switch the agent's own shell and file tools off.")
@click.option(
    "--http", is_flag=True, help="Let the agent use a running `haft serve mcp --http`, with a token of its own."
)
@click.option("--address", metavar="HOST:PORT", help=f"With `--http`: where haft listens. Default: {ADDRESS}.")
@click.option(
    "--project", is_flag=True, help="Write the files that are shared with the project, without a path or a token."
)
@click.option("--print", "only_print", is_flag=True, help="Print the change, and change nothing.")
@click.option("--remove", is_flag=True, help="Take the connection back; with `--hooks` or `--replace`, only that part.")
@click.option("--yes", "is_confirmed", is_flag=True, help="Make the change without a question.")
@click.pass_obj
def connect_agent(
    options: Globals,
    name: str | None,
    hooks: bool,
    replace: bool,
    http: bool,
    address: str | None,
    project: bool,
    only_print: bool,
    remove: bool,
    is_confirmed: bool,
) -> None:
    """Write haft into the configuration of an agent, as an MCP server. haft shows the change and asks you first. All
    other entries, comments and blanks in the files stay as they are.

    Without an agent, list the agents: which are installed, which are connected, and how well each is covered."""
    from haft.connecting import Choice, agent_named

    if name is None:
        if hooks or replace or http or address or project or only_print or remove:
            raise BadUsage("which agent?", hint="`haft connect` lists the agents")
        _overview(options)
        return
    if address and not http:
        raise BadUsage("`--address` needs `--http`")
    if remove and http:
        raise BadUsage("`--remove` and `--http` cannot be used together", hint="`--remove` also revokes the token")
    choice = Choice("project" if project else "user", workspace_of(options) if project else None, hooks, replace)
    agent = agent_named(name)
    if remove:
        _remove(agent, choice, options, only_print=only_print, is_confirmed=is_confirmed)
    else:
        where = (address or ADDRESS) if http else None
        _connect(agent, choice, where, options, only_print=only_print, is_confirmed=is_confirmed)


def launch_words(scope: str) -> Launch:
    """The words that start haft, as this haft would write them."""
    from haft.connecting import Launch, launcher_path
    from haft.service import default_home

    if scope == "project":
        return Launch(("haft", "serve", "mcp"), ("haft", "hook"))
    beside = os.path.join(os.path.dirname(sys.executable), "haft")
    found = beside if os.access(beside, os.X_OK) else shutil.which("haft")
    program = (os.path.abspath(found),) if found else (sys.executable, "-m", "haft")
    home = state_home().path
    # Agents may start programs with few variables, so a state home in another place must be written down.
    usual = default_home({"HOME": os.environ.get("HOME", "")})
    env = {} if home == usual else {"HAFT_HOME": home}
    hook = (sys.executable, "-I", "-S", os.path.normpath(START))
    return Launch((*program, "serve", "mcp"), hook, env, shell=launcher_path(home))


def _connect(
    agent: Agent, choice: Choice, where: str | None, options: Globals, *, only_print: bool, is_confirmed: bool
) -> None:
    from haft.connecting import Connections

    connections = Connections(state_home(), os.environ)
    launch = launch_words(choice.scope)
    if where is not None:
        token = None if choice.scope == "project" else _present_token(agent) or PLACEHOLDER
        launch = evolve(launch, url=f"http://{where}/mcp", token=token)
    name = agent.id if launch.token is not None else None
    plan = connections.plan(agent, choice, launch, name)
    notes = _notes(plan, launch)
    if plan.choice.hooks and (warning := version_warning(agent)) is not None:
        notes.insert(0, warning) if options.json else warn(warning)
    if only_print:
        _print(plan, notes, options)
        return
    _check_person("haft connect")
    if plan.is_change and not is_confirmed:
        _ask(plan, notes, f"Connect {agent.title}?", f"{agent.title} was not connected")
    if launch.token == PLACEHOLDER:
        launch = evolve(launch, token=_new_token(agent))
        plan = connections.plan(agent, choice, launch, name)
    connections.carry_out(plan)
    _tell(plan, options, notes, "connected" if plan.is_change else "connected already")


def _remove(agent: Agent, choice: Choice, options: Globals, *, only_print: bool, is_confirmed: bool) -> None:
    from haft.connecting import Connections

    connections = Connections(state_home(), os.environ)
    before = connections.record(agent, choice)
    plan = connections.plan_removal(agent, choice, launch_words(choice.scope))
    notes = [] if plan.was_recorded else ["haft has no record of this connection: it takes out what it recognizes"]
    if only_print:
        _print(plan, notes, options)
        return
    _check_person("haft connect --remove")
    if plan.is_change and not is_confirmed:
        _ask(plan, notes, f"Take haft out of {agent.title}?", f"{agent.title} stays connected")
    connections.carry_out(plan)
    if before is not None and before.token is not None and plan.record is None:
        _revoke(before)
    _tell(
        plan,
        options,
        notes,
        "no longer connected" if plan.is_change else "not connected: nothing to take back",
    )


def _check_person(what: str) -> None:
    from haft.service import refuse_clients

    refuse_clients(state_home(), what)


def _present_token(agent: Agent) -> str | None:
    """The token in the agent's configuration, if it still works."""
    from haft.connecting import present_token
    from haft.service import Tokens

    token = present_token(agent, os.environ)
    found = None if token is None else Tokens(state_home()).find(token)
    return token if found is not None and found.name == agent.id else None


def _new_token(agent: Agent) -> str:
    from haft.service import Tokens, this_user

    tokens = Tokens(state_home())
    if any(each.name == agent.id for each in tokens.all()):
        tokens.revoke(agent.id, this_user())
    return tokens.add(agent.id, this_user())[1]


def _revoke(record: Record) -> None:
    from haft.service import Tokens, this_user

    with contextlib.suppress(BadUsage):  # Somebody has revoked it already.
        Tokens(state_home()).revoke(str(record.token), this_user())


def _notes(plan: Plan, launch: Launch) -> list[str]:
    """What the person must know about this connection, in sentences."""
    from haft.connecting import is_installed

    agent, choice = plan.agent, plan.choice
    notes = []
    if not is_installed(agent, os.environ):
        notes.append(f"{agent.title} was not found on PATH; its configuration can be written all the same")
    if agent.version is None:
        notes.append(f"this form follows the documentation of {agent.title}; it was not tried with the program")
    if launch.url is not None:
        notes.append(f"haft must run there: `haft serve mcp --http {launch.url.split('/')[2]}`")
    if launch.token == PLACEHOLDER:
        notes.append(f"a token for the client `{agent.id}` is made, and an older one is revoked")
    if choice.scope == "project":
        notes.append("each person needs `haft` on PATH; haft's tools need the agent's own approval there")
        if launch.url is not None:
            notes.append("each person sets the variable HAFT_TOKEN to a token of their own: `haft tokens add NAME`")
    if choice.replace and agent.replacing is not None:
        notes += [f"stays: {each}" for each in agent.replacing.left]
    if choice.hooks and agent.hooks is not None:
        notes += hook_notes(plan)
    return notes


def _word(change: FileChange) -> str:
    return "new" if change.before.content is None else "removed" if change.after is None else "changed"


def _print(plan: Plan, notes: Sequence[str], options: Globals) -> None:
    if options.json:
        facts(_shape(plan, notes, is_done=False))
        return
    for change in plan.changes:
        if change.is_change:
            data(f"{change.path} ({_word(change)})\n")
            data("".join(f"{visible(line)}\n" for line in change.difference(_masked(change))))
    if not plan.is_change:
        lines([f"{plan.agent.title}: nothing would change"])
    for note in notes:
        say(f"note: {note}")


def _masked(change: FileChange) -> list[str]:
    """The tokens of haft in a file. They are not shown."""
    texts = [part.decode("utf-8", "replace") for part in (change.before.content, change.after) if part is not None]
    return [token for text in texts for token in re.findall(r"haft_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", text)]


def _ask(plan: Plan, notes: Sequence[str], question: str, rejected: str) -> None:
    from haft.surfaces.cli.person.line_input import confirm

    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise Rejected(
            f"{rejected}: there is no terminal to ask at",
            hint="`--print` shows the change, and `--yes` makes it",
        )
    for change in plan.changes:
        if change.is_change:
            sys.stderr.write(styled(visible(f"{change.path} ({_word(change)})"), "bold", sys.stderr) + "\n")
            for line in framed("\n".join(change.difference(_masked(change)))):
                sys.stderr.write(f"{line}\n")
    for note in notes:
        say(f"note: {note}")
    if not asyncio.run(confirm(f"{question} [y/N] ")):
        raise Rejected(f"{rejected}: you rejected the change")


def _tell(plan: Plan, options: Globals, notes: Sequence[str], state: str) -> None:
    if options.json:
        facts(_shape(plan, notes, is_done=True))
        return
    lines(
        [
            f"{plan.agent.title} is {state}",
            *(f"  {_word(each)}: {each.path}" for each in plan.changes if each.is_change),
        ]
    )
    if options.quiet or not plan.is_change:
        return
    for note in notes:
        say(f"note: {note}")
    say(f"start {plan.agent.title} again: it reads its configuration only when it starts")


def _shape(plan: Plan, notes: Sequence[str], *, is_done: bool) -> dict[str, Any]:
    return {
        "agent": plan.agent.id,
        "scope": plan.choice.scope,
        "changed": plan.is_change and is_done,
        "files": [
            {"path": each.path, "state": _word(each), "diff": each.difference(_masked(each))}
            for each in plan.changes
            if each.is_change
        ],
        "parts": sorted({entry.part for entry in plan.record.entries}) if plan.record is not None else [],
        "notes": list(notes),
    }


def examined_agents(workspace: str | None) -> list[Examined]:
    """How each agent is connected: for the person, and for this workspace if something is written there."""
    from haft.connecting import AGENTS, Choice, examine
    from haft.service import Tokens

    tokens = Tokens(state_home())

    def is_valid(token: str) -> bool:
        return tokens.find(token) is not None

    found = [examine(agent, Choice(), launch_words("user"), os.environ, is_valid) for agent in AGENTS.values()]
    if workspace is not None:
        shared = [
            examine(agent, Choice("project", workspace), launch_words("project"), os.environ, is_valid)
            for agent in AGENTS.values()
        ]
        found += [each for each in shared if each.is_connected]
    return found


def _overview(options: Globals) -> None:
    try:
        workspace: str | None = workspace_quietly(options)
    except HaftError:
        workspace = None
    found = examined_agents(workspace)
    if options.json:
        facts([each.to_json() for each in found])
        return
    table(
        [
            (
                each.agent.id + (" (project)" if each.choice.scope == "project" else ""),
                "installed" if each.is_installed else "not found",
                _parts(each),
                "; ".join(each.coverage()) if each.is_connected else "",
            )
            for each in found
        ],
        style_first="bold",
        cut=False,
    )
    for each in found:
        for problem in each.problems:
            say(f"{each.agent.id}: {problem.detail}")
            say(f"  hint: {problem.hint}")
    if not options.quiet and not any(each.is_connected for each in found):
        say("`haft connect AGENT` connects one; `haft run -- PROGRAM` confines a whole agent without a connection")


def _parts(found: Examined) -> str:
    words = [
        name if state == "ok" else f"{name} ({state})"
        for name, state in (("MCP", found.server), ("hooks", found.hooks))
        if state != "none"
    ]
    if found.replaced:
        words.append("own tools off")
    return ", ".join(words) or "not connected"
