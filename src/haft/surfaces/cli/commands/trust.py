"""`haft trust [DIR]`: shows the configuration file of a workspace and trusts it. Without trust, haft ignores settings
in this file that widen what tools may do. Also accepts a workspace that belongs to another user, and shows and trusts
the files that define types of sub-agents.

The file is shown whole the first time, and later as a diff from the trusted one. It is read once: the person sees
exactly the bytes whose digest is saved. Trust ends when the file changes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from haft.contracts import BadUsage, Rejected
from haft.surfaces.cli.globals import Globals, HaftCommand, checked_directory
from haft.surfaces.cli.place import require_person, workspace_of
from haft.surfaces.cli.screen.printing import facts, lines, say
from haft.surfaces.text.home import state_home
from haft.surfaces.text.terminal import framed, is_terminal, styled, visible

if TYPE_CHECKING:
    from haft.service import ConfigFile, Ignored, Proposal, TrustChange


@click.command("trust", cls=HaftCommand)
@click.argument(
    "directory", metavar="[DIR]", required=False, type=click.Path(), help="A workspace. Default: the nearest workspace."
)
@click.option("--revoke", "is_revoked", is_flag=True, help="Withdraw your trust in the file.")
@click.option(
    "--yes",
    "is_confirmed",
    is_flag=True,
    help="Trust the file without a question. Use this option only for a file that you have read.",
)
@click.pass_obj
def trust_workspace(options: Globals, directory: str | None, is_revoked: bool, is_confirmed: bool) -> None:
    """Trust the configuration file of a workspace, with its present content. Without trust, haft ignores the settings
    in this file that give tools more rights. haft shows the file and asks you. If you trusted an earlier version of the
    file, haft shows the difference. If sub-agents are enabled, this also applies to the files that define types of
    sub-agents."""
    if is_revoked and is_confirmed:
        raise BadUsage("`--revoke` and `--yes` cannot be used together")
    workspace = checked_directory(directory) if directory is not None else workspace_of(options)
    if is_revoked:
        _revoke(workspace, options)
    else:
        _trust(workspace, options, is_confirmed=is_confirmed)


def _revoke(workspace: str, options: Globals) -> None:
    from haft.service import TrustFacade

    changed = TrustFacade(workspace, state_home()).revoke()
    if options.json:
        facts(
            {
                "workspace": workspace,
                "file": None,
                "digest": None,
                "trusted": False,
                "changed": changed,
                "widens": [],
                "agents": [],
            }
        )
    else:
        lines([visible(f"{workspace} is {'no longer trusted' if changed else 'not trusted, and was not before'}")])


def _trust(workspace: str, options: Globals, *, is_confirmed: bool) -> None:
    from haft.service import TrustFacade, this_user

    require_person("trust")
    facade = TrustFacade(workspace, state_home())
    found = facade.look()
    widens, what = found.widens, found.what
    if found.counts:
        trusted = bool(widens) or found.stranger is not None or found.has_trusted_agents
        why = "is trusted already" if trusted else "needs no trust: it widens nothing, so all of it counts"
        if options.json:
            facts(_shape(found, None, is_trusted=trusted, changed=False))
        else:
            lines([visible(f"{what} {why}")])
        return
    if not is_confirmed:
        _show_and_ask(found, facade.since_trusted(found))
    digest = facade.trust(found, this_user())
    if options.json:
        facts(_shape(found, digest, is_trusted=True, changed=True))
        return
    lines([visible(f"{one.path} is trusted as it is now") for one in found.agents])
    if found.file_counts:
        return
    as_it_is = "" if digest is None else f" as it is now (sha256 {digest})"
    lines([visible(f"{what} is trusted{as_it_is}"), *_widening(widens, "counts now")])
    lines(_kept_out(found.kept_out, "does not count"))


def _show_and_ask(found: Proposal, since: TrustChange) -> None:
    owner = None if found.stranger is None else found.stranger.sentence()
    _require_terminal(found.what)
    if not found.file_counts:
        _show(found.what, found.file, owner, since.difference, changed=since.was_trusted)
    for one in found.agents:
        _show_text(one.path, one.data.decode("utf-8", "backslashreplace"))
    new = () if found.file_counts else since.new
    for line in (*_widening(new, "would count"), *_kept_out(found.kept_out, "would not count")):
        say(line)
    if not found.file_counts and len(since.new) < len(found.widens):
        say(f"and {len(found.widens) - len(since.new)} more that counted before the file changed")
    things = len(found.agents) + (not found.file_counts)
    is_file = found.file_counts or found.file is not None
    _ask(found.what, "these files" if things > 1 else "this file" if is_file else "this workspace")


def _show(what: str, file: ConfigFile | None, owner: str | None, difference: Sequence[str], *, changed: bool) -> None:
    """Show the file, or its difference from the trusted one."""
    whole = "" if file is None else file.data.decode("utf-8", "backslashreplace")
    _show_text(what, "\n".join(difference) or whole)
    if owner is not None:
        say(owner)
    if changed:
        say(f"it has changed since you trusted it{': this is the difference' if difference else ''}")


def _show_text(what: str, text: str) -> None:
    sys.stderr.write(styled(visible(what), "bold", sys.stderr) + "\n")
    text = text.removesuffix("\n")
    for line in framed(text) if text else ():
        sys.stderr.write(f"{line}\n")


def _require_terminal(what: str) -> None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise Rejected(
            f"{what} is not trusted: there is no terminal to ask at",
            hint="read it, then `haft trust --yes`",
        )


def _ask(what: str, things: str) -> None:
    """Ask for trust. Raises `Rejected` if the answer is not yes."""
    import asyncio

    from haft.surfaces.cli.person.line_input import confirm

    if not asyncio.run(confirm(f"Trust {things} as {'they are' if things.endswith('s') else 'it is'} now? [y/N] ")):
        raise Rejected(f"{what} is not trusted: you rejected it")


def _widening(widens: Sequence[Ignored], word: str) -> list[str]:
    return [visible(f"{word}: {one.assignment()} ({one.source})") for one in widens]


def _kept_out(kept_out: Sequence[Ignored], word: str) -> list[str]:
    return [visible(f"{word}: {one.assignment()} ({one.source}): {one.why}") for one in kept_out]


def _shape(found: Proposal, digest: str | None, *, is_trusted: bool, changed: bool) -> dict[str, Any]:
    return {
        "workspace": found.workspace,
        "file": None if found.file is None else found.file.path,
        "digest": digest,
        "trusted": is_trusted,
        "changed": changed,
        "widens": [one.to_json() for one in found.widens],
        "agents": [one.path for one in found.agents],
    }
