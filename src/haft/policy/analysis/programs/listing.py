"""Programs that show which files exist, and their kind, size and location."""

from __future__ import annotations

from typing import Final

from haft.policy.analysis.program import Invocation, LinkReason, Program
from haft.policy.analysis.programs.shared_checks import all_of, follows_links, no_dashed_values

_NAMES: Final = "reads the files that a list names"


def _ls(invocation: Invocation) -> str | None:
    follows = invocation.has("-L", "--dereference") and invocation.has("-R", "--recursive")
    return LinkReason("`ls -LR` follows links, out of the workspace too") if follows else None


def _tree(invocation: Invocation) -> str | None:
    """Refuse a value that could be option letters: `tree` knows no attached values, so it reads `-Io` as `-I` and `-o`,
    and `-o` writes a file. Returns the reason, or None."""
    values = (value or "" for name, value in invocation.options if name in ("-P", "-I", "-H", "-T"))
    letters = (value for value in values if value.isalpha() and ("o" in value or "R" in value))
    return next((f"`{value}` may be read as letters of options" for value in letters), None)


_LS: Final = Program(
    options="""-a --all -A --almost-all --author -b --escape --block-size=word -B --ignore-backups -c -C --color[=word]
        -d --directory -D --dired -f -F --classify[=word] --file-type --format=word --full-time -g
        --group-directories-first -G --no-group -h --human-readable --si -H --dereference-command-line
        --dereference-command-line-symlink-to-dir --hide=word --hyperlink[=word] --indicator-style=word -i --inode
        -I=word --ignore=word -k --kibibytes -l -L --dereference -m -n --numeric-uid-gid -N --literal -o -p
        -q --hide-control-chars --show-control-chars -Q --quote-name --quoting-style=word -r --reverse -R --recursive
        -s --size -S --sort=word --time=word --time-style=word -t -T=word --tabsize=word -u -U -v -w=word
        --width=word -x -X -Z --context --zero -1 --help --version""",
    all_options_harmless=True,
    check=_ls,
)

LISTING: Final[dict[str, Program]] = {
    "ls": _LS,
    "dir": _LS,
    "vdir": _LS,
    "pwd": Program(options="-L --logical -P --physical --help --version", operands="none", all_options_harmless=True),
    "basename": Program(
        options="-a --multiple -s=word --suffix=word -z --zero --help --version",
        operands="words",
        all_options_harmless=True,
    ),
    "dirname": Program(options="-z --zero --help --version", operands="words", all_options_harmless=True),
    "realpath": Program(
        options="""-e --canonicalize-existing -m --canonicalize-missing -L --logical -P --physical -q --quiet
            --relative-to=path --relative-base=path -s --strip --no-symlinks -z --zero --help --version""",
        all_options_harmless=True,
    ),
    "readlink": Program(
        options="""-f --canonicalize -e --canonicalize-existing -m --canonicalize-missing -n --no-newline -q --quiet
            -s --silent -v --verbose -z --zero --help --version""",
        all_options_harmless=True,
    ),
    "stat": Program(
        options="""-L --dereference -f --file-system --cached=word -c=word --format=word --printf=word -t --terse --help
            --version""",
        all_options_harmless=True,
    ),
    "du": Program(
        options="""-0 --null -a --all --apparent-size -B=word --block-size=word -b --bytes -c --total
            -D -H --dereference-args -d=word --max-depth=word --summarize -h --human-readable --inodes -k
            -L --dereference -l --count-links -m -P --no-dereference -S --separate-dirs --si -s -t=word --threshold=word
            --time[=word] --time-style=word -X=path --exclude-from=path --exclude=word -x --one-file-system --help
            --version""",
        all_options_harmless=True,
        harmful={"--files0-from": _NAMES},
        check=follows_links("-L", "--dereference"),
    ),
    "df": Program(
        options="""-a --all -B=word --block-size=word -h --human-readable -H --si -i --inodes -k -l --local --no-sync
            --output[=word] -P --portability --total -t=word --type=word -T --print-type -x=word --exclude-type=word
            -v --help --version""",
        shows_host_data=True,
        harmful={"--sync": "makes the system flush its buffers to disk"},
    ),
    "tree": Program(
        options="""
            -a -d -f -l -x -L=number -P=word -I=word --gitignore --gitfile=path --ignore-case --matchdirs --metafirst
            --prune --info --infofile=path --noreport --charset=word --filelimit=word -q -N -Q -p -u -g -s -h --si
            --du -D --timefmt=word -F --inodes --device -v -t -c -U -r --dirsfirst --filesfirst --sort=word -i -A -S
            -n -C -X -J -H=word -T=word --nolinks --hintro=path --houtro=path --help --version
        """,
        harmful={
            "-o": "writes a file",
            "-R": "writes an HTML page into every directory",
            "--fromfile": _NAMES,
            "--fromtabfile": _NAMES,
        },
        check=all_of(no_dashed_values, _tree, follows_links("-l", "--info", "--gitignore")),
    ),
    "file": Program(
        options="""-b --brief -c --checking-printout -e=word --exclude=word --exclude-quiet=word -F=word
            --separator=word -i --mime --apple --extension --mime-type --mime-encoding -k --keep-going -l --list
            -L --dereference -h --no-dereference -n --no-buffer -N --no-pad -0 --print0 -P=word --parameter=word -r
            --raw --help -v --version""",
        harmful={
            "-C": "writes a magic file",
            "--compile": "writes a magic file",
            "-m": "uses the rules of another file",
            "--magic-file": "uses the rules of another file",
            **dict.fromkeys(("-f", "--files-from"), _NAMES),
            **dict.fromkeys(("-z", "--uncompress", "-Z", "--uncompress-noreport"), "runs programs that decompress"),
            **dict.fromkeys(("-s", "--special-files"), "reads devices"),
            **dict.fromkeys(("-p", "--preserve-date"), "sets the times of files"),
            **dict.fromkeys(("-S", "--no-sandbox"), "switches off its own sandbox"),
        },
    ),
}
