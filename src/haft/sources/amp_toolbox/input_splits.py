"""Finds where a script splits text at `:` or `=`, and estimates how likely it is that this text is the script's input.

A rough parser for many languages: it follows variable names line by line from the line that reads stdin, and knows no
scopes. `separator` evaluates the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

INPUT: Final = 3
"""The text comes from stdin."""
NAMED_LIKE_INPUT: Final = 2
"""The origin of the text is unknown, but the name of its variable suggests a line of input."""
UNKNOWN: Final = 1
NOT_INPUT: Final = 0
"""The text is not the input, but the output of another program, a value or a file."""

_LONGEST_LINE: Final = 500
_MOST_LINES: Final = 5_000
_LINES: Final = frozenset(("entry", "input", "kv", "l", "line", "lines", "pair", "pairs", "raw", "stdin", "text", "_"))
_SOURCE: Final = re.compile(
    r"\b(?:sys|process|Bun|Deno)\.stdin\b|\bSTDIN\b|\$stdin\b|<>|php://stdin|/dev/stdin|\bos\.Stdin\b|\bio::stdin\b"
    r"|readFileSync\(\s?0|createInterface|\$\(\s?cat\s?-?\s?\)|\bfileinput\b|\bARGF\b|\bio\.(?:read|lines|stdin)\b"
    r"|\bSystem\.in\b|\binput\(\)"
)
_STARTED: Final = re.compile(
    r"subprocess|\bexec|spawn|\bfetch\b|\bcurl\b|popen|\bsystem\b|requests\.|urlopen|\bopen\s?\(|readFile(?!Sync\(\s?0)"
    r"|createReadStream|\$\(\s?(?!cat\b|echo\b|printf\b|tr\b|sed\b|grep\b|head\b|tail\b|awk\b|cut\b|<)\w|\benv\b|\bargv\b"
)
"""Expressions that read from another program, a file or the command line."""
_QUOTED: Final = r"""[rfbu]{0,2}(?:"[^"\n]{0,120}"|'[^'\n]{0,120}'|`[^`\n]{0,120}`)"""
_REGEX: Final = r"""/(?:[^/\\\n]|\\.){1,120}/"""
_NOT_A_MARK: Final = re.compile(r"\(\?<?[:=!]|\[:\w+:\]|://|::|[=!<>]=|=[>~]")

