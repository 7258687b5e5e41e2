"""The entry of the command line: runs a command and turns whatever goes wrong into one sentence and an exit code.

Never a traceback: an error that nobody foresaw is said as such. A reader that went away (`haft log | head -1`) and
Ctrl-C are no errors and end quietly.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from haft.contracts import Bug, HaftError, near_miss
from haft.surfaces.cli.app import HAFT
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.printing import complain, complain_of

INTERRUPTED = 130
READER_GONE = 141
"""What a shell reports of a program that SIGPIPE ended."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    code = run(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _reader_gone()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; its exit code."""
    try:
        code = HAFT.main(list(arguments), prog_name="haft", standalone_mode=False, obj=Globals())
        return code if isinstance(code, int) else 0
    except HaftError as error:
        complain_of(error)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(f"{error.format_message()}\n")
        return error.exit_code
    except click.ClickException as error:
        complain(*_worded(error))
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
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return READER_GONE


if __name__ == "__main__":
    main()
