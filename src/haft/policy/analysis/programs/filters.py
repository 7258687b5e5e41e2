"""Programs with a small language of their own: `sed`, `awk`, `jq`. haft checks whether the script only reads and
prints."""

from __future__ import annotations

import re
from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Invocation, Program
from haft.policy.analysis.programs import awkscript, sedscript
from haft.policy.analysis.programs.shared_checks import UNKNOWN, known_words, leads_out

_IMPORTS: Final = regex(r"(?:^|;)[ \t\r]*(?:import|include|module)\b|\bmodulemeta\b", re.MULTILINE)
_ENVIRONMENT: Final = regex(r"(?<![.\w\"])(?:env|ENV)\b")
"""The name by which a `jq` filter reads the environment, without the `$`, because blanks and comments may stand between
the `$` and the name."""
_ASSIGNMENT: Final = regex(r"[A-Za-z_][A-Za-z0-9_]*=", re.ASCII)
_FILLED_IN: Final = regex(r"\$[A-Za-z_{(0-9@*#?-]|`")
_HELP_OPTIONS: Final = ("--help", "--version", "-V", "-h")
_TWO_VALUED: Final = ("--arg", "--argjson")
_SCRIPT_IN_FILE: Final = "runs a script from a file"


def _sed(invocation: Invocation) -> str | None:
    scripts = [value or "" for name, value in invocation.options if name in ("-e", "--expression")]
    if not scripts:
        if not invocation.operands:
            return None if invocation.has(*_HELP_OPTIONS) else "`sed` has no script"
        if not invocation.operands[0].literal:
            return UNKNOWN
        scripts = [invocation.operands[0].text]
    elif any(_FILLED_IN.search(script) or ('"' in script and "$" in script) for script in scripts):
        return "the shell may change the `sed` script"
    return sedscript.why_not("\n".join(scripts))


def _awk(invocation: Invocation) -> str | None:
    """Check the `awk` program and the values of options. Options end at the program text. A word after the program text
    is a file to read, so values must not look like a file outside of the workspace. Returns the reason why the command
    is refused, or None."""
    for name, value in invocation.options:
        if name in ("-v", "--assign") and not _ASSIGNMENT.match(value or ""):
            return f"`{value}` is not an assignment"
        if name in ("-F", "--field-separator") and value and len(value) > 2 and leads_out(value):
            return f"`{value}` could be a file outside the workspace"
    if not invocation.operands:
        return None if invocation.has(*_HELP_OPTIONS) else "`awk` has no program"
    if not invocation.operands[0].literal:
        return UNKNOWN
    return awkscript.why_not(invocation.operands[0].text)


def _jq(invocation: Invocation) -> str | None:
    """Check the filter. `--arg` takes two words of any form, so haft cannot tell which word after `--arg` is the
    filter. Each of these words is checked as a filter and as a file. Returns the reason why the command is refused, or
    None."""
    if not invocation.operands:
        return None if invocation.has(*_HELP_OPTIONS, "--build-configuration") else "`jq` has no filter"
    first = invocation.operands[0]
    filters = [first.text] if first.literal and first.paths is None else None
    if invocation.has(*_TWO_VALUED):
        filters = known_words(invocation.operands)
        values = [value for name, value in invocation.options if name in _TWO_VALUED and value is not None]
        if filters is None or invocation.has("--indent") or any(each.startswith("-") for each in filters + values):
            return "which word is the value of `jq --arg` is not certain"
        filters += values
    if filters is None:
        return UNKNOWN
    if any(each.startswith("./") for each in filters):
        return "the name of a file may become the `jq` filter"
    if any(map(_IMPORTS.search, filters)):
        return "the `jq` filter includes another file"
    return "the `jq` filter reads the environment" if any(map(_ENVIRONMENT.search, filters)) else None


_AWK: Final = Program(
    options="-F=word --field-separator=word -v=word --assign=word --csv -k --help --version -V -h",
    operands="pattern-paths",
    patterns=_HELP_OPTIONS,
    harmful={
        **dict.fromkeys(("-f", "--file", "-E", "--exec"), _SCRIPT_IN_FILE),
        **dict.fromkeys(("-i", "--include", "-l", "--load"), "loads a library"),
        **dict.fromkeys(("-o", "--pretty-print", "-p", "--profile", "-d", "--dump-variables"), "writes a file"),
        **dict.fromkeys(("-D", "--debug"), "takes commands"),
    },
    check=_awk,
)

FILTERS: Final[dict[str, Program]] = {
    "sed": Program(
        options="""-n --quiet --silent -e=word --expression=word -E -r --regexp-extended -s --separate -u --unbuffered
            -z --null-data -l=word --line-length=word --debug --sandbox --help --version""",
        operands="pattern-paths",
        patterns=("-e", "--expression", "--help", "--version"),
        harmful={
            **dict.fromkeys(("-i", "--in-place"), "writes the files that it reads"),
            **dict.fromkeys(("-f", "--file"), _SCRIPT_IN_FILE),
        },
        check=_sed,
    ),
    "awk": _AWK,
    "gawk": _AWK,
    "mawk": _AWK,
    "nawk": _AWK,
    "jq": Program(
        options="""-c --compact-output -n --null-input -e --exit-status -s --slurp -r --raw-output --raw-output0
            -R --raw-input -C --color-output -M --monochrome-output -S --sort-keys -j --join-output -a --ascii-output
            --tab --indent=number --unbuffered --stream --stream-errors --seq --arg=path --argjson=path --args
            --jsonargs -h --help -V --version --build-configuration""",
        operands="pattern-paths",
        patterns=_HELP_OPTIONS + _TWO_VALUED,
        harmful={
            **dict.fromkeys(("-f", "--from-file"), _SCRIPT_IN_FILE),
            **dict.fromkeys(("-L", "--library-path"), "loads a library"),
            **dict.fromkeys(("--slurpfile", "--rawfile", "--argfile"), "reads another file"),
        },
        check=_jq,
    ),
}