_SAID: Final = re.compile(
    r"(?:echo|printf|print|console\.\w+|puts|cat|say|fmt\.Print\w*|name:|description:)(?![\w])[^|]*$"
)
_HEREDOC: Final = re.compile(r"""\bcat\b[^|<]{0,40}<<[-~]?\s?["']?(\w+)""")
_ASSIGNED: Final = re.compile(
    r"^(?:(?:const|let|var|my|our|local|export|readonly|mut|auto|String|if|while|declare(?:\s-\w+)?)\s*\(?\s*){0,3}\(*"
    r"[$@%]?(\w+)(?:,\s*\w+){0,4}(?:\s?:\s?[\w\[\], .|]{1,40}?)?\s*:?=(?![=~>])\s*(.*)"
)
_LOOPED: Final = re.compile(
    r"\bfor(?:each)?\b\s*(?:await\s*)?\(?\s*(?:(?:const|let|var|my)\s+)?[$@]?(\w+)\s+(?:in|of)\s+(.*)"
)
_OVER: Final = re.compile(r"\bforeach\s*(?:my\s+)?(?:\$(\w+)\s*)?\((.*?)(?:\s+as\s+\$(\w+))?\)\s*\{?$")
_HANDED: Final = re.compile(
    r"([\w$]+)[^|]{0,120}?\.(?:on|map|forEach|filter|each|each_line|each_with_object|reduce|flatMap|map_while)\b"
    r"[^|=(]{0,40}?(?:\(|\|)\s*(?:[\"']\w+[\"']\s*,\s*)?(?:async\s+)?(?:function\s*)?\(?\s*\|?\s*(\w+)\b(?=[^'\"]{0,30}?(?:=>|\||\)\s*\{))"
)
_GROWN: Final = re.compile(r"\b(\w+)(?:\s*\+=\s*|\.push\()[$]?(\w+)")
_FILLED: Final = re.compile(r"stdin\b.{0,60}?&mut\s+(\w+)")
_ARRAY: Final = re.compile(r"\b(?:mapfile|readarray)\b(?:\s+-\w+)*\s+(\w+)\s*(?:<\s*(.*))?")
_RUN: Final = re.compile(
    r"\b(?:eval|export|declare|local)\s+[\"']?\$\{?(\w+)\}?[\"']?\s*(?:;|$)|(?:\bsource|^\.)\s+(/dev/stdin|<\(cat)"
)
"""Commands with which a shell evaluates text as assignments."""
_SHELL_READ: Final = re.compile(
    r"(?:^|[;|&(]|\b(?:while|until|if|do|then)\b)\s*(?:IFS=(?P<ifs>\$?'[^']*'|\$?\"[^\"]*\"|[^\s;]*)\s+)?"
    r"(?P<read>read)\b(?=\s|$)(?P<rest>[^;|&]*)"
)
_PIPED: Final = re.compile(r"(.*[^|])\|\s*(?:while\s+)?(?:IFS=.{0,8}\s)?$")
_IFS: Final = re.compile(r"^(?:local\s+|export\s+)?IFS=(\$?'[^']*'|\$?\"[^\"]*\"|[^\s;]*)\s*;?$")
_STEPS: Final = re.compile(
    r"\bcut\b[^|]{0,40}?(?:-d\s?|--delimiter[= ])(?P<cut>\\?[:=]|\"[^\"]*\"|'[^']*')"
    r"|\b[gmn]?awk\b[^|]{0,40}?(?:-F\s?|\bFS\s?=\s?)(?P<awk>\\?[:=]|\"[^\"]*\"|'[^']*')"
    r"|\b(?:e?grep|sed|[gmn]?awk|rg)\b[^|]{0,60}?[\^/\"'(][\w${}]{1,40}(?P<word>\s?[:=])"
    r"|\b(?:e?grep|sed|[gmn]?awk)\b[^|]{0,60}?\[\^(?P<none>[:=])\]"
)
_STATEMENT: Final = re.compile(r"\$\(|[{;]\s|&&|\|\||\b(?:do|then|else)\b|^\w+=")
_FILTERS: Final = re.compile(r"(?:e?grep|sed|[gmn]?awk|cut|tr|rg)\b")
_EXPANDED: Final = re.compile(r"\$\{(\w+)(?:%%?|##?|//?)([^}]{1,60})\}")
_TESTED: Final = re.compile(r"\[\[?\s+[\"']?\$\{?(\w+)\}?[\"']?\s+(?:==?|=~)\s+(.{1,80}?)\s\]\]?")
_CASE: Final = re.compile(r"\bcase\s+[\"'(]?\$?\{?(\w+)")
_ARM: Final = re.compile(r"(?:^|\bin\s|;;\s?)\s*\(?[\"']?[\w|-]{1,60}(?P<mark>:\s?[\"']?\*?|=[\"']?\*)[\"']?\)")
_WHEN: Final = re.compile(rf"\bwhen\s+({_REGEX}|{_QUOTED})")
_METHOD: Final = re.compile(
    r"[$@]?\b(?P<root>\w+)(?P<chain>(?:\??[.]\w+[!?]?(?:\([^()]{0,60}\))?|\[[^\]]{0,30}\]){0,6}?)(?:\??\.|:)"
    r"(?:r?split(?:_once|n|N)?|r?partition|indexOf|r?index|find|search|match(?:All)?|starts?_?[wW]ith\??|remove_?[pP]refix"
    rf"|delete_prefix|strip_prefix|gsub|replace)\s*\(?\s*(?P<at>{_QUOTED}|{_REGEX}|[A-Z_a-z]\w*(?=\)))"
)
_CALLED: Final = re.compile(
    r"\b(?:split|SplitN?|SplitAfterN|Cut|Index(?:Byte|Rune)?|HasPrefix|TrimPrefix|CutPrefix|explode|strpos|strstr"
    r"|str_starts_with|preg_match|preg_split|match|fullmatch|search|findall|strtok|strchr|sscanf|find|IndexAny)\s?"
    r"\((?P<arguments>[^;{]{1,160})"
)
_BARE: Final = re.compile(rf"\bsplit\s+(?P<at>{_REGEX}|{_QUOTED})(?:\s*,\s*\$(?P<root>\w+))?")
_FITS: Final = re.compile(rf"\$?\b(?P<root>\w+)\s*=~\s*m?(?P<at>{_REGEX})")
_ALONE: Final = re.compile(rf"\b(?:if|unless|and)\s*\(?\s*m?(?P<at>{_REGEX})")
_TRIED: Final = re.compile(
    rf"(?P<at>{_REGEX}|\b[A-Za-z_]\w*)[a-z]{{0,4}}\.(?:exec|test|match|fullmatch|search)\(\s*(?P<of>[^()]{{1,60}})"
)
_PATTERN: Final = re.compile(
    rf"(\w+)\s*:?=\s*(?:re\.compile\(|new RegExp\(|regexp\.MustCompile\(|)\s*({_REGEX}|{_QUOTED})"
)
_MODULES: Final = frozenset(("re", "str", "string", "strings", "regexp", "bytes", "path", "os"))
_NAMES: Final = re.compile(r"[A-Za-z_]\w*|[$]\d|[$]@")


