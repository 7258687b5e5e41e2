"""Programs that search in files, or for files by their names alone."""

from __future__ import annotations

from typing import Final

from haft.policy.analysis.program import Invocation, Program
from haft.policy.analysis.programs.shared_checks import all_of, follows_links, leads_out, no_dashed_values

_FOLLOWS: Final = "follows links, even out of the workspace"
_RUNS: Final = "runs a program"

_GREP: Final = """
    -E --extended-regexp -F --fixed-strings -G --basic-regexp -P --perl-regexp -e=word --regexp=word -f=path
    --file=path -i -y --ignore-case --no-ignore-case -w --word-regexp -x --line-regexp -z --null-data
    -s --no-messages -v --invert-match -V --version --help -m=word --max-count=word -b --byte-offset
    -n --line-number --line-buffered -H --with-filename -h --no-filename --label=word -o --only-matching
    -q --quiet --silent --binary-files=word -a --text -I -d=word --directories=word -D=word --devices=word
    -r --recursive -R --dereference-recursive --include=word --exclude=word --exclude-from=path --exclude-dir=word
    -L --files-without-match
    -l --files-with-matches -c --count -T --initial-tab -Z --null -B=word --before-context=word -A=word
    --after-context=word -C=word --context=word --group-separator=word --no-group-separator --color[=word]
    --colour[=word] -U --binary -u --unix-byte-offsets
"""


def _devices(invocation: Invocation) -> str | None:
    """Refuse options that make a recursive `grep` open the FIFOs and devices that it finds. By default, `grep` skips
    them. Returns the reason, or None."""
    if all(value == "skip" for name, value in invocation.options if name in ("-D", "--devices")):
        return None
    return f"`{invocation.name}` would read devices and FIFOs that it finds"


_GREP_ENTRY: Final = Program(
    options=_GREP,
    operands="pattern-paths",
    patterns=("-e", "--regexp", "-f", "--file", "-V", "--version", "--help"),
    all_options_harmless=True,
    check=all_of(_devices, follows_links("-R", "--dereference-recursive")),
    number_option=True,
)

_RG: Final = """
    -e=word --regexp=word -f=path --file=path -s --case-sensitive --crlf --no-crlf --dfa-size-limit=word
    -E=word --encoding=word --no-encoding --engine=word -F --fixed-strings --no-fixed-strings -i --ignore-case
    -v --invert-match --no-invert-match -x --line-regexp -m=word --max-count=word --mmap --no-mmap -U --multiline
    --no-multiline --multiline-dotall --no-multiline-dotall --no-unicode --unicode --null-data -P --pcre2 --no-pcre2
    --regex-size-limit=word -S --smart-case --stop-on-nonmatch -a --text --no-text -j=word --threads=word
    -w --word-regexp --auto-hybrid-regex --no-auto-hybrid-regex --no-pcre2-unicode --pcre2-unicode --binary
    --no-binary -L --follow --no-follow -g=word --glob=word --glob-case-insensitive --no-glob-case-insensitive -.
    --hidden --no-hidden --iglob=word --ignore-file=path --ignore-file-case-insensitive
    --no-ignore-file-case-insensitive -d=word --max-depth=word --maxdepth=word --max-filesize=word --no-ignore --ignore
    --no-ignore-dot --ignore-dot --no-ignore-exclude --ignore-exclude --no-ignore-files --ignore-files
    --no-ignore-global --ignore-global
    --no-ignore-parent --ignore-parent --no-ignore-vcs --ignore-vcs --no-require-git --require-git --one-file-system
    --no-one-file-system -t=word --type=word -T=word --type-not=word --type-add=word --type-clear=word
    -u --unrestricted -A=word --after-context=word -B=word --before-context=word --block-buffered
    --no-block-buffered -b --byte-offset --no-byte-offset --color=word --colors=word --column --no-column -C=word
    --context=word --context-separator=word --no-context-separator --field-context-separator=word
    --field-match-separator=word --heading --no-heading -h --help --hyperlink-format=word --include-zero
    --no-include-zero --line-buffered --no-line-buffered -n --line-number -N --no-line-number -M=word
    --max-columns=word --max-columns-preview --no-max-columns-preview -0 --null -o --only-matching
    --path-separator=word --passthru --passthrough -p --pretty -q --quiet -r=word --replace=word --sort=word
    --sortr=word --sort-files --no-sort-files --trim --no-trim --vimgrep -H --with-filename -I --no-filename
    -c --count --count-matches -l --files-with-matches --files-without-match --json --no-json
    --no-ignore-messages --no-messages --messages --stats --no-stats --files
    --generate=word --pcre2-version --type-list -V --version --no-pre --no-search-zip
"""

