"""Programs that process lines of text: from files or a pipe to their output."""

from __future__ import annotations

from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Invocation, Program
from haft.policy.analysis.programs.shared_checks import UNKNOWN, at_most, known_words

_NAMES: Final = "reads the files that a list names"
_ENDLESS: Final = "waits endlessly"
_FOLLOWED: Final = regex(r"\+[0-9]*[bcl]?f")


def _tail(invocation: Invocation) -> str | None:
    """Refuse an old spelling of options that begins with a plus: `tail +5f` waits endlessly, like `-f`. Returns the
    reason, or None."""
    words = known_words(invocation.operands)
    if words is None:
        return UNKNOWN
    return next((f"`tail {word}` {_ENDLESS}" for word in words if _FOLLOWED.fullmatch(word)), None)


TEXT: Final[dict[str, Program]] = {
    "cat": Program(
        options="""-A --show-all -b --number-nonblank -e -E --show-ends -n --number -s --squeeze-blank -t -T --show-tabs
            -u -v --show-nonprinting --help --version""",
        all_options_harmless=True,
    ),
    "tac": Program(
        options="-b --before -r --regex -s=word --separator=word --help --version", all_options_harmless=True
    ),
    "rev": Program(options="-0 --zero -h --help -V --version", all_options_harmless=True),
    "nl": Program(
        options="""-b=word --body-numbering=word -d=word --section-delimiter=word -f=word --footer-numbering=word
            -h=word --header-numbering=word -i=word --line-increment=word -l=word --join-blank-lines=word
            -n=word --number-format=word -p --no-renumber -s=word --number-separator=word -v=word
            --starting-line-number=word -w=word --number-width=word --help --version""",
        all_options_harmless=True,
    ),
    "head": Program(
        options="""-c=word --bytes=word -n=word --lines=word -q --quiet --silent -v --verbose -z --zero-terminated
            --help --version""",
        all_options_harmless=True,
        number_option=True,
    ),
    "tail": Program(
        options="""-c=word --bytes=word -n=word --lines=word -q --quiet --silent -v --verbose -z --zero-terminated
            --help --version""",
        harmful={"-f": _ENDLESS, "-F": _ENDLESS, "--follow": _ENDLESS, "--retry": _ENDLESS, "--pid": _ENDLESS},
        number_option=True,
        check=_tail,
    ),
    "wc": Program(
        options="""-c --bytes -m --chars -l --lines -L --max-line-length -w --words --total=word --debug --help
            --version""",
        all_options_harmless=True,
        harmful={"--files0-from": _NAMES},
    ),
    "sort": Program(
        options="""-b --ignore-leading-blanks -d --dictionary-order -f --ignore-case -g --general-numeric-sort
            -i --ignore-nonprinting -M --month-sort -h --human-numeric-sort -n --numeric-sort -R --random-sort
            --random-source=path -r --reverse --sort=word -V --version-sort --batch-size=word -c --check[=word] -C
            --debug -k=word --key=word -m --merge -s --stable -S=word --buffer-size=word -t=word
            --field-separator=word --parallel=word -u --unique -z --zero-terminated --help --version""",
        harmful={
            "-o": "writes a file",
            "--output": "writes a file",
            "--compress-program": "runs a program",
            "-T": "writes its temporary files to a path from its arguments",
            "--temporary-directory": "writes its temporary files to a path from its arguments",
            "--files0-from": _NAMES,
        },
    ),
    "uniq": Program(
        options="""-c --count -d --repeated -D --all-repeated[=word] -f=word --skip-fields=word --group[=word]
            -i --ignore-case -s=word --skip-chars=word -u --unique -z --zero-terminated -w=word --check-chars=word
            --help --version""",
        check=at_most(1, "the second operand of `uniq` is a file that it writes"),
    ),
    "cut": Program(
        options="""-b=word --bytes=word -c=word --characters=word -d=word --delimiter=word -f=word --fields=word -n
            --complement -s --only-delimited --output-delimiter=word -z --zero-terminated --help --version""",
        all_options_harmless=True,
    ),
    "paste": Program(
        options="-d=word --delimiters=word -s --serial -z --zero-terminated --help --version", all_options_harmless=True
    ),
    "tr": Program(
        options="-c -C --complement -d --delete -s --squeeze-repeats -t --truncate-set1 --help --version",
        operands="words",
        all_options_harmless=True,
    ),
    "fold": Program(
        options="-b --bytes -c --characters -s --spaces -w=word --width=word --help --version",
        all_options_harmless=True,
        number_option=True,
    ),
    "fmt": Program(
        options="""-c --crown-margin -p=word --prefix=word -s --split-only -t --tagged-paragraph -u --uniform-spacing
            -w=word --width=word -g=word --goal=word --help --version""",
        all_options_harmless=True,
        number_option=True,
    ),
    "expand": Program(
        options="-i --initial -t=word --tabs=word --help --version", all_options_harmless=True, number_option=True
    ),
    "unexpand": Program(
        options="-a --all --first-only -t=word --tabs=word --help --version",
        all_options_harmless=True,
        number_option=True,
    ),
    "column": Program(
        options="""-t --table -n=word --table-name=word -O=word --table-order=word -N=word --table-columns=word
            -l=word --table-columns-limit=word -E=word --table-noextreme=word -d --table-noheadings
            -e --table-header-repeat -H=word --table-hide=word -R=word --table-right=word -T=word
            --table-truncate=word -W=word --table-wrap=word -L --keep-empty-lines -J --json -r=word --tree=word
            -i=word --tree-id=word -p=word --tree-parent=word -c=word --output-width=word -o=word
            --output-separator=word -s=word --separator=word -x --fillrows -h --help -V --version""",
        all_options_harmless=True,
    ),
    "comm": Program(
        options="""-1 -2 -3 --check-order --nocheck-order --output-delimiter=word --total -z --zero-terminated --help
            --version""",
        all_options_harmless=True,
    ),
    "join": Program(
        options="""-a=word -e=word -i --ignore-case -j=word -o=word -t=word -v=word -1=word -2=word --check-order
            --nocheck-order --header -z --zero-terminated --help --version""",
        all_options_harmless=True,
    ),
    "pr": Program(
        options="""-a --across -c --show-control-chars -d --double-space -e[=word] -f -F --form-feed -h=word
            --header=word -i[=word] -J --join-lines -l=word --length=word -m --merge -n[=word] -N=word -o=word
            --indent=word -r --no-file-warnings -s[=word] -S[=word] -t --omit-header -T --omit-pagination -v
            -w=word --width=word -W=word --page-width=word --columns=word --pages=word --help --version""",
        all_options_harmless=True,
        number_option=True,
    ),
    "shuf": Program(
        options="""-e --echo -i=word --input-range=word -n=word --head-count=word --random-source=path -z
            --zero-terminated --help --version""",
        harmful={"-o": "writes a file", "--output": "writes a file", "-r": _ENDLESS, "--repeat": _ENDLESS},
    ),
    "tsort": Program(options="--help --version", all_options_harmless=True),
    # If the name of an encoding contains a slash, `iconv` opens it as a file, even if it ends in `//TRANSLIT`.
    "iconv": Program(
        options="""-f=path --from-code=path -t=path --to-code=path -l --list -c -s --silent --verbose -? --help --usage
            -V --version""",
        harmful={"-o": "writes a file", "--output": "writes a file"},
    ),
}
