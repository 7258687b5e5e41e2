"""The entry point of the command line: runs a command and turns every error into one message and an exit code.

It never prints a traceback; an unexpected error is reported as a bug. A closed pipe (`haft log | head -1`) and Ctrl-C
are not errors and end quietly.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

import click

from haft.contracts import BadUsage, Bug, HaftError, in_trace
from haft.surfaces.cli.app import COMPLETE_VARIABLE, HAFT
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.screen.printing import StdoutFailed, complain_of, facts
from haft.surfaces.cli.words.usage_errors import to_bad_usage

INTERRUPTED = 130
READER_GONE = 141
"""The exit code that a shell reports for a program that SIGPIPE ended."""


def main(arguments: Sequence[str] | None = None, servers: Mapping[str, Callable[..., int]] | None = None) -> None:
    """Run the command line and exit. `servers` are the servers that `haft serve` can start."""
    _open_missing_streams()
    code = run(sys.argv[1:] if arguments is None else arguments, servers)
    try:
        sys.stdout.flush()
    except OSError:  # The error was reported before, or nobody reads stdout any more.
        code = code or _reader_gone()
    sys.exit(code)


def _refuse_inside() -> None:
    """Refuse to run inside a call of haft: there is no state home there, and no person who could approve."""
    if os.environ.get("HAFT_INSIDE"):
        raise BadUsage("haft cannot run inside one of its own calls", hint="let the agent call the tool directly")


def _open_missing_streams() -> None:
    """If the process was started without stdout or stderr, open /dev/null in place of the missing stream."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  for the life of the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  for the life of the process


def run(arguments: Sequence[str], servers: Mapping[str, Callable[..., int]] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = Globals(servers=servers or {})
    try:
        completing = os.environ.get(COMPLETE_VARIABLE)
        if completing:
            from click.shell_completion import shell_complete

            return shell_complete(HAFT, {"obj": options}, "haft", COMPLETE_VARIABLE, completing)
        # Not `HAFT.main`, because it would handle closed pipes, Ctrl-C and exit codes in click's way.
        with HAFT.make_context("haft", list(arguments), obj=options) as context:
            _refuse_inside()
            with in_trace(os.environ.get("TRACEPARENT")):
                HAFT.invoke(context)
        return 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except StdoutFailed as error:
        complain_of(error)
        _forget_stdout()
        return error.exit_code
    except HaftError as error:
        return _failed(error, arguments, options)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(f"{error.format_message()}\n")
        _answer(BadUsage(f"`{error.ctx.command_path}` needs a command"), arguments, options)
        return error.exit_code
    except click.ClickException as error:
        _failed(to_bad_usage(error), arguments, options)
        return error.exit_code
    except BrokenPipeError:
        return _reader_gone()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except Exception as error:  # A bug in haft: one message instead of a traceback.
        return _failed(Bug(error), arguments, options)


def _failed(error: HaftError, arguments: Sequence[str], options: Globals) -> int:
    """Print an error, for people and as JSON for programs, and return the exit code."""
    complain_of(error)
    try:
        _answer(error, arguments, options)
    except BrokenPipeError:
        _forget_stdout()
    except StdoutFailed as gone:
        complain_of(gone)
        _forget_stdout()
    return error.exit_code


def _answer(error: HaftError, arguments: Sequence[str], options: Globals) -> None:
    """Print an error as JSON on stdout: as an outcome if the command is `tools use`; for other commands as `{"error":
    …}`, and only with `--json`."""
    from haft.surfaces.cli.commands.use_failure import print_failure, words_of_use

    json = options.json or "--json" in arguments
    words = words_of_use(arguments)
    if words is not None:
        print_failure(error.failure(), words, json=json)
    elif json:
        facts({"error": error.failure().to_json()})


def _reader_gone() -> int:
    """Drop the rest of the output, because the reader has closed the pipe, and return the exit code for this case."""
    _forget_stdout()
    return READER_GONE


def _forget_stdout() -> None:
    """Drop the text in stdout's buffer, because Python would try to write it again when the process ends."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


if __name__ == "__main__":
    main()
