"""Finds the dangers that a command may have although its words do not show them, for rules that reject a danger.

Two things can hide a danger from a reader of the line: a command that is composed only when the line runs (`$x`,
`eval`, names that `xargs` adds), and text that another program runs as a command (`watch 'rm -r x'`). A program that is
merely unknown, like `make` or `./x.sh`, does not count: what such a program does on its own is not in the line.

If haft is not certain, it reports the danger. Commands that are known to be harmless are not examined here.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Final

from haft.lazy import regex
from haft.policy.analysis.command.dangers import DELETES_IN_CODE, DELETING, DangerFinder, deletes_trees
from haft.policy.analysis.command.wrappers import SHELLS, is_interpreter, starts_commands, unwrap_any
from haft.policy.analysis.program import Argument
from haft.policy.analysis.verdict import DANGERS, EVALUATED_VARIABLES, Danger
from haft.values import dataclass

EVERY: Final[frozenset[Danger]] = frozenset(DANGERS)
_MAX_WRAPPERS: Final = 6
_MAX_STARTED: Final = 4

_READS_LINES: Final = frozenset((
    "watch", "parallel", "su", "runuser", "script", "flock", "ssh", "tmux", "screen", "trap", "mapfile", "readarray",
    "compgen", "complete", "bind", "sg",
))  # fmt: skip
"""Programs that run one of their arguments as a command line."""
_EVALUATES_NAMES: Final = frozenset((
    "test", "[", "[[", "printf", "read", "unset", "declare", "typeset", "local", "export", "readonly", "mapfile",
    "readarray", "getopts", "wait",
))  # fmt: skip
"""Built-in commands that evaluate the variable names in their arguments, including commands in those names."""
_READS_INPUT: Final = frozenset(
    ("at", "batch", "crontab", "su", "sudo", "doas", "chroot", "newgrp", "nsenter", "unshare")
)
"""Programs that run their standard input as commands if their arguments contain no command."""
_INPUT: Final = regex(r"/dev/stdin|/dev/fd/[0-9]+|/proc/[^/]+/fd/[0-9]+")
_RUNS_UNSEEN: Final = frozenset(("eval", "let", "alias", "hash", "coproc"))
"""Built-in commands that run text, or change which program a name runs. The line does not show which command will
run."""
_EDITORS: Final = frozenset((
    "awk", "gawk", "mawk", "nawk", "sed", "gsed", "vi", "vim", "nvim", "ex", "ed", "emacs", "gdb",
))  # fmt: skip
"""Programs with their own language, which can start other programs."""
_COMMAND_IN_CODE: Final = regex(r"(?:(?<![-\w])|^-[A-Za-z])rm\b[^;|&]*?[\s'\",]-(?:[A-Za-z]*[rR]|-recursive)")
_RUN_AS_COMMAND: Final = regex(
    r"(?:GIT_|MAN)?(?:PAGER|EDITOR)|VISUAL|BROWSER|GIT_(?:SSH|SSH_COMMAND|EXTERNAL_DIFF|SEQUENCE_EDITOR|ASKPASS)"
    r"|GIT_PROXY_COMMAND|(?:SSH|SUDO)_ASKPASS|SUDO_EDITOR|LESSOPEN|LESSCLOSE|RSYNC_RSH"
)
"""Variables whose value other programs run as a command."""
_DECLARES: Final = frozenset(("declare", "typeset", "local", "export", "readonly", "unset"))
_DIGITS: Final = regex(r"-?[0-9]*")
_WORD: Final = regex(r"\w*", re.ASCII)
_QUOTED_ARRAY: Final = regex(r"\w+\+?=\(.*[$`]", re.DOTALL)
_COMPOSED_SUBSCRIPT: Final = regex(r"[\"']?\w+\[[^\]]*[$`]")
_SUBSCRIPT: Final = regex(r"\[[^\]]*(?:\$\(|`)")
_TAKES_TEXT: Final = frozenset((
    "echo", "printf", "test", "[", "read", "cat", "tee", "grep", "egrep", "fgrep", "rg", "ag", "ack", "jq", "curl",
    "gh", "glab", "hg", "svn", "jj", "notify-send",
))  # fmt: skip
"""Programs that never run their arguments: if an argument contains a command, it is only text."""
_GIT_TAKES_TEXT: Final = frozenset(("commit", "tag", "notes", "merge", "stash", "log", "show", "shortlog", "branch"))
_GIT_WITH_VALUE: Final = frozenset(("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path"))
_SUBSTITUTION: Final = regex(r"\$\(|`|\$\{")
_RUNS_COMMANDS: Final = regex(r"\[|@[A-Za-z]|\$\{!|\$\(\(|\$\{\w+:(?![-+=?])", re.ASCII)
_LINE: Final = regex(r"[\s$`]")
_OPTION: Final = regex(r"--[a-z-]+=|-[A-Za-z]*?c(?=\S)")
_SPLIT: Final = regex(r"-[iv0]*S|--s[a-z-]*=?")
_STARTS: Final = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
_RISKY_WORDS: Final = tuple(
    map(Argument, ("-r", "-i", "-delete", "--delete", "clean", "-f", "u+s", "stop", "-9", "-1"))
)
"""Words that make known programs dangerous. haft tries each of them in place of an unknown word, to find what the
command may do."""
_TARGETS: Final = ("/dev/sda", "/etc/x", "/x")


def has_substitution(words: Iterable[str]) -> bool:
    """Whether a word contains the text of a substitution (`$(…)`), which runs if a command evaluates the word as a
    variable name."""
    return any(map(_SUBSTITUTION.search, words))


def may_run_command(expansion: str) -> bool:
    """Whether an expansion that is not known to be harmless may run a command, as a subscript, arithmetic or `${x@P}`
    can."""
    return _RUNS_COMMANDS.search(expansion) is not None


def has_composed_subscript(variable: str) -> bool:
    """Whether the subscript of a variable contains an expansion. Bash evaluates the result as arithmetic, which can run
    commands."""
    return _COMPOSED_SUBSCRIPT.match(variable) is not None


def has_command_in_subscript(value: str) -> bool:
    """Whether a value contains a subscript with a command, which runs if a later word evaluates the value as
    arithmetic."""
    return _SUBSCRIPT.search(value) is not None


@dataclass(frozen=True, slots=True)
class PossibleDangerFinder:
    """Finds possible dangers, in the context of a `DangerFinder`."""

    finder: DangerFinder
    has_outer_input: bool = False
    """Whether a pipe or a file is the input of the statement around the command."""
    is_in_loop: bool = False
    """Whether the statement around the command is a loop. Loops usually read names from their input."""

    def find(
        self, arguments: list[Argument], directory: str | None, *, stdin: bool | str, depth: int = 0
    ) -> frozenset[Danger]:
        """The possible dangers of a command. The first of `arguments` is the program. `stdin` is the text of the
        command's input if haft knows the text; True for any other input, False without input."""
        found: set[Danger] = set()
        is_passed_on = False
        for _ in range(_MAX_WRAPPERS):
            program, rest = arguments[0], arguments[1:]
            name = program.text.rpartition("/")[2]
            if not program.literal or (is_passed_on and ("{" in name or name == ":::")):
                return EVERY
            given = [*rest, _ANYTHING] if is_passed_on else rest
            if name in DELETING and (is_passed_on or (self.is_in_loop and not all(each.literal for each in rest))):
                found.add("recursive-delete")
            found |= self._find_one(name, given, directory, stdin, depth)
            following = unwrap_any(name, rest)
            if _deletes_trees_in_words(name, rest[: len(rest) - len(following or ())]):
                found.add("recursive-delete")
            if found >= EVERY:
                return EVERY
            if not following:
                has_input = stdin is not False or self.has_outer_input
                is_open = name == "parallel" or (is_passed_on and starts_commands(name))
                is_open = is_open or (has_input and name in _READS_INPUT)
                return EVERY if is_open else frozenset(found)
            is_passed_on = is_passed_on or name in ("xargs", "parallel")
            arguments = following
        return EVERY

    def find_by_variable(self, name: str, value: str | None) -> set[Danger]:
        """The possible dangers if the line sets a variable for other programs; `value` is None if it is unknown."""
        is_run = _RUN_AS_COMMAND.fullmatch(name) is not None
        if EVALUATED_VARIABLES.fullmatch(name) or (is_run and value is None):
            return {*EVERY}
        found = self._line_dangers(value.lstrip("|-"), has_input=False) if is_run and value else set()
        if value is not None and _COMMAND_IN_CODE.search(value):
            found.add("recursive-delete")
        return found

    def find_by_declaration(self, name: str, words: list[tuple[str, bool]]) -> set[Danger]:
        """The possible dangers of `export` and similar commands. `words` are the arguments without quotes, each with
        True if the shell expands nothing in it."""
        options = "".join(text[1:] for text, _ in words if text.startswith("-"))
        has_attributes = name not in ("export", "unset")
        found: set[Danger] = set()
        for text, is_unexpanded in words:
            variable, equals, value = text.partition("=")
            is_hidden = "$" in variable or "`" in variable or (is_unexpanded and has_command_in_subscript(value))
            is_hidden = is_hidden or (_QUOTED_ARRAY.match(text) is not None and is_unexpanded)
            if has_attributes and equals:
                is_hidden = is_hidden or ("i" in options and not _DIGITS.fullmatch(value))
                is_hidden = is_hidden or ("n" in options and not _WORD.fullmatch(value))
            if is_hidden:
                return {*EVERY}
            if equals:
                is_known = is_unexpanded or not ("$" in value or "`" in value)
                found |= self.find_by_variable(variable.removesuffix("+"), value if is_known else None)
        return found

    def _find_one(
        self, name: str, rest: list[Argument], directory: str | None, stdin: bool | str, depth: int
    ) -> frozenset[Danger] | set[Danger]:
        literal = [each.text for each in rest if each.literal]
        is_from_input = any(_INPUT.fullmatch(each) for each in literal)
        if name in _RUNS_UNSEEN or (name in ("source", ".") and (stdin is not False or is_from_input)):
            return EVERY
        if name in _EVALUATES_NAMES and (has_substitution(literal) or _takes_unknown_name(name, rest)):
            return EVERY
        found: set[Danger] = set()
        if name in _DECLARES:
            found |= self.find_by_declaration(name, [(each.text, each.literal) for each in rest])
        if name == "env":
            pairs = (each.text.partition("=") for each in rest if each.literal)
            found |= {danger for key, _, value in pairs for danger in self.find_by_variable(key, value)}
        for line in _command_lines(name, rest):
            if line is None:
                return EVERY
            found |= self._line_dangers(line, has_input=stdin is not False)
        if is_interpreter(name) or name in _EDITORS:
            found |= self._find_by_code(name, rest, stdin)
        else:
            found |= self._find_by_unknown_words(name, rest, directory)
        for started in _started_commands(name, rest):
            if depth >= _MAX_STARTED:
                return EVERY
            found |= {*self.finder.find(started, directory, has_input=False).visible}
            found |= self.find(started, directory, stdin=False, depth=depth + 1)
            if any(each.text.rpartition("/")[2] in DELETING for each in started):
                found.add("recursive-delete")
        # Find an `rm` after an unknown wrapper, or after options that haft may parse wrongly.
        removed = (at for at, each in enumerate(rest) if each.text.rpartition("/")[2] == "rm")
        if any(deletes_trees("rm", [each.text for each in rest[at + 1 :]]) for at in removed):
            found.add("recursive-delete")
        return found

    def _find_by_code(self, name: str, rest: list[Argument], stdin: bool | str) -> frozenset[Danger] | set[Danger]:
        operand = next((at for at, each in enumerate(rest) if each.literal and each.text[:1] not in ("-", "+")), None)
        if is_interpreter(name) and any(map(_may_be_anything, rest[:operand])):
            return EVERY
        found: set[Danger] = set()
        if name in SHELLS:
            if any(_INPUT.fullmatch(each.text) for each in rest):
                return EVERY
            script = _shell_script(rest)
            if script is not None:
                found |= self._line_dangers(script.text, has_input=stdin is not False) if script.literal else EVERY
            if isinstance(stdin, str):
                found |= self._line_dangers(stdin, has_input=False)
        code = [each.text for each in rest] + ([stdin] if isinstance(stdin, str) else [])
        if any(_COMMAND_IN_CODE.search(each) or DELETES_IN_CODE.search(each) for each in code):
            found.add("recursive-delete")
        return found

    def _line_dangers(self, line: str, *, has_input: bool) -> set[Danger]:
        inner = self.finder.line_dangers(line, self.finder.depth + 1, has_input or self.has_outer_input)
        return {*inner.visible, *inner.possible}

    def _find_by_unknown_words(self, name: str, rest: list[Argument], directory: str | None) -> set[Danger]:
        """The dangers that unknown words may add to a program that is known to be dangerous."""
        unknown = [at for at, each in enumerate(rest) if _may_be_anything(each)]
        if not unknown:
            return set()
        end = next((at for at, each in enumerate(rest) if each.literal and each.text == "--"), len(rest))
        options = _RISKY_WORDS if unknown[0] < end else ()
        home = self.finder.resolver.context.home
        found: set[Danger] = set()
        for target in (*_TARGETS, f"{home}/.x"):
            words = [*options, *rest, Argument(f"of={target}"), Argument(target)]
            found |= {*self.finder.find_by_program(name, words, directory)}
        return found


