"""`haft tokens`: the tokens with which agents and people reach haft over HTTP, one for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from haft.contracts import BadUsage, iso_time
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import require_person
from haft.surfaces.cli.screen.printing import data, facts, lines, say, table
from haft.surfaces.cli.words.times import clock, duration, since
from haft.surfaces.text.home import state_home

if TYPE_CHECKING:
    from haft.service import ClientToken, Kind, Role, Sessions, Tokens

WITH: Final = {"link": "a link", "token": "a token", "oidc": "their account"}


def _tokens() -> Tokens:
    from haft.service import Tokens

    return Tokens(state_home())


def complete_clients(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion: who has a token."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(each.name) for each in _tokens().all() if each.name.startswith(incomplete)]


@click.command("add", cls=HaftCommand)
@click.argument(
    "name", help="A name for the agent or person, such as `codex`. Runs and answers are recorded under this name."
)
@click.option("--agent", "kind", flag_value="agent", default="agent", help="The token of an agent (the default).")
@click.option("--person", "kind", flag_value="person", help="The token of a person.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE",
    help="What the token allows: `reader`, `caller` (the default), `approver` or `operator`. Repeatable.",
)
@click.option("--expires", metavar="DURATION", help="How long the token is good, such as `12h` or `30d`.")
@click.option("--workspace-name", "workspaces", multiple=True, metavar="NAME", help="Only this workspace. Repeatable.")
@click.option("--tools", multiple=True, metavar="GLOB", help="Only tools with such names. Repeatable.")
@click.pass_obj
def add_token(
    options: Globals,
    name: str,
    kind: Kind,
    roles: tuple[Role, ...],
    expires: str | None,
    workspaces: tuple[str, ...],
    tools: tuple[str, ...],
) -> None:
    """Make a token for an agent or a person, and print it. haft stores only a digest of the token, so it cannot print
    the token again. docs/guides/people.md says what each role may do."""
    from haft.service import this_user

    require_person("tokens add")
    made, token = _tokens().add(
        name,
        this_user(),
        kind=kind,
        roles=roles or ("caller",),
        workspaces=workspaces,
        tools=tools,
        seconds=None if expires is None else duration(expires),
    )
    if options.json:
        facts({**made.to_json(), "token": token})
        return
    data(f"{token}\n")
    if not options.quiet:
        say(f"this is the token of {kind} `{name}`: copy it now, haft cannot show it again")
        say("programs send it in each request, in the header `Authorization: Bearer TOKEN`")


@click.command("list", cls=HaftCommand)
@click.pass_obj
def list_tokens(options: Globals) -> None:
    """List who has a token. The tokens themselves are not stored."""
    tokens = _tokens()
    found = [(each, tokens.last_used(each)) for each in tokens.all()]
    if options.json:
        facts([{**each.to_json(), "lastUsedAt": None if used is None else iso_time(used)} for each, used in found])
        return
    table([_row(each, used) for each, used in found], style_first="bold")
    if not found and not options.quiet:
        say("nobody has a token: `haft tokens add NAME` makes one")


def _row(token: ClientToken, used: float | None) -> tuple[str, ...]:
    identity = token.identity()
    expires = "" if token.expires_at is None else f"good until {clock(token.expires_at)}"
    return (
        token.name,
        token.kind,
        ", ".join(identity.to_json()["roles"]),
        "expired" if identity.is_expired() else expires,
        "never used" if used is None else f"used {clock(used)}",
        f"made by {token.by} {clock(since(token.created_at))}",
    )


@click.command("revoke", cls=HaftCommand)
@click.argument("name", shell_complete=complete_clients, help="Whose token.")
@click.pass_obj
def revoke_token(options: Globals, name: str) -> None:
    """Make a token invalid. Running servers refuse it from now on, and end its open requests and its sessions in
    browsers."""
    from haft.service import this_user

    gone = _tokens().revoke(name, this_user())
    if options.json:
        facts({**gone.to_json(), "revoked": True})
    else:
        lines([f"the token of `{name}` is revoked"])


@click.command("link", cls=HaftCommand)
@click.argument(
    "address",
    default="http://127.0.0.1:8750",
    help="Where the server is, as `haft serve http` says. Default: http://127.0.0.1:8750.",
)
@click.pass_obj
def make_link(options: Globals, address: str) -> None:
    """Print a link that signs you in to a running server, as operator. It is good once, and for ten minutes."""
    from haft.service import SignInLinks, this_user

    require_person("tokens link")
    link = SignInLinks(state_home()).address(address, this_user())
    if options.json:
        facts({"link": link})
    else:
        data(f"{link}\n")


@click.command("sessions", cls=HaftCommand)
@click.option("--end", "ended", metavar="SESSION", help="End this session. Its open requests end, too.")
@click.pass_obj
def list_sessions(options: Globals, ended: str | None) -> None:
    """List who is signed in to servers in a browser, or end a session."""
    from haft.service import Sessions

    sessions = Sessions(state_home())
    if ended is None:
        _tell_sessions(options, sessions)
        return
    gone = sessions.end(ended)
    if gone is None:
        raise BadUsage(f"there is no session `{ended}`", hint="`haft tokens sessions` lists the sessions")
    if options.json:
        facts({**gone.to_json(), "ended": True})
    else:
        lines([f"the session of `{gone.name}` has ended"])


def _tell_sessions(options: Globals, sessions: Sessions) -> None:
    found = sessions.all()
    if options.json:
        facts([each.to_json() for each in found])
        return
    rows = [
        (each.id, each.name, f"with {WITH[each.how]}", f"{clock(each.created_at)} until {clock(each.expires_at)}")
        for each in found
    ]
    table(rows, style_first="bold")
    if not found and not options.quiet:
        say("nobody is signed in")
