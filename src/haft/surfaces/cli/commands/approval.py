"""`haft approval secret`: sets, changes or removes the passphrase that answers from other processes then need."""

from __future__ import annotations

import click

from haft.contracts import BadUsage, Rejected
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.person.passphrase import read_passphrase
from haft.surfaces.cli.place import require_person
from haft.surfaces.cli.screen.printing import facts, lines, say
from haft.surfaces.text.home import state_home


@click.command("secret", cls=HaftCommand)
@click.option("--remove", "is_removed", is_flag=True, help="Remove the passphrase. This needs the passphrase.")
@click.option("--show", "is_shown", is_flag=True, help="Only say whether a passphrase is set.")
@click.option(
    "--old", metavar="FILE|-", help="Read the present passphrase from a file; - is stdin. Default: haft asks."
)
@click.option("--new", metavar="FILE|-", help="Read the new passphrase from a file; - is stdin. Default: haft asks.")
@click.pass_obj
def set_secret(options: Globals, is_removed: bool, is_shown: bool, old: str | None, new: str | None) -> None:
    """Set a passphrase for your answers, or change it. From then on, `haft approve` and `haft reject` ask for it, and
    an answer that a program writes without it does not count. Answers through an agent's own dialogue do not count
    either. The prompt of `haft tools use` asks for no passphrase.

    A process of haft that runs already, such as `haft serve mcp`, keeps to what was set when it started: restart your
    agents. Remembered answers from before do not count while a passphrase is set."""
    from haft.service import ApprovalSecret

    secret = ApprovalSecret(state_home())
    if is_shown:
        if is_removed or old is not None or new is not None:
            raise BadUsage("`--show` cannot be used with other options")
        _tell(options, is_set=secret.verifier() is not None, changed=False)
        return
    require_person("approval secret")
    if old == new == "-":
        raise BadUsage("`--old -` and `--new -` cannot be used together")
    is_set = secret.verifier() is not None
    if is_removed and not is_set:
        _tell(options, is_set=False, changed=False)
        return
    present = read_passphrase("Present approval passphrase: ", old) if is_set else None
    if present is not None:
        secret.signer(present)  # A wrong one is refused before a new one is asked for.
    if is_removed:
        secret.remove(present)
    else:
        secret.set(_new_passphrase(new), present)
    _tell(options, is_set=not is_removed, changed=True)


def _new_passphrase(source: str | None) -> str:
    given = read_passphrase("New approval passphrase: ", source)
    if source is None and read_passphrase("The same again: ") != given:
        raise Rejected("the two passphrases differ: nothing was changed")
    return given


def _tell(options: Globals, *, is_set: bool, changed: bool) -> None:
    if options.json:
        facts({"set": is_set, "changed": changed})
        return
    if not changed:
        lines([f"{'an' if is_set else 'no'} approval passphrase is set"])
        return
    lines([f"the approval passphrase is {'set' if is_set else 'removed'}"])
    if not options.quiet:
        say("processes of haft that run already keep to what was set when they started: restart your agents")
        if is_set:
            say("remembered answers from before do not count now: approve such calls again with --thread or --always")
