"""The entry of the command line: runs a command and turns whatever goes wrong into one sentence and an exit code.

Never a traceback: an error that nobody foresaw is said as such. A reader that went away (`haft log | head -1`) and
Ctrl-C are no errors and end quietly.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from haft.contracts import BadUsage, Bug, HaftError
from haft.surfaces.cli.app import COMPLETE_VARIABLE, HAFT
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.screen.printing import StdoutFailed, complain_of, facts
from haft.surfaces.cli.words.usage_words import worded

INTERRUPTED = 130
READER_GONE = 141
"""What a shell reports of a program that SIGPIPE ended."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    _open_missing_streams()
    code = run(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.stdout.flush()
    except OSError:  # it was said before, or there is nobody to tell
        code = code or _reader_gone()
    sys.exit(code)


def _refuse_inside() -> None:
    """A call has neither our state nor a person: whatever it asked of us would be another host's."""
    if os.environ.get("HAFT_INSIDE"):
        raise BadUsage(
            "haft is not called from inside of one of its own calls", hint="let the agent call the tool by itself"
        )


def _open_missing_streams() -> None:
    """A caller may have closed our streams; what is written there goes nowhere."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  for the life of the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  for the life of the process


def run(arguments: Sequence[str]) -> int:
    """Run the command line; its exit code."""
    said = Globals()
    try:
        completing = os.environ.get(COMPLETE_VARIABLE)
        if completing:
            from click.shell_completion import shell_complete

            return shell_complete(HAFT, {"obj": said}, "haft", COMPLETE_VARIABLE, completing)
        # Not `HAFT.main`: that has its own ways with pipes, Ctrl-C and exit codes.
        with HAFT.make_context("haft", list(arguments), obj=said) as context:
            _refuse_inside()
            HAFT.invoke(context)
        return 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except StdoutFailed as error:
        complain_of(error)
        _forget_stdout()
        return error.exit_code
    except HaftError as error:
        return _failed(error, arguments, said)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(f"{error.format_message()}\n")
        _answer(BadUsage(f"`{error.ctx.command_path}` needs a command"), arguments, said)
        return error.exit_code
    except click.ClickException as error:
        _failed(worded(error), arguments, said)
        return error.exit_code
    except BrokenPipeError:
        return _reader_gone()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except Exception as error:  # the last stop: a bug of ours, said in a sentence
        return _failed(Bug(error), arguments, said)


def _failed(error: HaftError, arguments: Sequence[str], said: Globals) -> int:
    """A failure, in a sentence for people and as data for programs; the exit code."""
    complain_of(error)
    try:
        _answer(error, arguments, said)
    except BrokenPipeError:
        _forget_stdout()
    except StdoutFailed as gone:
        complain_of(gone)
        _forget_stdout()
    return error.exit_code


def _answer(error: HaftError, arguments: Sequence[str], said: Globals) -> None:
    """What programs read: an outcome where a tool was to be called, else an error where JSON is wanted."""
    from haft.surfaces.cli.commands.use_failure import print_failure, words_of_use

    json = said.json or "--json" in arguments
    words = words_of_use(arguments)
    if words is not None:
        print_failure(error.failure(), words, json=json)
    elif json:
        facts({"error": error.failure().to_json()})


def _reader_gone() -> int:
    """Whoever read our output went away: nothing more can be said there, and Python must not try."""
    _forget_stdout()
    return READER_GONE


def _forget_stdout() -> None:
    """What is still in its buffer would be tried again at the end of the process."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


if __name__ == "__main__":
    main()
