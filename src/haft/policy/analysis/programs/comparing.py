"""Programs that compare files."""

from __future__ import annotations

from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Invocation, LinkReason, Program
from haft.policy.analysis.programs.shared_checks import known_words

_FOLLOWS_LINKS: Final = LinkReason("`diff` follows links inside of directories; with `--no-dereference` it does not")
_NO_DIRECTORY: Final = regex(r"-|/dev/(?:null|stdin|fd/[0-9]+)")

_DIFF: Final = """
    --normal -q --brief -s --report-identical-files -c -C=word --context[=word] -u -U=word --unified[=word]
    -e --ed -f --forward-ed -n --rcs -y --side-by-side -W=word --width=word --left-column --suppress-common-lines
    -p --show-c-function -F=word --show-function-line=word -L=word --label=word -t --expand-tabs -T --initial-tab
    --tabsize=word --suppress-blank-empty -r --recursive --no-dereference -N --new-file -P
    --unidirectional-new-file --ignore-file-name-case --no-ignore-file-name-case -x=word --exclude=word
    -X=path --exclude-from=path -S=word --starting-file=word --from-file=path --to-file=path -i --ignore-case
    -E --ignore-tab-expansion -Z --ignore-trailing-space -b --ignore-space-change -w --ignore-all-space
    -B --ignore-blank-lines -I=word --ignore-matching-lines=word -a --text --strip-trailing-cr -D=word --ifdef=word
    --line-format=word --old-line-format=word --new-line-format=word --unchanged-line-format=word
    --old-group-format=word --new-group-format=word --unchanged-group-format=word --changed-group-format=word
    -d --minimal --horizon-lines=word -H --speed-large-files --color[=word] --palette=word --help -v --version
"""
_PAGINATES: Final = {"-l": "runs `pr`", "--paginate": "runs `pr`"}


def _stays(invocation: Invocation) -> str | None:
    """Refuse operands that may be directories, unless `diff` follows no links. `diff` compares the files in two
    directories, or a file with the file of the same name in a directory. These files may be links out of the workspace.
    Returns the reason, or None."""
    if invocation.has("--no-dereference"):
        return None
    words = known_words(invocation.operands)
    if words is None or invocation.has("--from-file", "--to-file"):
        return _FOLLOWS_LINKS
    are_files = all(map(_NO_DIRECTORY.fullmatch, words)) or (len(words) == 2 and "-" in words)
    return None if are_files else _FOLLOWS_LINKS


COMPARING: Final[dict[str, Program]] = {
    "diff": Program(options=_DIFF, harmful=_PAGINATES, check=_stays, number_option=True),
    "colordiff": Program(options=_DIFF, harmful=_PAGINATES, check=_stays, number_option=True, starts_others=True),
    "cmp": Program(
        options="""-b --print-bytes -i=word --ignore-initial=word -l --verbose -n=word --bytes=word -s --quiet --silent
            -v --version --help""",
        all_options_harmless=True,
    ),
    "diff3": Program(
        options="""-A --show-all -e --ed -E --show-overlap -3 --easy-only -x --overlap-only -X -i -m --merge -a --text
            --strip-trailing-cr -T --initial-tab -L=word --label=word --help -v --version""",
        harmful={"--diff-program": "runs a program"},
        starts_others=True,
    ),
    "sdiff": Program(
        options="""-i --ignore-case -E --ignore-tab-expansion -Z --ignore-trailing-space -b --ignore-space-change
            -W --ignore-all-space -B --ignore-blank-lines -I=word --ignore-matching-lines=word --strip-trailing-cr
            -a --text -w=word --width=word -l --left-column -s --suppress-common-lines -t --expand-tabs
            --tabsize=word -d --minimal -H --speed-large-files --help -v --version""",
        harmful={"-o": "writes a file", "--output": "writes a file", "--diff-program": "runs a program"},
        starts_others=True,
        check=_stays,
    ),
}
