"""Checks of git commands beyond their lists of options: whether the words name only things inside the workspace, and
whether the command only lists.

The table of git combines these checks; none of them looks at the disk.
"""

from __future__ import annotations

from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Invocation, LinkReason
from haft.policy.analysis.programs.shared_checks import UNKNOWN, Check, known_words, leads_out, word_set

_FORMATS: Final = ("--format", "--pretty", "--sort", "--batch", "--batch-check")
_SIGNED: Final = regex(r"%[-+ ]*G|signature")
_MERGES: Final = word_set("off none first-parent 1 separate combined c dense-combined cc")
"""Values of `--diff-merges` for which git does not merge again; `on` and `m` are missing because they depend on the
repository's settings."""
_FROM_FILE: Final = word_set("-f --file -X --exclude-from --ignore-revs-file")


def words_stay_inside(invocation: Invocation, skip: int = 0) -> str | None:
    """Check revisions and paths, which git does not distinguish: no word may look like an option or lead out of the
    workspace. Returns the reason why a word is refused, or None."""
    for name, value in invocation.options:
        if name in _FORMATS and value and _SIGNED.search(value):
            return f"`{value}` runs the program that checks signatures"
        if name == "--diff-merges" and value not in _MERGES:
            return f"`--diff-merges={value}` may repeat a merge and write objects"
    for each in invocation.operands[skip:]:
        for word in each.paths if each.paths is not None else (each.text,):
            if word.startswith("-"):
                return f"`{word}` looks like an option"
            if leads_out(word.strip("\"'")):
                return f"`{word}` may lead out of the workspace"
    return None


def finds_files_from_here(invocation: Invocation) -> str | None:
    """Refuse `-C` together with files: git resolves the names of the files from the directory of `-C`, but haft
    resolves them from the directory of the command line. Returns the reason, or None."""
    moves = sum(1 for name, value in invocation.options if name == "-C" and value is not None)
    if moves > 1:
        return "`git -C` goes on from where another `-C` leads"
    takes_files = invocation.name == "git hash-object" and len(invocation.operands) > 0
    reads = takes_files or any(name in _FROM_FILE and value is not None for name, value in invocation.options)
    return "`git -C` looks for files from another directory" if moves and reads else None


def known_files(most: int) -> Check:
    """A check for commands that follow links to the files that they read: every file name must be known. With `-C`, at
    most `most` operands are allowed: any further operands are files, and git would look for them in another
    directory."""

    def check(invocation: Invocation) -> str | None:
        words = known_words(invocation.operands)
        if words is None:
            return UNKNOWN
        moves = any(name == "-C" and value is not None for name, value in invocation.options)
        if moves and len(words) > most:
            return "`git -C` looks for files from another directory"
        return words_stay_inside(invocation)

    return check


def searches_inside(invocation: Invocation) -> str | None:
    """Check the paths of `git grep`. Returns the reason why a path is refused. For harmless paths, returns None with
    `--cached`, otherwise a `LinkReason`: `git grep` reads tracked files even if a directory in their path has become a
    link."""
    paths = invocation.operands[0 if invocation.has("-e", "-f") else 1 :]
    why = words_stay_inside(invocation, len(invocation.operands) - len(paths))
    if why is not None or invocation.has("--cached"):
        return why
    for word in known_words(paths) or ():
        if word.startswith(":") and not word.startswith((":!", ":^")):
            return f"`{word}` may lie outside of the directory"
    return LinkReason("`git grep` follows links to directories, even out of the workspace")


def only_lists(what: str, *options: str) -> Check:
    """A check that refuses `git branch NAME` and `git tag NAME`, because they create a branch or a tag. They are not
    refused if one of `options` is given, because git then only lists."""

    def check(invocation: Invocation) -> str | None:
        lines = invocation.value("-n")
        if lines is not None and not lines.isdecimal():
            return f"`-n{lines}` is not a number of lines"
        makes = invocation.operands and not invocation.has(*options)
        return f"`{invocation.name}` makes a {what}" if makes else None

    return check


def reads_settings(invocation: Invocation) -> str | None:
    """Refuse `git config` unless it reads settings: a second word would be a value to set. Returns the reason, or
    None."""
    words = known_words(invocation.operands)
    if words is None:
        return UNKNOWN
    asks = invocation.has("--get", "--get-all", "--get-regexp", "--get-urlmatch", "-l", "--list")
    why = words_stay_inside(invocation, len(words))
    if why is not None:
        return why
    is_read = asks or len(words) == 1 or words[:1] in (["get"], ["list"])
    return None if is_read else "`git config` with a value changes a setting"


def shows_reflog(invocation: Invocation) -> str | None:
    """Refuse `git reflog` unless its subcommand only shows something. The subcommand may be missing: `git reflog HEAD`
    means `git reflog show HEAD`. Returns the reason, or None."""
    words = known_words(invocation.operands)
    if words is None:
        return UNKNOWN
    is_shown = not words or words[0] in ("show", "exists", "list", "HEAD") or "@{" in words[0] or "/" in words[0]
    return None if is_shown else f"haft does not know `git reflog {words[0]}` to be read-only"


def shows_symbolic(invocation: Invocation) -> str | None:
    """Refuse `git symbolic-ref` unless it has exactly one word: with two words, it changes a reference. Returns the
    reason, or None."""
    return (
        None
        if len(known_words(invocation.operands) or ()) == 1
        else "`git symbolic-ref` with a value changes a reference"
    )


def shows_remote(invocation: Invocation) -> str | None:
    """Refuse `git remote show NAME` without `-n`, because git would then ask the remote over the network. Returns the
    reason, or None."""
    is_local = not invocation.operands or invocation.has("-n")
    return None if is_local else "`git remote show` uses the network"


def always_refuse(why: str) -> Check:
    """A check that refuses every command, with the reason `why`. It is for the entries of git commands that only read
    if they have certain subcommands; those subcommands have entries of their own."""
    return lambda _invocation: why