@dataclass(frozen=True, slots=True)
class Split:
    """One place where a script splits text."""

    marks: frozenset[str]
    """The character at which the script splits, `:` or `=`; both if the script accepts either."""
    likelihood: int
    """How likely the text is the input: `INPUT`, `NAMED_LIKE_INPUT`, `UNKNOWN` or `NOT_INPUT`."""


def splits(text: str) -> Iterator[Split]:
    """Every split in a script, in order."""
    lines = text.splitlines()[:_MOST_LINES]
    reader = _Reader(lines)
    until = None
    for number, line in enumerate(lines):
        code = line.strip()
        if until is not None:
            until = None if code == until else until
            continue
        if len(code) > _LONGEST_LINE or code.startswith(("#", "//", "--")):
            continue
        if (here := _HEREDOC.search(code)) is not None:
            until = here[1]
            continue
        if _SAID.match(code) is None:
            yield from reader.read(number, code)


class _Reader:
    """Tracks which variables hold the script's input."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._levels: dict[str, int] = {}
        self._patterns: dict[str, frozenset[str]] = {}
        self._ifs = ""
        self._subject = UNKNOWN

    def read(self, number: int, code: str) -> Iterator[Split]:
        found: list[Split] = [*self._shell_reads(number, code)]
        self._bind(code)
        found += self._shell(code)
        found += self._methods(code)
        yield from (one for one in found if one.marks)
        if any(one.marks for one in found) and (assigned := _ASSIGNED.match(code)) is not None:
            self._levels[assigned[1]] = NOT_INPUT  # A part of a split line is a value, and no longer a line of input.

    # Names.

    def _bind(self, code: str) -> None:
        bound = [(found[1], found[2]) for regex in (_ASSIGNED, _LOOPED) if (found := regex.search(code)) is not None]
        if (found := _OVER.search(code)) is not None:
            bound.append((found[3] or found[1] or "_", found[2]))
        if (found := _HANDED.search(code)) is not None:
            bound.append((found[2], code[: found.start(2)]))
        bound += [(found[1], "STDIN") for found in _FILLED.finditer(code)]
        if (found := _ARRAY.search(code)) is not None:
            bound.append((found[1], found[2] or "STDIN"))
        if re.search(r"\bwhile\s*\(\s*<", code):
            bound.append(("_", code))
        # In reverse order: in a comprehension, the loop comes after the expression that uses its variable.
        for name, expression in reversed(bound):
            self._levels[name] = self._level(expression)
        for found in _GROWN.finditer(code):
            self._levels[found[1]] = max(self._levels.get(found[1], NOT_INPUT), self._of(found[2]))
        if (found := _PATTERN.search(code)) is not None:
            self._patterns[found[1]] = _marks(found[2])
        if (found := _IFS.match(code)) is not None:
            self._ifs = _unquoted(found[1])

    def _of(self, name: str) -> int:
        return self._levels.get(name, NAMED_LIKE_INPUT if name in _LINES else UNKNOWN)

    def _level(self, expression: str) -> int:
        """How likely it is that an expression holds the script's input."""
        if _SOURCE.search(expression):
            return INPUT
        if _STARTED.search(expression):
            return NOT_INPUT
        names = _NAMES.findall(re.sub(r"\.\w+", "", _without_words(expression)))
        levels = [self._of(name) for name in names]
        return max(levels, default=NOT_INPUT)

    # Shells.

    def _shell_reads(self, number: int, code: str) -> Iterator[Split]:
        for found in _SHELL_READ.finditer(code):
            rest, here, word = found["rest"].partition("<<<")
            names = [each for each in rest.split("<")[0].split() if re.fullmatch(r"[A-Za-z_]\w*", each)]
            piped = _PIPED.match(code[: found.start("read")])
            if here:
                level = self._level(word)
            elif piped is not None:
                level = self._head(piped[1])
            elif "<" in rest:
                level = self._level(rest.split("<", 1)[1])
            else:
                level = self._fed(number)
            ifs = self._ifs if found["ifs"] is None else _unquoted(found["ifs"])
            marks = frozenset(ifs) & {":", "="}
            is_split = bool(marks) and (len(names) > 1 or "-a" in rest or "-ra" in rest)
            for position, name in enumerate(names):
                self._levels[name] = level if position == 0 and not is_split else NOT_INPUT
            if is_split:
                yield Split(marks, level)

    def _fed(self, number: int) -> int:
        """How likely it is that a loop reads the script's input, judged by the redirection at the end of the loop."""
        if not re.search(r"\b(?:while|until)\b", self._lines[number]):
            return INPUT
        depth = 0
        for line in self._lines[number : number + 200]:
            depth += len(re.findall(r"(?:^|[;&|]|\bdo\b|\bthen\b)\s*(?:while|until|for|select)\b", line.strip()))
            for found in re.finditer(r"(?:^|[;&\s])done\b([^;|]*)", line):
                depth -= 1
                if depth <= 0:
                    redirected = found[1].partition("<")[2]
                    return self._head(redirected.lstrip("<( ")) if redirected else INPUT
        return INPUT

    def _head(self, pipeline: str) -> int:
        """How likely it is that the first command in a pipeline prints the script's input."""
        first = _STATEMENT.split(pipeline.split("|")[0])[-1].strip(" ()\"'")
        if re.match(r"(?:echo|printf)\b|[$<]", first):
            return self._level(re.sub(r"^(?:echo|printf)\b", "", first))
        if re.fullmatch(r"cat(?:\s-)?|/dev/stdin|&0", first):
            return INPUT
        if _FILTERS.match(first) and "<" not in first:
            quoted = re.sub(_QUOTED, "Q", first)
            words = [word for word in quoted.split()[1:] if not word.startswith("-") and not word.isdigit()]
            return INPUT if len(words) <= 1 else NOT_INPUT
        return NOT_INPUT

    def _shell(self, code: str) -> Iterator[Split]:
        for found in _STEPS.finditer(code):
            here = code[found.end() :].partition("<<<")[2]
            before = _STATEMENT.split(code[: found.start()])[-1]
            pipeline = before if "|" in before else before + code[found.start() :]
            level = self._level(here) if here else self._head(pipeline)
            yield Split(_set(next(each for each in found.groups() if each)), level)
        for found in _EXPANDED.finditer(code):
            yield Split(_marks(found[2].replace("*", ".")), self._of(found[1]))
        for found in _RUN.finditer(code):
            level = INPUT if found[2] else self._of(found[1])
            yield Split(frozenset("=") if level >= NAMED_LIKE_INPUT else frozenset(), level)
        for found in _TESTED.finditer(code):
            yield Split(_marks(found[2].replace("*", ".")), self._of(found[1]))
        if (case := _CASE.search(code)) is not None:
            self._subject = self._of(case[1])
        for found in _ARM.finditer(code):
            yield Split(_set(found["mark"]), self._subject)
        for found in _WHEN.finditer(code):
            yield Split(_marks(found[1]), self._subject)

    # Other languages.

    def _methods(self, code: str) -> Iterator[Split]:
        for found in _METHOD.finditer(code):
            if found["root"] not in _MODULES:
                whole = found["root"] + found["chain"]
                level = INPUT if _SOURCE.search(whole) else self._of(found["root"])
                yield Split(self._at(found["at"]), level)
        for found in _CALLED.finditer(code):
            said = found["arguments"]
            names = [name for name in _NAMES.findall(_without_words(said)) if name not in self._patterns]
            marks = [each for word in re.findall(f"{_QUOTED}|{_REGEX}", said)[:1] if (each := _marks(word))]
            if names and marks:
                yield Split(marks[0], INPUT if _SOURCE.search(said) else max(map(self._of, names)))
        for regex in (_BARE, _FITS):
            for found in regex.finditer(code):
                yield Split(_marks(found["at"]), self._of(found["root"] or "_"))
        for found in _ALONE.finditer(code) if "_" in self._levels else ():
            yield Split(_marks(found["at"]), self._levels["_"])
        for found in _TRIED.finditer(code):
            yield Split(self._at(found["at"]), self._level(found["of"]))

    def _at(self, word: str) -> frozenset[str]:
        return self._patterns.get(word, frozenset()) if re.fullmatch(r"\w+", word) else _marks(word)