_ANYTHING: Final = Argument("", literal=False, may_be_option=True, may_split=True)
"""Stands for the arguments that another program, such as `xargs`, adds to a command."""


def _may_be_anything(argument: Argument) -> bool:
    is_open = not argument.literal and argument.paths is None and not argument.is_number
    return is_open and (argument.may_be_option or argument.may_split)


def _takes_unknown_name(name: str, rest: list[Argument]) -> bool:
    """Whether a built-in command gets a variable name that is composed when the line runs."""
    unknown = [each for each in rest if not each.literal]
    option = {"test": "-v", "[": "-v", "printf": "-v", "wait": "-p"}.get(name)
    is_option_open = any(each.text == option and not after.literal for each, after in itertools.pairwise(rest))
    is_open = is_option_open or (name == "getopts" and bool(unknown))
    return is_open or any(_COMPOSED_SUBSCRIPT.match(each.text) for each in unknown)


def _shell_script(rest: list[Argument]) -> Argument | None:
    """The argument that a shell runs because of `-c`, which may be combined with other options; None without `-c`."""
    is_text = is_value = False
    for each in rest:
        if is_value:
            is_value = False
        elif each.literal and each.text[:1] in ("-", "+") and each.text != "--":
            is_short = not each.text.startswith("--")
            is_text = is_text or (is_short and "c" in each.text)
            is_value = each.text in ("--rcfile", "--init-file") or (is_short and each.text[-1:] in ("o", "O"))
        elif each.text != "--":
            return each if is_text else None
    return None