_FD: Final = """
    -H --hidden --no-hidden -I --no-ignore --ignore --no-ignore-vcs --ignore-vcs --no-ignore-parent
    --no-global-ignore-file --no-require-git -u --unrestricted -s --case-sensitive -i --ignore-case -g --glob --regex
    -F --fixed-strings --literal --and=word -a --absolute-path --relative-path -L --follow --no-follow -p --full-path
    -0 --print0 -d=word --max-depth=word --maxdepth=word --min-depth=word --exact-depth=word -E=word --exclude=word
    --prune -t=word --type=word -e=word --extension=word -S=word --size=word --changed-within=word
    --changed-before=word --newer=word --older=word --change-newer-than=word --change-older-than=word -o=word
    --owner=word --format=word -c=word --color=word --hyperlink[=word] -j=word --threads=word --max-results=word
    -1 -q --quiet --has-results --show-errors --path-separator=word --search-path=path --strip-cwd-prefix[=word]
    --one-file-system --mount --xdev --ignore-file=path -C=path --base-directory=path -h --help -V --version
"""


def _dates(invocation: Invocation) -> str | None:
    """Refuse a date that is a path out of the workspace: if a file of that name exists, `fd` takes the file's time.
    Returns the reason, or None."""
    dated = ("--newer", "--older", "--changed-within", "--changed-before", "--change-newer-than", "--change-older-than")
    values = (value for name, value in invocation.options if name in dated)
    return next((f"`{value}` lies outside the workspace" for value in values if value and leads_out(value)), None)


def _base(invocation: Invocation) -> str | None:
    """Refuse `-C` together with paths: `fd` resolves the paths from the directory of `-C`, but haft resolves them from
    the directory of the command line. Returns the reason, or None."""
    moves = invocation.has("-C", "--base-directory")
    has_places = len(invocation.operands) > 1 or invocation.has("--search-path", "--ignore-file")
    return "`fd -C` looks for places from another directory" if moves and has_places else None


_FD_ENTRY: Final = Program(
    options=_FD,
    operands="pattern-paths",
    harmful={
        **dict.fromkeys(("-x", "--exec", "-X", "--exec-batch"), _RUNS),
        **dict.fromkeys(("-l", "--list-details"), "runs `ls`"),
    },
    check=all_of(no_dashed_values, _base, _dates, follows_links("-L", "--follow")),
)
_RG_ENTRY: Final = Program(
    options=_RG,
    operands="pattern-paths",
    patterns=("-e", "--regexp", "-f", "--file", "--files", "--type-list", "-V", "--version", "-h", "--help"),
    harmful={
        **dict.fromkeys(("--ignore-messages", "--no-config"), "prints lines of a file that `.ignore` may link to"),
        "--pre": _RUNS,
        "--pre-glob": _RUNS,
        "--hostname-bin": _RUNS,
        **dict.fromkeys(("-z", "--search-zip"), "runs programs that decompress"),
    },
    check=follows_links("-L", "--follow"),
)

SEARCHING: Final[dict[str, Program]] = {
    "grep": _GREP_ENTRY,
    "egrep": _GREP_ENTRY,
    "fgrep": _GREP_ENTRY,
    "rg": _RG_ENTRY,
    "fd": _FD_ENTRY,
    "fdfind": _FD_ENTRY,
    "ag": Program(
        options="""
            --break --nobreak -c --count --color --nocolor --column
            -H --heading --noheading --line-numbers -l --files-with-matches -L
            --files-without-matches --print-long-lines --passthrough --silent --stats --stats-only --vimgrep -0
            --null -a --all-types --depth=word -g=word -G=word --file-search-regex=word --hidden -i --ignore-case
            --ignore=word --ignore-dir=word -m=word --max-count=word --one-device -Q --literal -F --fixed-strings -s
            --case-sensitive -S --smart-case --search-binary -t --all-text -u --unrestricted -U --skip-vcs-ignores
            -v --invert-match -w --word-regexp -W=word --width=word --nofollow --numbers --nonumbers --filename
            --nofilename -o --only-matching --help --version -V
        """,
        operands="pattern-paths",
        patterns=("-g", "--help", "--version", "-V"),
        harmful={
            "--pager": _RUNS,
            **dict.fromkeys(("-f", "--follow"), _FOLLOWS),
            **dict.fromkeys(("-z", "--search-zip"), "unpacks the files that it finds"),
        },
        check=no_dashed_values,
    ),
}
