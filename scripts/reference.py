"""Write the reference pages from the code, or with `--check` see that they are what the code says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from haft.authoring.check import CODES
from haft.config.settings import SETTINGS
from haft.contracts import EXIT_CODES, HaftError
from haft.surfaces.cli.app import HAFT
from haft.surfaces.cli.globals import Globals

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
SETTINGS_OPENING = """
# Settings

In `haft.toml` or `haft.json` of a workspace, in the user's `haft/haft.toml` below `$XDG_CONFIG_HOME` (default
`~/.config`), or as a variable. Stronger ones first: the caller or the command line, variables, the workspace, the user,
the default. `tools.disable`, `tools.enable`, `disabled_plugins` and `permissions` add up instead. A list is a text with
commas in a variable. `${env:NAME}` in a text of a file is the value of that variable; where it is missing, what
uses it is disabled (an entry of `config`, `providers`, `cli`, `plugins`, `templates.*` or `toolbox.paths`), and any
other setting is an error.

A workspace may narrow: lower limits, make the sandbox stricter, disable tools, reject and ask. It may add what is
confined: bash plugins, toolbox executables, templates. Everything else in its file is set aside, `${env:NAME}` too,
until `haft trust` has shown the file to a person.
"""
ERRORS_OPENING = """
# Errors

Every failure has a code, a sentence, often a hint, and says whether trying again can help.
"""
CHECKS_OPENING = """
# Checks

What `haft tools check` can find, by code. An error keeps a tool from working or is dangerous, and makes the command
exit with 1; a warning makes a tool worse; a note is good to know. `haft tools check --explain CODE` prints the same.
"""
MADE = "<!-- Made by `make docs` from the code: change it there. -->\n"


Path = tuple[tuple[str, click.Command], ...]
"""From `haft` to a command, each with its name."""


def commands(path: Path) -> Iterator[Path]:
    """A command and everything below it."""
    yield path
    name, command = path[-1]
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name, obj=Globals())
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from commands((*path, (below, found)))


def commands_page() -> str:
    parts = [MADE, "\n# Commands\n"]
    for path in commands((("haft", HAFT),)):
        context: click.Context | None = None
        for name, command in path:
            context = click.Context(
                command,
                info_name=name,
                parent=context,
                obj=Globals(),
                max_content_width=100,
                help_option_names=["--help", "-h"],
            )
        assert context is not None
        words = " ".join(name for name, _command in path)
        parts.append(f"\n## `{words}`\n\n```text\n{path[-1][1].get_help(context).rstrip()}\n```\n")
    return "".join(parts)


def _place(name: str, default: object) -> str:
    if name == "permissions":
        return f"`[[{name}]]`, one for each rule"
    return f"`[{name}]`" if isinstance(default, dict) else f"`{name}`, before any table"


def settings_page() -> str:
    parts = [MADE, SETTINGS_OPENING]
    for setting in SETTINGS:
        section, dot, key = setting.name.partition(".")
        place = f"`[{section}]`, `{key}`" if dot else _place(setting.name, setting.default)
        variable = f"HAFT_{setting.name.replace('.', '_').upper()}"
        variable_line = f"`{variable}`" if setting.variable else "not as a variable"
        default = json.dumps(setting.default)
        parts.append(
            f"\n## `{setting.name}`\n\n{setting.what}\n\n- in a file: {place}\n"
            f"- as a variable: {variable_line}\n- default: `{default}`\n"
        )
    return "".join(parts)


def errors(kind: type[HaftError]) -> Iterator[type[HaftError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from errors(below)


def errors_page() -> str:
    tree = (sys.modules["haft.contracts.errors"].__doc__ or "").split("\n\n")[1]
    rows = {kind.code: kind for kind in reversed(list(errors(HaftError)))}
    lines = [
        f"| `{code}` | {EXIT_CODES.get(code, 1)} | {'yes' if kind.retryable else 'no'} |"
        for code, kind in sorted(rows.items())
    ]
    lines += ["| `interrupted` | 1 | yes |", "| `cancelled` | 130 | no |"]
    return (
        f"{MADE}{ERRORS_OPENING}\n```text\n{tree}\n```\n\n| code | exit | try again |\n|---|---|---|\n"
        + "\n".join(lines)
        + "\n"
    )


def checks_page() -> str:
    rows = [f"| [`{code.code}`](#{code.code}) | {code.level} | {code.meaning} |" for code in CODES.values()]
    parts = [MADE, CHECKS_OPENING, "\n| code | level | what is found |\n|---|---|---|\n", "\n".join(rows), "\n"]
    for code in CODES.values():
        mends = " `--fix` mends it." if code.fixable else ""
        parts.append(
            f"\n## `{code.code}`\n\n{code.level.capitalize()}. {code.meaning}{mends}\n\n{code.explanation}\n\n"
            f"Not so:\n\n```text\n{code.bad}\n```\n\nBut so:\n\n```text\n{code.good}\n```\n"
        )
    return "".join(parts)


def main() -> int:
    pages = {
        "commands.md": commands_page(),
        "settings.md": settings_page(),
        "errors.md": errors_page(),
        "checks.md": checks_page(),
    }
    stale = []
    for name, text in pages.items():
        page = REFERENCE / name
        if "--check" in sys.argv:
            if not page.exists() or page.read_text() != text:
                stale.append(name)
        else:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text)
    if stale:
        print(f"docs/reference/ is behind the code: {', '.join(stale)}\nhint: make docs", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
