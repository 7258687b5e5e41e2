"""Finds the file names that a pipe would print, by listing the directories that the first program of the pipe would
list.

A listing contains every name that may be printed, and perhaps more. If a program receives these names as arguments,
each name is checked as a path from the line's directory, with links resolved.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Final, Literal

from haft.lazy import regex
from haft.policy.analysis.command import find_expression
from haft.policy.analysis.command.options import Unlisted, split_command
from haft.policy.analysis.program import Argument, Invocation, Program
from haft.policy.analysis.tree.matching import NameTest
from haft.policy.analysis.tree.survey import Surveyor, is_one_line, is_one_word
from haft.values import dataclass

_MAX_NAMES: Final = 4_000

End = Literal["line", "nul"]


@dataclass(frozen=True, slots=True)
class Listing:
    """The file names that a pipe prints."""

    names: tuple[str, ...]
    end: End = "line"

    def as_words(self) -> tuple[str, ...] | None:
        """The words that result if the output is split at white space; a name with spaces becomes several words. None
        if a word is not plain."""
        words = [word for name in self.names for word in name.split(" ") if word]
        return tuple(words) if self.end == "line" and all(map(is_one_word, words)) else None

    def as_trimmed_lines(self) -> tuple[str, ...] | None:
        """The names if the output is split into lines. Each name is in the result both unchanged and without the spaces
        at its ends. None if a name contains a quote."""
        lines = self.as_lines()
        if lines is None or any(sign in name for name in lines for sign in "'\"\\"):
            return None
        return tuple(
            dict.fromkeys((*lines, *(name.lstrip(" ") for name in lines), *(name.strip(" ") for name in lines)))
        )

    def as_lines(self) -> tuple[str, ...] | None:
        """The names if the output is split into lines. None if a name contains control characters or begins with a
        dash."""
        return self.names if self.end == "line" and all(map(is_one_line, self.names)) else None

    def as_nul_ended(self) -> tuple[str, ...] | None:
        """The names if the output is split at NUL characters. None if a name begins with a dash."""
        is_fine = self.end == "nul" and not any(name.startswith("-") for name in self.names)
        return self.names if is_fine else None


@dataclass(frozen=True, slots=True)
class Lister:
    """Finds the names that a pipe prints, with a table of programs and a `Surveyor` of the workspace."""

    programs: Mapping[str, Program]
    surveyor: Surveyor

    def names_of_pipe(self, stages: list[list[Argument]], directory: str) -> Listing | None:
        """The names that a pipe prints, relative to `directory`; None if the pipe may print anything but file names."""
        try:
            listing = self._names_of_first(stages[0], directory)
        except (Unlisted, find_expression.NotSimple):
            return None
        for stage in stages[1:]:
            if listing is None:
                return None
            listing = _filter_listing(stage, listing)
        return None if listing is None or len(listing.names) > _MAX_NAMES else listing

    def _names_of_first(self, arguments: list[Argument], directory: str) -> Listing | None:
        program = arguments[0]
        produce = _PRODUCERS.get(program.text) if program.literal else None
        return None if produce is None else produce(self, arguments[1:], directory)

    def names_of_find(self, roots: list[str], depth: int | None, test: NameTest, directory: str) -> Listing | None:
        """The paths below `roots` whose last component passes `test`; None if haft cannot tell."""
        names: list[str] = []
        for root in roots:
            below = (
                self.surveyor.paths_below(directory, root)
                if depth is None
                else self.surveyor.paths_below(directory, root, depth)
            )
            if below is None:
                return None
            # How `find` tests the name of the root itself depends on how the root is written, so it is always included.
            start = root if root.endswith("/") else root + "/"
            names.append(root)
            for path in below:
                self.surveyor.resolver.deadline.check()
                if test(path.rpartition("/")[2]):
                    names.append(start + path)
        return Listing(tuple(names))

    def _find(self, arguments: list[Argument], directory: str) -> Listing | None:
        texts = find_expression.literal_texts(arguments)
        if texts is None:
            return None
        roots, expression = find_expression.split_roots(texts)
        depth, tests = find_expression.max_depth(expression), find_expression.printed_names_test(expression)
        listing = self.names_of_find(roots, depth, tests, directory)
        if listing is None or ("-print" in expression and "-print0" in expression):
            return None
        return Listing(listing.names, "nul" if "-print0" in expression else "line")

    def _ls(self, arguments: list[Argument], directory: str) -> Listing | None:
        found = self._split_by_options("ls", arguments, "-1 -a -A -t -r -S -v -X -U -d --all --almost-all --directory")
        given = _texts(found)
        if given is None:
            return None
        names: list[str] = list(given)
        for path in given or ["."]:
            inside = self.surveyor.paths_below(directory, path, 1)
            if inside is None:
                return None
            names += inside
            names += [f"{path}:"] if inside else []
        if found.has("-a", "--all"):
            names += [".", ".."]
        return Listing(tuple(names))

    def _grep(self, arguments: list[Argument], directory: str) -> Listing | None:
        listed = """-l --files-with-matches -L --files-without-match -r --recursive -i -w -E -F -P -v -s -e=word -x -I
            --include=word --exclude=word --exclude-dir=word -q -Z --null"""
        found = self._split_by_options("grep", arguments, listed)
        if not found.has("-l", "--files-with-matches", "-L", "--files-without-match"):
            return None
        is_recursive = found.has("-r", "--recursive")
        roots = _texts(found, 0 if found.has("-e") else 1)
        if roots is None or not (roots or is_recursive):
            return None
        return self._below(roots, directory, is_recursive, found.has("-Z", "--null"))

    def _rg(self, arguments: list[Argument], directory: str) -> Listing | None:
        listed = """-l --files-with-matches --files-without-match --files -i -w -F -S -s -v -e=word -t=word --type=word
            -T=word --type-not=word -g=word --glob=word --hidden --no-ignore -u -uu -0 --null -U"""
        found = self._split_by_options("rg", arguments, listed)
        if not found.has("-l", "--files-with-matches", "--files-without-match", "--files"):
            return None
        roots = _texts(found, 0 if found.has("-e", "--files") else 1)
        return None if roots is None else self._below(roots, directory, True, found.has("-0", "--null"))

    def _fd(self, arguments: list[Argument], directory: str) -> Listing | None:
        listed = """-H --hidden -I --no-ignore -u -s -i -g --glob -F -p --full-path -0 --print0 -d=number
            --max-depth=number -E=word --exclude=word -t=word --type=word -e=word --extension=word"""
        found = self._split_by_options("fd", arguments, listed)
        roots = _texts(found, 1)
        return None if roots is None else self._below(roots, directory, True, found.has("-0", "--print0"))

    def _below(self, roots: list[str], directory: str, is_recursive: bool, ends_in_nul: bool) -> Listing | None:
        names: list[str] = list(roots)
        if is_recursive:
            for root in roots or [""]:
                below = self.surveyor.paths_below(directory, root or ".")
                if below is None or "//" in root:
                    return None
                start = root if not root or root.endswith("/") else root + "/"
                names += [start + path for path in below]
        return Listing(tuple(names), "nul" if ends_in_nul else "line")

    def _git(self, arguments: list[Argument], directory: str) -> Listing | None:
        texts = find_expression.literal_texts(arguments)
        if texts is None:
            return None
        if texts[:1] == ["--no-pager"]:
            texts = texts[1:]
        reads = {"ls-files": _is_plain_ls_files, "diff": _is_plain_diff, "grep": _is_plain_git_grep}.get(
            texts[0] if texts else ""
        )
        if reads is None or not reads(texts[1:]):
            return None
        names = self.surveyor.tracked_names(directory)
        # Unless `-z` is given, git prints names with other characters in quotes.
        if names is None or ("-z" not in texts and not all(map(_UNQUOTED.fullmatch, names))):
            return None
        requested = texts[1:] if texts[0] == "ls-files" else texts[texts.index("--") :] if "--" in texts else []
        pathspecs = [each for each in requested if not each.startswith("-")]
        return Listing(tuple(name for name in names if _may_match(name, pathspecs)), "nul" if "-z" in texts else "line")

    def _split_by_options(self, name: str, arguments: list[Argument], options: str) -> Invocation:
        """Split a command, but accept only `options`, with which the program prints names unchanged. The program's
        entry in the table accepts more."""
        kind = self.programs[name].operands if name in self.programs else "paths"
        entry = Program(options, operands=kind, patterns=("-e", "--files"), all_options_harmless=True)
        return split_command(name, arguments, entry).invocation


Producer = Callable[[Lister, list[Argument], str], "Listing | None"]
_PRODUCERS: Final[dict[str, Producer]] = {
    "find": Lister._find,
    "ls": Lister._ls,
    "grep": Lister._grep,
    "rg": Lister._rg,
    "fd": Lister._fd,
    "fdfind": Lister._fd,
    "git": Lister._git,
}
_UNQUOTED: Final = regex(r"[ !#-\[\]-~]+")
_PATHSPEC: Final = regex(r"[A-Za-z0-9_.*][A-Za-z0-9_.*/-]*")


def _texts(invocation: Invocation, skip: int = 0) -> list[str] | None:
    """The texts of the operands after the first `skip`; None if one of them is unknown or may be several words."""
    words: list[str] = []
    for at, each in enumerate(invocation.operands):
        if at < skip and each.may_split:
            return None
        if at >= skip:
            if not each.literal and each.paths is None:
                return None
            words += (each.text,) if each.literal else each.paths or ()
    return words


def _is_pathspec(text: str) -> bool:
    return _PATHSPEC.fullmatch(text) is not None and ".." not in text.split("/")


def _may_match(name: str, pathspecs: list[str]) -> bool:
    """Whether git may select a name by these pathspecs. Of a pathspec with wildcards, only the end is compared."""
    return not pathspecs or any(map(functools.partial(_may_be_requested, name), pathspecs))


def _may_be_requested(name: str, requested: str) -> bool:
    requested = requested.removeprefix("./").rstrip("/")
    if requested in ("", ".") or "//" in requested or "/./" in requested or f"/{requested}/" in f"/{name}/":
        return True
    return "*" in requested and name.endswith(requested.rpartition("*")[2])


def _is_plain_ls_files(texts: list[str]) -> bool:
    allowed = ("-z", "-c", "--cached", "-m", "--modified", "-d", "--deleted", "--", "--full-name")
    return all(each in allowed or _is_pathspec(each) for each in texts)


def _is_plain_diff(texts: list[str]) -> bool:
    """Whether `git diff` prints only names from the index. A word before `--` may be a commit, which may contain any
    names."""
    at = texts.index("--") if "--" in texts else len(texts)
    is_plain = all(
        each in ("--name-only", "-z") or re.fullmatch("--diff-filter=[A-Za-z]+", each) for each in texts[:at]
    )
    return is_plain and "--name-only" in texts[:at] and all(map(_is_pathspec, texts[at + 1 :]))


def _is_plain_git_grep(texts: list[str]) -> bool:
    at = texts.index("--") if "--" in texts else len(texts)
    options = [each for each in texts[:at] if each.startswith("-")]
    is_plain = all(re.fullmatch(r"-[liwEFPIvz]+|--files-with-matches|--name-only", each) for each in options)
    lists = any(re.fullmatch(r"-[iwEFPIvz]*l[liwEFPIvz]*|--files-with-matches|--name-only", each) for each in options)
    # A word after the pattern may be a commit.
    return is_plain and lists and at - len(options) == 1 and all(map(_is_pathspec, texts[at + 1 :]))


_FILTERS: Final = {
    "head": Program("-n=number", number_option=True),
    "tail": Program("-n=number", number_option=True),
    "sort": Program("-r -u -n -V -f -h -s -R -z"),
    "uniq": Program("-u -d"),
    "shuf": Program("-n=number"),
    "cat": Program(),
    "grep": Program("-v -i -E -F -P -w -x -e=word --invert-match -z", operands="words", patterns=("-e",)),
}
_NUL: Final = (["\\n", "\\0"], ["\\n", "\\000"])


def _filter_listing(arguments: list[Argument], listing: Listing) -> Listing | None:
    """The names that remain after a program that only removes or reorders whole names; None for other programs."""
    name = arguments[0].text
    if name == "tr" and find_expression.literal_texts(arguments[1:]) in _NUL:
        return Listing(listing.names, "nul") if listing.as_lines() else None
    entry = _FILTERS.get(name)
    if entry is None or not arguments[0].literal:
        return None
    try:
        found = split_command(name, arguments[1:], entry).invocation
    except Unlisted:
        return None
    most = 1 if name == "grep" and not found.has("-e") else 0
    if len(found.operands) > most or any(each.may_split for each in found.operands):
        return None
    # For names that are not ASCII, `grep` may print a note about binary data instead.
    if name == "grep" and not all(map(str.isascii, listing.names)):
        return None
    if (listing.end == "nul") != found.has("-z") or (listing.end == "line" and listing.as_lines() is None):
        return None
    return listing
