"""Lines made from other lines by chance: what somebody might try who knows how such lines are looked at."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence

SNIPPETS = (
    "-delete", "-exec", "touch x", "-o", "-onew", "--output=new", "-i", "-e", "-w", "-f", "/etc/hostname", "~/.netrc",
    "../..", "out-link/hostname", "traps/hostname", "traps/up", "$(touch x)", "`touch x`", "<(touch x)", ">(touch x)",
    "> new", ">> new", ">| new", "2> new", "&> new", "<> new", "| sh", "| tee new", "| xargs touch", "&& touch x",
    "; touch x", "|| touch x", "& touch x", "\ntouch x", "w new", "'w new'", "'1e touch x'", "s/a/b/w new", "s/a/b/e",
    "'BEGIN{system(\"touch x\")}'", '{print > "new"}', "--pre=./traps/payload", "-C", "-c",
    "core.fsmonitor=./traps/payload", "--ext-diff", "--textconv", "--no-index", "-O./traps/payload",
    "--compress-program=./traps/payload", "-S1K", "*", "-*", "{a,b}", "$x", "${x:=touch}", "${x@P}", "${!x}",
    "$SECRET", "$HOME", "x='a[$(touch x)]'", "$((x))", "PATH=traps/bin", "PATH=traps/bin:$PATH;", "LD_PRELOAD=./x.so",
    "BASH_ENV=traps/commands", "GIT_EXTERNAL_DIFF=./traps/payload", "IFS=/", "cd traps/sort;", "cd ..;",
    "cd out-link;", "-fprint", "new", "-files0-from", "--files0-from=traps/names", "-f/etc/hostname", "-r", "-R",
    "-L", "-H", "--", "-", "eval", "exec", "command", "env", "xargs", "sudo", "sh -c", "time", "ls() { touch x; };",
    "alias ls='touch x';", "set -x;", "set --", "-v", "-D", "-d", "-m", "-u", "--set-upstream-to=main", "--global",
    "--unset", "--edit", "-X", "-T.", "--random-source=/etc/hostname", "--rcfile", "-s", "--set=tomorrow",
    "/proc/self/environ", "/dev/tcp/127.0.0.1/80", "< /dev/tcp/127.0.0.1/80", "< /etc/hostname", "<<< $(touch x)",
    "<<EOF\n$(touch x)\nEOF", "# it's\n", "\\\n", "printf -v PATH %s traps/bin", "read PATH <<< traps/bin;",
    "test -v", "'a[$(touch x)]'", "[[ x -eq 1 ]]", "(( x ))", "{ touch x; }", "!", "-ok", "-fls", "-execdir",
    "-printf", "-newerXY", "--config-env=a=b", "--exec-path=traps/exec", "--git-dir=traps", "--work-tree=/etc", "-p",
    "--open-files-in-pager=sh", "feature", "HEAD", "a.txt", "b.txt", "src", "-n", "1", "-k1", "-t,", "--help",
    "--version", 'getline < "/etc/hostname"', "$1", "${PATH}", "${x/a/b}", "${#x}", "$'\\x2d'delete", '-"o"',
    "$(cat traps/names)", "`cat traps/names`",
)  # fmt: skip
OPERATORS = (
    " && ", " || ", "; ", " | ", " |& ", " & ", "\n", ";", "&&", "|", " && ! ", " ; \\\n ",
)  # fmt: skip
WRAPPERS = (
    "$(LINE)", "`LINE`", "( LINE )", "{ LINE; }", "echo $(LINE)", 'echo "$(LINE)"', "if LINE; then ls; fi",
    "for i in 1 2; do LINE; done", "while LINE; do break; done", "cat <(LINE)", "! LINE", "time LINE",
    "x=$(LINE); echo $x", "f() { LINE; }; f", "case a in a) LINE;; esac", "until LINE; do break; done",
    "LINE > /dev/null", "LINE 2>&1", "LINE < /dev/null", "command LINE", "for f in *; do LINE; done",
    "xargs LINE < data/words.txt", "ls | xargs LINE", "cd src && LINE", "cd traps/sort && LINE",
    "cd traps/uniq && LINE", "while read x; do LINE; done < data/words.txt", "[[ -n $(LINE) ]]",
    "cat <<EOF\n$(LINE)\nEOF", "timeout 3 LINE", "LINE &", "set -e; LINE", "find . -maxdepth 1 -exec LINE \\;",
    "x='touch x'; LINE", "x=-o; LINE $x", "for x in -o new; do LINE $x; done", "echo 'LINE'", "# LINE\nls",
)  # fmt: skip
ODD = (
    "\r", "\t", "\u000b", "\u00a0", "\u200b", "\u202e", "\u001b", "\\", "'", '"', "$", "`", "#", "!", "~", "*", "?",
    "[", "]", "{", "}", "(", ")", "<", ">", "|", "&", ";", "\n", "=", "-", "--", "\\\n", "''", '""', "$''", '$""',
    "${}", "ä", "^", "%", "@", ",", "..", "/",
)  # fmt: skip
QUOTES = (
    "'LINE'", '"LINE"', "$'LINE'", "\\LINE", '"${x:-LINE}"', "{LINE,b}", "$(LINE)", "${LINE}",
)  # fmt: skip
WORD = re.compile(r"\s+|[^\s]+")


class Mutator:
    """Makes one line after another out of a stock; the same ones for the same seed."""

    def __init__(self, stock: Sequence[str], seed: int | str) -> None:
        self._stock = list(stock)
        self._random = random.Random(seed)
        self._ways: tuple[Callable[[str], str], ...] = (
            self._insert_snippet, self._insert_snippet, self._swap_words, self._delete_word, self._replace_word,
            self._replace_word, self._join, self._wrap, self._split_word, self._insert_odd, self._double, self._cluster,
            self._abbreviate, self._quote, self._prefix, self._word_of_another, self._word_of_another, self._append,
        )  # fmt: skip

    def lines(self, count: int) -> Iterator[str]:
        """So many; some may come twice."""
        for _ in range(count):
            line = self._random.choice(self._stock)
            for _ in range(self._random.choice((1, 1, 1, 2, 2, 3))):
                line = self._random.choice(self._ways)(line)
            yield line.replace("\x00", "")[:4000]

    def _pick(self, choices: Sequence[str]) -> str:
        return self._random.choice(choices)

    def _words(self, line: str) -> tuple[list[str], int]:
        words = WORD.findall(line) or ["ls"]
        solid = [place for place, word in enumerate(words) if not word.isspace()] or [0]
        return words, self._random.choice(solid)

    def _insert_snippet(self, line: str) -> str:
        words, place = self._words(line)
        words.insert(place + self._random.randint(0, 1), f" {self._pick(SNIPPETS)} ")
        return "".join(words)

    def _append(self, line: str) -> str:
        return f"{line} {self._pick(SNIPPETS)}"

    def _swap_words(self, line: str) -> str:
        words, one = self._words(line)
        _, other = self._words(line)
        words[one], words[other] = words[other], words[one]
        return "".join(words)

    def _delete_word(self, line: str) -> str:
        words, place = self._words(line)
        del words[place]
        return "".join(words)

    def _replace_word(self, line: str) -> str:
        words, place = self._words(line)
        words[place] = self._pick(SNIPPETS)
        return "".join(words)

    def _word_of_another(self, line: str) -> str:
        words, place = self._words(line)
        others, chosen = self._words(self._pick(self._stock))
        words.insert(place + 1, f" {others[chosen]} ")
        return "".join(words)

    def _join(self, line: str) -> str:
        return f"{line}{self._pick(OPERATORS)}{self._pick(self._stock)}"

    def _wrap(self, line: str) -> str:
        return self._pick(WRAPPERS).replace("LINE", line)

    def _split_word(self, line: str) -> str:
        place = self._random.randint(0, len(line))
        return line[:place] + self._pick(("''", '""', "\\", "\\\n", "$''", "${z}", "$@", "'", '"')) + line[place:]

    def _insert_odd(self, line: str) -> str:
        place = self._random.randint(0, len(line))
        return line[:place] + self._pick(ODD) + line[place:]

    def _double(self, line: str) -> str:
        words, place = self._words(line)
        words.insert(place, words[place] + " ")
        return "".join(words)

    def _cluster(self, line: str) -> str:
        words, place = self._words(line)
        dashed = [each for each, word in enumerate(words) if re.fullmatch(r"-\w+", word)]
        place = self._random.choice(dashed) if dashed else place
        words[place] += self._pick("abcdefghiklmnopqrstuvwxzCDEFHILOPRSTUVX0")
        return "".join(words)

    def _abbreviate(self, line: str) -> str:
        return re.sub(
            r"--([a-z-]{3,})", lambda match: f"--{match[1][: self._random.randint(2, len(match[1]))]}", line, count=1
        )

    def _quote(self, line: str) -> str:
        words, place = self._words(line)
        words[place] = self._pick(QUOTES).replace("LINE", words[place])
        return "".join(words)

    def _prefix(self, line: str) -> str:
        return f"{self._pick(SNIPPETS)} {line}"