def _command_lines(name: str, rest: list[Argument]) -> Iterator[str | None]:
    """Yield the texts that a program runs as command lines; None in place of an unknown text."""
    if name in _READS_LINES:
        for each in rest:
            is_line = bool(_LINE.search(each.text)) or (name == "trap" and not each.text.startswith("-"))
            if not each.literal or is_line:
                yield _OPTION.sub("", each.text, count=1) if each.literal else None
    if name == "env":
        yield from _env_split_line(rest)
    options = {"git": ("-c",), "npx": ("-c", "--call"), "npm": ("-c", "--call")}.get(name, ())
    for at, each in enumerate(rest):
        option = next((option for option in options if each.text.startswith(option)), None)
        if option is None:
            continue
        text = each.text.removeprefix(option).removeprefix("=")
        value = Argument(text, each.literal) if text else rest[at + 1] if at + 1 < len(rest) else None
        if value is not None:
            text = value.text.partition("=")[2].removeprefix("!") if name == "git" else value.text
            yield text if value.literal else None


def _env_split_line(rest: list[Argument]) -> Iterator[str | None]:
    """Yield the command line that `env -S` composes from its value and all words after that."""
    for at, each in enumerate(rest):
        found = _SPLIT.match(each.text)
        if found is not None:
            after = [Argument(each.text[found.end() :], each.literal), *rest[at + 1 :]]
            if after[0].literal and not after[0].text:
                del after[0]
            if after:
                is_known = not any(map(_may_be_anything, after)) and after[0].literal
                words = " ".join([after[0].text, *(shlex.quote(word.text) for word in after[1:])])
                yield f"env {words}" if is_known else None
            return
        if not each.text.startswith("-") and "=" not in each.text:
            return


def _deletes_trees_in_words(name: str, words: list[Argument]) -> bool:
    """Whether one of the words would delete whole directories if the program ran it as a command."""
    if name in _TAKES_TEXT:
        return False
    texts = [each.text for each in words if each.literal]
    if name == "git":
        at = 0
        while at < len(texts) and texts[at].startswith("-"):
            at += 2 if texts[at] in _GIT_WITH_VALUE else 1
        if "".join(texts[at : at + 1]) in _GIT_TAKES_TEXT:
            texts = texts[:at]
    return any(map(_COMMAND_IN_CODE.search, texts))


def _started_commands(name: str, rest: list[Argument]) -> Iterator[list[Argument]]:
    """Yield the commands that `find` or `fd` starts."""
    if name not in ("find", "fd", "fdfind"):
        return
    for at, each in enumerate(rest):
        if each.text in _STARTS and at + 1 < len(rest):
            end = next((stop for stop in range(at + 1, len(rest)) if rest[stop].text in (";", "+")), len(rest))
            words = rest[at + 1 : end]
            if words:
                first = Argument(words[0].text, literal=words[0].literal and "{" not in words[0].text)
                yield [first, *words[1:]]
