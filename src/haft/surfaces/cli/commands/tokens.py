"""`haft tokens`: the tokens with which MCP clients reach `haft serve mcp --http`, one for each client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import require_person
from haft.surfaces.cli.screen.printing import data, facts, lines, say, table
from haft.surfaces.cli.words.times import clock, since
from haft.surfaces.text.home import state_home

if TYPE_CHECKING:
    from haft.service import Tokens


def _tokens() -> Tokens:
    from haft.service import Tokens

    return Tokens(state_home())


def complete_clients(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion: the clients that have a token."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(each.name) for each in _tokens().all() if each.name.startswith(incomplete)]


@click.command("add", cls=HaftCommand)
@click.argument(
    "name", help="A name for the client, such as `codex`. Its runs and answers are recorded under this name."
)
@click.pass_obj
def add_token(options: Globals, name: str) -> None:
    """Make a token for a client, and print it. haft stores only a digest of the token, so it cannot print the token
    again."""
    from haft.service import this_user

    require_person("tokens add")
    made, token = _tokens().add(name, this_user())
    if options.json:
        facts({**made.to_json(), "token": token})
        return
    data(f"{token}\n")
    if not options.quiet:
        say(f"this is the token of the client `{name}`: copy it now, haft cannot show it again")
        say("the client sends it in each request, in the header `Authorization: Bearer TOKEN`")


@click.command("list", cls=HaftCommand)
@click.pass_obj
def list_tokens(options: Globals) -> None:
    """List the clients that have a token. The tokens themselves are not stored."""
    found = _tokens().all()
    if options.json:
        facts([each.to_json() for each in found])
        return
    table([(each.name, clock(since(each.created_at)), f"made by {each.by}") for each in found], style_first="bold")
    if not found and not options.quiet:
        say("no client has a token: `haft tokens add NAME` makes one")


@click.command("revoke", cls=HaftCommand)
@click.argument("name", shell_complete=complete_clients, help="A client.")
@click.pass_obj
def revoke_token(options: Globals, name: str) -> None:
    """Make the token of a client invalid. A running server refuses the client from now on, and ends its open
    requests."""
    from haft.service import this_user

    gone = _tokens().revoke(name, this_user())
    if options.json:
        facts({**gone.to_json(), "revoked": True})
    else:
        lines([f"the token of the client `{name}` is revoked"])