def _set(text: str) -> frozenset[str]:
    return frozenset(text) & {":", "="}


def _marks(word: str) -> frozenset[str]:
    """The characters (`:`, `=` or both) at which a text or a regular expression splits; empty if it splits at
    neither."""
    inner = _NOT_A_MARK.sub("", word)
    if re.search(r"\[[^\]^]*(?::[^\]]*=|=[^\]]*:)", inner):
        return frozenset((":", "="))
    bare = re.sub(r"^[rfbu]{0,2}[\"'`/]|[\"'`/]$", "", inner)
    found = re.search(r"[:=]", bare)
    is_shown = re.fullmatch(r"[\w{}$.\-\"' ]*[:=][\s\"'.]*", bare) or re.search(r"[\^(\[\\.]", bare)
    return frozenset(found[0]) if found and is_shown else frozenset()


def _unquoted(word: str) -> str:
    return re.sub(r"^\$?[\"']|[\"']$", "", word)


def _without_words(expression: str) -> str:
    """The expression without its quoted texts. Shell variables inside double quotes are kept."""

    def kept(found: re.Match[str]) -> str:
        return " ".join(re.findall(r"\$\{?\w+", found[0])) if found[0].startswith('"') else " "

    return re.sub(rf"{_QUOTED}", kept, expression)
