"""`haft store backup`, `restore` and `verify`: copies of the state home, and a check of all of it."""

from __future__ import annotations

import os

import click

from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import recover
from haft.surfaces.cli.screen.printing import complain, facts, lines, say, warn
from haft.surfaces.text.home import state_home
from haft.surfaces.text.terminal import visible

_MANY = 20


@click.command("backup", cls=HaftCommand)
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
@click.pass_obj
def backup_store(options: Globals, directory: str) -> None:
    """Copy the state home into the directory DIR, while hosts run. If DIR has a backup already, only what has changed
    is copied, and the new backup takes the place of the old one. A backup that is interrupted leaves the old one as it
    was. DIR contains secrets: tokens, and contents of files."""
    from haft.service import format_bytes, make_backup

    done = make_backup(state_home(), directory)
    if options.json:
        facts(done.to_json())
        return
    files, unchanged = done.copied.files, done.copied.linked
    lines([visible(f"backup of {done.made_at} in {done.directory}")])
    lines([f"{files} files copied ({format_bytes(done.copied.bytes)}), {unchanged} were there already"])


@click.command("restore", cls=HaftCommand)
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--force", is_flag=True, help="Restore even if there is a state home. It is kept under another name.")
@click.pass_obj
def restore_store(options: Globals, directory: str, force: bool) -> None:
    """Make the state home of the backup in the directory DIR. The workspaces are not part of a backup: their files stay
    as they are. Set HAFT_HOME to restore to another place."""
    from haft.service import restore_backup

    home = state_home()
    done = restore_backup(directory, home, force=force)
    recover(home)
    if options.json:
        facts(done.to_json())
    else:
        lines([visible(f"{done.home} is the backup of {done.made_at}")])
        if done.replaced is not None:
            lines([visible(f"the state home that was there is now {done.replaced}")])
        for run in done.lost[:_MANY]:
            lines([f"{run} cannot be undone any more: its replaced files are not in the backup"])
        if len(done.lost) > _MANY:
            lines([f"and {len(done.lost) - _MANY} more runs cannot be undone any more"])
    if not options.quiet:
        say("`haft store verify` checks all of it")


@click.command("verify", cls=HaftCommand)
@click.pass_context
def verify_stored(context: click.Context) -> None:
    """Check the whole state home: the database, each kept content against its digest, the audit log, and that each run
    which can be undone really can. Changes nothing. If something is wrong, the exit code is 1."""
    from haft.service import has_state, verify_store

    options = context.find_object(Globals) or Globals()
    home = state_home()
    if not has_state(home):
        if options.json:
            facts(None)
        elif not options.quiet:
            say("nothing is kept yet")
        return
    recover(home)
    verdict = verify_store(home)
    if options.json:
        facts(verdict.to_json())
    else:
        runs = "1 run" if verdict.undoable == 1 else f"{verdict.undoable} runs"
        lines([f"{verdict.contents} contents, {verdict.records} records, {runs} to undo"])
        if verdict.intact:
            lines(["everything is intact"])
    for problem in verdict.problems:
        warn(visible(f"{problem.part}: {problem.what}"))
    if not verdict.intact:
        complain(f"the state home {os.path.abspath(home.path)} is not intact", "restore a backup, or ask `haft doctor`")
    context.exit(0 if verdict.intact else 1)
