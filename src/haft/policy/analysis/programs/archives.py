"""Programs for archives. They only read if they list an archive, or unpack it to standard output."""

from __future__ import annotations

import re
from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import DirectoryLinkReason, Invocation, Program
from haft.policy.analysis.programs.shared_checks import UNKNOWN, all_of, known_words, leads_out, needs_option

_OLD_STYLE: Final = regex(r"[tvzjJaf]+")
_NO_LETTERS: Final = regex(r"[^-]*[./_].*", re.DOTALL)
"""Words that `tar` cannot read as option letters: they contain one of `.`, `/` and `_`, which are no options, and no
dash before it."""
_GZIPPED: Final = regex(r"-|(?:.*[^/])(?:\.gz|\.z|\.Z|\.tgz|\.taz|-gz|-z|_z)", re.DOTALL)
_ZIPPED: Final = regex(r"[A-Za-z0-9_.@%+,:=/ -]+")
_UNPACKS: Final = "unpacks files"
_TAR: Final = """
    -t --list -f=path --file=path -v --verbose -z --gzip --gunzip --ungzip -j --bzip2 -J --xz --zstd --lzma --lzip
    -a --auto-compress --exclude=word --wildcards --no-wildcards --wildcards-match-slash --anchored --no-anchored
    --strip-components=word --full-time --numeric-owner --utc -R --block-number --totals --no-recursion --occurrence
    --help --version
"""


def _tar(invocation: Invocation) -> str | None:
    """Refuse everything but listing. Returns the reason, or None.

    In `tar tzf a.tgz`, the first word has no dash, and all its letters are options. After such a first word, the next
    word is the archive, even if it begins with a dash. This check does not know in which order options and words stand
    in the command, so it refuses such a first word together with other options.
    """
    words = known_words(invocation.operands)
    if words is None:
        return UNKNOWN
    if invocation.has("-t", "--list"):
        if words and not _NO_LETTERS.fullmatch(words[0]):
            return f"`{words[0]}` may be read as letters of options"
        archives = [value or "" for name, value in invocation.options if name in ("-f", "--file")]
        return next((f"`{each}` is on another machine for `tar`" for each in archives if ":" in each), None)
    if not words:
        return None if invocation.has("--help", "--version") else "`tar` has no option to list files"
    letters = words[0]
    if invocation.options or not _OLD_STYLE.fullmatch(letters) or "t" not in letters or letters.count("f") > 1:
        return f"haft does not know `tar {letters}` to only list files"
    return f"`{words[1]}` is on another machine for `tar`" if len(words) > 1 and ":" in words[1] else None


def _gzip(invocation: Invocation) -> str | None:
    """Refuse a file name without a known suffix: if no such file exists, the program opens the file with the suffix
    added, which haft has not checked. Returns the reason, or None."""
    packs = invocation.name == "gzip" and not invocation.has("-d", "--decompress", "-l", "--list", "-t", "--test")
    words = known_words(invocation.operands)
    if words is None:
        return UNKNOWN
    others = () if packs else (word for word in words if not _GZIPPED.fullmatch(word))
    return next((f"`{invocation.name}` may add a suffix to `{word}` and open another file" for word in others), None)


def _zip(invocation: Invocation) -> str | None:
    """Refuse options after the archive's name, and wildcards in the name, which the program itself would expand. Refuse
    any other archive name if a link lies in its directory: the program also tries the name with another suffix, and
    that file may be a link out of the workspace. Returns the reason, or None."""
    words = known_words(invocation.operands)
    if words is None:
        return UNKNOWN
    if any(word.startswith("-") or leads_out(word) for word in words):
        return f"`{invocation.name}` has an option after the archive, or a path elsewhere"
    if words and not _ZIPPED.fullmatch(words[0]):
        return f"`{invocation.name}` itself expands `{words[0]}`"
    return (
        DirectoryLinkReason(f"`{invocation.name}` may add a suffix to a name and open another file") if words else None
    )


_TO_OUTPUT: Final = (
    "-c --stdout --to-stdout -d --decompress -f --force -k --keep -q --quiet -v --verbose -h --help -V --version"
)
_CAT: Final = Program(options=_TO_OUTPUT, starts_others=True)

ARCHIVES: Final[dict[str, Program]] = {
    "tar": Program(
        options=_TAR,
        starts_others=True,
        harmful={
            **dict.fromkeys(("-x", "--extract", "--get"), _UNPACKS),
            **dict.fromkeys(
                ("-c", "--create", "-r", "--append", "-u", "--update", "-A", "--delete"), "writes an archive"
            ),
            **dict.fromkeys(
                (
                    "-I",
                    "--use-compress-program",
                    "--to-command",
                    "--checkpoint-action",
                    "--rsh-command",
                    "--rmt-command",
                    "-F",
                    "--info-script",
                    "--new-volume-script",
                ),
                "runs a program",
            ),
            "--index-file": "writes a file",
        },
        check=_tar,
    ),
    "unzip": Program(
        options="-l -t -v -Z -z -p -c -q -C",
        harmful={"-d": _UNPACKS, "-o": _UNPACKS, "-n": _UNPACKS, "-j": _UNPACKS},
        operands="paths",
        options_first=True,
        check=all_of(needs_option(("-l", "-t", "-v", "-Z", "-z", "-p", "-c"), "`unzip` unpacks files"), _zip),
    ),
    "zipinfo": Program(options="-1 -2 -s -m -l -v -h -t -z -C -T", operands="paths", options_first=True, check=_zip),
    "gzip": Program(
        options=f"-l --list -t --test {_TO_OUTPUT}",
        starts_others=True,
        check=all_of(
            needs_option(("-l", "--list", "-t", "--test", "-c", "--stdout", "--to-stdout"), "`gzip` writes a file"),
            _gzip,
        ),
    ),
    "gunzip": Program(
        options=f"-l --list -t --test {_TO_OUTPUT}",
        starts_others=True,
        check=all_of(
            needs_option(("-l", "--list", "-t", "--test", "-c", "--stdout", "--to-stdout"), "`gunzip` writes a file"),
            _gzip,
        ),
    ),
    "zcat": Program(options=_TO_OUTPUT, starts_others=True, check=_gzip),
    "bzcat": _CAT,
    "xzcat": _CAT,
}
