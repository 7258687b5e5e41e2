"""The entry of the command line: runs a command and turns whatever goes wrong into one sentence and an exit code.

Never a traceback: an error that nobody foresaw is said as such. A reader that went away (`haft log | head -1`) and
Ctrl-C are no errors and end quietly.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from haft.contracts import BadUsage, Bug, HaftError, MachineError, near_miss
from haft.surfaces.cli.app import COMPLETE_VARIABLE, HAFT
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.printing import complain, complain_of, facts

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
    except HaftError as error:
        complain_of(error)
        if isinstance(error, MachineError):
            _forget_stdout()
        elif said.json or "--json" in arguments:
            facts({"error": error.failure().to_json()})
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(f"{error.format_message()}\n")
        return error.exit_code
    except click.ClickException as error:
        complain(*_worded(error))
        if said.json or "--json" in arguments:
            facts({"error": BadUsage(_worded(error)[0], hint=_worded(error)[1]).failure().to_json()})
        return error.exit_code
    except BrokenPipeError:
        return _reader_gone()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except Exception as error:  # the last stop: a bug of ours, said in a sentence
        complain_of(Bug(error))
        return 1


def _worded(error: click.ClickException) -> tuple[str, str | None]:
    """What click says, in our words: the sentence and the hint."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context is not None else "haft"
    more = f"`{command} --help` shows how it is used"
    if isinstance(error, click.NoSuchOption):
        known = _option_names(context)
        near = near_miss(error.option_name, known)
        listed = f"the options are {', '.join(known)}" if known else more
        return f"`{command}` has no option `{error.option_name}`", f"did you mean `{near}`?" if near else listed
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"`{command}` needs {_shown(error.param)}", more
    if isinstance(error, click.BadParameter) and error.param is not None:
        return f"{_shown(error.param)}: {_sentence(error.message)}", more
    return _sentence(error.format_message()), more


def _sentence(text: str) -> str:
    """Click's sentences without their capital and full stop: `error:` stands before them."""
    return text[:1].lower() + text[1:].rstrip(".")


def _shown(parameter: click.Parameter) -> str:
    return f"`{parameter.opts[-1]}`" if isinstance(parameter, click.Option) else (parameter.name or "").upper()


def _option_names(context: click.Context | None) -> list[str]:
    if context is None:
        return []
    options = [item for item in context.command.get_params(context) if isinstance(item, click.Option)]
    return [name for option in options for name in option.opts if name.startswith("--")]


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
