"""Programs of archives, as far as they list what is in one or unpack to their output."""

from __future__ import annotations

import re
from typing import Final

from haft.policy.analysis.program import Invocation, Program
from haft.policy.analysis.programs.judging import UNKNOWN, needs, texts

_OLD_STYLE: Final = re.compile(r"[tvzjJaf]+")
_UNPACKS: Final = "unpacks files"
_TAR: Final = """
    -t --list -f=path --file=path -v --verbose -z --gzip --gunzip --ungzip -j --bzip2 -J --xz --zstd --lzma --lzip
    -a --auto-compress --exclude=word --wildcards --no-wildcards --wildcards-match-slash --anchored --no-anchored
    --strip-components=word --full-time --numeric-owner --utc -R --block-number --totals --no-recursion --occurrence
    --help --version
"""


def _tar(invocation: Invocation) -> str | None:
    """Only listing. Without a dash, the first word holds the letters, and the next is the archive: `tar tzf a.tgz`."""
    if invocation.has("-t", "--list"):
        archives = [value or "" for name, value in invocation.options if name in ("-f", "--file")]
        return next((f"`{each}` is on another machine for `tar`" for each in archives if ":" in each), None)
    words = texts(invocation.operands)
    if words is None:
        return UNKNOWN
    if not words:
        return None if invocation.has("--help", "--version") else "`tar` is not told to list"
    letters = words[0]
    if invocation.options or not _OLD_STYLE.fullmatch(letters) or "t" not in letters or letters.count("f") > 1:
        return f"`tar {letters}` is not known to only list"
    return f"`{words[1]}` is on another machine for `tar`" if len(words) > 1 and ":" in words[1] else None


_TO_OUTPUT: Final = (
    "-c --stdout --to-stdout -d --decompress -f --force -k --keep -q --quiet -v --verbose -h --help -V --version"
)
_CAT: Final = Program(options=_TO_OUTPUT, starts_others=True)

ARCHIVES: Final[dict[str, Program]] = {
    "tar": Program(
        options=_TAR,
        starts_others=True,
        refused={
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
        refused={"-d": _UNPACKS, "-o": _UNPACKS, "-n": _UNPACKS, "-j": _UNPACKS},
        check=needs(("-l", "-t", "-v", "-Z", "-z", "-p", "-c"), "`unzip` unpacks files"),
    ),
    "zipinfo": Program(options="-1 -2 -s -m -l -v -h -t -z -C -T"),
    "gzip": Program(
        options=f"-l --list -t --test {_TO_OUTPUT}",
        starts_others=True,
        check=needs(("-l", "--list", "-t", "--test", "-c", "--stdout", "--to-stdout"), "`gzip` writes a file"),
    ),
    "gunzip": Program(
        options=f"-l --list -t --test {_TO_OUTPUT}",
        starts_others=True,
        check=needs(("-l", "--list", "-t", "--test", "-c", "--stdout", "--to-stdout"), "`gunzip` writes a file"),
    ),
    "zcat": _CAT,
    "bzcat": _CAT,
    "xzcat": _CAT,
}
