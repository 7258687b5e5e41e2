"""Finds what a shell script loads: files that it reads with `source` or `.`, files, texts and input that it gives to an
interpreter, and programs that it starts by their path.

Paths are literal, or built from the script's own directory in the usual ways: `dirname "$0"`, `${BASH_SOURCE[0]%/*}`,
`cd … && pwd`, and variables that were set to such a path. Every value that the script gives to a variable counts, so
haft finds too many files rather than too few. If haft cannot tell which code is loaded, it reports the place as
unresolved.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from haft.policy.analysis.command.wrappers import starts_commands, unwrap_any
from haft.policy.analysis.program import Argument
from haft.policy.approval.loaded_code import interpreters
from haft.policy.approval.loaded_code.reference import Language, Reference, References, Script, absolute
from haft.policy.approval.loaded_code.shellwords import Values, Words, descendants

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_DEEP: Final = 5
"""The maximum depth of code within code (`sh -c '…'`) that is searched."""
_VERBS: Final = frozenset(("run", "tool"))
"""Subcommands that may stand before the file to run, as in `bun run`, `deno run` and `uv tool run`."""
_WITH_VERB: Final = frozenset(("uv", "coproc"))
_SYSTEM: Final = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/")
_INPUT: Final = frozenset(("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))
_AROUND: Final = "redirected_statement"
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)=")


def references_of(script: Script, here: str | None = None) -> References:
    """The files that a shell script loads. `here` is the directory in which the script runs; None if it is not
    known."""
    values: dict[str, Values] = {"0": (script.main,), "BASH_SOURCE": (script.path,), "PATH": ("/usr/bin",)}
    return _Reader(script, {**values, "BASH": ("bash",), "SHELL": ("sh",)}, here).read()


class _Reader(Words):
    def __init__(
        self, script: Script, values: dict[str, Values], here: str | None = None, end: float = 0, depth: int = 0
    ) -> None:
        super().__init__(script, values, end)
        self._here = here
        """The working directory, if the script changed it; None as long as it is the unknown directory of the call."""
        self._depth = depth
        self._references: list[Reference] = []
        self._unresolved: list[str] = []

    def read(self) -> References:
        tree = self._parsed()
        if tree is None:
            return References((), ("1: it takes too long to parse",))
        self._learn(tree)
        for node in descendants(tree):
            if time.thread_time() > self._end:
                self._unresolved.append(f"{_line(node)}: it takes too long to read from here on")
                break
            if node.type == "command":
                self._command(node)
            elif node.type == "variable_assignment":
                name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
                if name is not None and value is not None:
                    self._note_variable(self._text(name), self._value(value), node)
        return References(tuple(dict.fromkeys(self._references)), tuple(dict.fromkeys(self._unresolved)))

    # Statements.

    def _note_variable(self, name: str, values: Values, node: Node) -> None:
        """Handle the assignment of a variable that makes programs load code. If its value is a file (`BASH_ENV`), note
        the file. If its value is a list of directories (`PATH`), report the assignment as unresolved, unless all
        directories belong to the system."""
        if name in interpreters.READ_FIRST:
            self._take(values, "shell", node)
        elif name in interpreters.SEARCHED:
            places = None if values is None else {place for each in values if each for place in each.split(":")}
            if places is None or not all(f"{os.path.normpath(place)}/".startswith(_SYSTEM) for place in places):
                self._report_unresolved(node)

    def _command(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is not None:
            first = name.named_children[0] if name.named_children else name
            self._start([first, *node.children_by_field_name("argument")], node)

    def _start(self, words: Sequence[Node], node: Node) -> None:
        """Note what a command loads, also if wrappers such as `env` start the command."""
        before = ""
        while (called := _called(self._value(words[0]))) in _WITH_VERB or starts_commands(called):
            if called == "env" and any(self._plain(word).startswith(("-S", "--split")) for word in words):
                self._report_unresolved(node)
            if not (rest := self._behind(called, words)):
                return
            before, words = called, rest
        is_spaced = re.search(r"\s", self._plain(words[0])) is not None
        if is_spaced and words[0].type in ("simple_expansion", "expansion"):
            self._eval(words, node)
        elif is_spaced and before in interpreters.TAKES_TEXT:
            self._code(words[0], "shell", node)
        elif before == "xargs" and len(words) == 1 and interpreters.language_of(called) is not None:
            self._report_unresolved(node)
        else:
            self._run(called, words, node)

    def _behind(self, called: str, words: Sequence[Node]) -> Sequence[Node]:
        texts = [self._plain(word) for word in words[1:]]
        if called == "command" and texts and re.fullmatch("-[pvV]*[vV]", texts[0]):
            return ()
        if called in _WITH_VERB:
            at = 1
            while at < len(words) and (self._is_option(words[at]) or self._is_verb(words[at:])):
                at += 1
            return words[at:]
        started = unwrap_any(called, [Argument(text) for text in texts]) or ()
        at = len(words) - len(started)
        for word in words[1:at]:
            if (found := _ASSIGNED.match(self._text(word).lstrip("\"'"))) is not None:
                values = self._value(word)
                cut = None if values is None else tuple(each.partition("=")[2] for each in values)
                self._note_variable(found[1], cut, word)
        return words[at:]

    def _run(self, called: str, words: Sequence[Node], node: Node) -> None:
        operands = [word for word in words[1:] if not self._is_option(word)]
        if called == "cd":
            if not _is_in_subshell(words[0]):
                found = self._value(operands[0]) if operands else None
                self._here = absolute(found[0], self._here) if found is not None and len(found) == 1 else None
        elif called in ("source", "."):
            self._load(operands[:1], "shell", node, is_started=False)
        elif called in interpreters.CODE_FILE:
            self._code_files(called, words[1:], node)
        elif (language := interpreters.language_of(called)) is not None:
            self._interpret(called, language, words[1:], node)
        elif called in interpreters.RUNS_TEXT:
            self._run_text(called, words, operands, node)
        else:
            self._begin(words[0], node)

    def _run_text(self, called: str, words: Sequence[Node], operands: Sequence[Node], node: Node) -> None:
        if called == "eval":
            self._eval(operands, node)
        elif called == "trap":
            for text in operands[:1] if len(operands) > 1 else ():
                self._code(text, "shell", node)
        elif called == "alias":
            for word in operands:
                values = self._value(word)
                self._texts(None if values is None else tuple(each.partition("=")[2] for each in values), "shell", node)
        elif called == "find":
            for at, word in enumerate(words):
                if self._plain(word) in ("-exec", "-execdir", "-ok", "-okdir") and words[at + 1 :]:
                    self._start(words[at + 1 :], node)
        else:
            for option, text in itertools.pairwise(words):
                if re.fullmatch(r"-\w*c|--command", self._plain(option)):
                    self._code(text, "shell", node)

    def _begin(self, word: Node, node: Node) -> None:
        """Note a program that is started by its path. A program of the system does not belong to the tool."""
        program = self._value(word)
        if program is None:
            self._report_unresolved(node)
        for each in program or ():
            path = absolute(each, self._here) if "/" in each else ""
            if path is None or (len(program or ()) > 1 and interpreters.is_known(os.path.basename(each))):
                self._report_unresolved(node)
            elif path and not path.startswith(_SYSTEM):
                self._references.append(Reference(path, None, True))

    # Code that a program receives.

    def _interpret(self, called: str, language: interpreters.CodeLanguage, words: Sequence[Node], node: Node) -> None:
        known = None if language == "other" else language
        if self._is_verb(words):
            words = words[1:]
        options, files = self._options(language, words)
        texts = [text for text, _value in options]
        form = interpreters.INTERPRETERS[language]
        is_done = False
        for text, value in options:
            if value is not None and form.text.fullmatch(text):
                is_done = True
                self._code(value, known, node)
            elif value is not None and form.file.fullmatch(text):
                self._load([value], known, node, is_started=False)
            elif value is not None and form.module.fullmatch(text):
                is_done = True
                self._module(value, node)
            elif "/" in text or "$" in text:
                self._report_unresolved(node)
        if is_done or "--version" in texts or "--help" in texts or (texts in (["-v"], ["-V"]) and language != "shell"):
            return
        if files and any(map(form.text_follows.fullmatch, texts)):
            self._code(files[0], known, node, files[1:])
        elif not files or any(map(form.input_follows.fullmatch, texts)):
            self._input(node, known)
        else:
            self._load(files[:1], known, node, is_started=True)
            if known is None:
                self._unresolved.append(f"{_line(node)}: haft cannot tell what is loaded in a script of {called}")

    def _options(
        self, language: interpreters.CodeLanguage, words: Sequence[Node]
    ) -> tuple[list[tuple[str, Node | None]], Sequence[Node]]:
        """The options before the first operand, each with its value or None; and the operands."""
        options: list[tuple[str, Node | None]] = []
        at = 0
        while at < len(words) and interpreters.OPTION.match(text := self._plain(words[at])):
            at += 1
            if text == "--":
                break
            has_value = at < len(words) and interpreters.INTERPRETERS[language].with_value.fullmatch(text) is not None
            options.append((text, words[at] if has_value else None))
            at += has_value
        return options, words[at:]

    def _module(self, word: Node, node: Node) -> None:
        """Note the module of `python -m`, if the script changed the directory. In the call's own directory, modules
        belong to the workspace, not to the tool."""
        names = self._value(word)
        if names is None:
            self._report_unresolved(node)
        for name in names or () if self._here is not None else ():
            path = os.path.join(self._here or "", *name.split("."))
            self._references += [
                Reference(each, "python", True, True) for each in (path, os.path.join(path, "__main__"))
            ]

    def _code_files(self, called: str, words: Sequence[Node], node: Node) -> None:
        for at, word in enumerate(words):
            text = self._plain(word)
            if (found := interpreters.CODE_FILE[called].match(text)) is None:
                continue
            if text[found.end() :]:
                values = self._value(word)
                self._take(None if values is None else tuple(each[found.end() :] for each in values), None, node)
            else:
                self._load(words[at + 1 : at + 2], None, node, is_started=False)
        if called in ("make", "gmake"):
            self._report_unresolved(node, "haft cannot tell what is loaded in")

    def _eval(self, words: Sequence[Node], node: Node) -> None:
        if len(words) == 1:
            self._code(words[0], "shell", node)
        elif words:
            values = [self._value(word) for word in words]
            known = [value[0] for value in values if value is not None and len(value) == 1]
            self._texts((" ".join(known),) if len(known) == len(words) else None, "shell", node)

    def _code(self, word: Node, language: Language | None, node: Node, arguments: Sequence[Node] | None = None) -> None:
        """Note what a text loads when it is run as code. `arguments` are the arguments of the shell that runs the
        text."""
        inner = word.named_children[0] if word.type == "string" and len(word.named_children) == 1 else word
        if inner.type in ("command_substitution", "process_substitution"):
            whole = self._text(word).strip('"')
            if whole == self._text(inner) and self._printed(inner, language, node):
                return
        values = None
        if arguments is not None:
            values = {name: value for name, value in self._values.items() if name not in ("0", "BASH_SOURCE")}
            values |= {str(at): self._value(each) for at, each in enumerate(arguments)}
        self._texts(self._value(word), language, node, values)

    def _texts(
        self, texts: Values, language: Language | None, node: Node, values: dict[str, Values] | None = None
    ) -> None:
        if texts is None or self._depth >= MOST_DEEP or time.thread_time() > self._end:
            self._report_unresolved(node)
            return
        for text in texts:
            script = dataclasses.replace(self._script, text=text)
            if language == "shell":
                known = dict(self._values if values is None else values)
                found_references = _Reader(script, known, self._here, self._end, self._depth + 1).read()
            elif language is not None:
                found_references = interpreters.references_of(script, language)
            else:
                found_references = References((), ("",) if interpreters.LOADS.search(text) else ())
            self._references += found_references.references
            if found_references.unresolved:
                self._report_unresolved(node)

    def _input(self, node: Node, language: Language | None) -> None:
        """Note code that a program reads from its input: a file, a text, or the output of another command."""
        one = node
        if self._is_redirected(one, language, node):
            return
        while (above := one.parent) is not None and above.type != "heredoc_redirect":
            if above.type == "pipeline":
                at = above.named_children.index(one)
                around = above.parent if above.parent is not None and above.parent.type == _AROUND else None
                # The redirections of the last command are attached to the whole pipeline.
                is_last = around is not None and one == above.named_children[-1]
                if is_last and self._is_redirected(around or above, language, node):
                    return
                if at:
                    if not self._printed(above.named_children[at - 1], language, node):
                        self._report_unresolved(above)
                    return
                one = around or above
            elif self._is_redirected(above, language, node):
                return
            else:
                one = above
        self._report_unresolved(node)

    def _is_redirected(self, around: Node, language: Language | None, node: Node) -> bool:
        redirects = reversed(around.children_by_field_name("redirect"))
        return any(self._redirected(redirect, language, node) for redirect in redirects)

    def _redirected(self, redirect: Node, language: Language | None, node: Node) -> bool:
        if redirect.type == "herestring_redirect" and redirect.named_children:
            self._code(redirect.named_children[-1], language, node)
            return True
        if redirect.type == "heredoc_redirect":
            body = next((each for each in redirect.named_children if each.type == "heredoc_body"), None)
            text = None if body is None else self._joined(body, body.start_byte, body.end_byte)
            self._texts(("",) if body is None else text, language, node)
            return True
        to = redirect.child_by_field_name("destination")
        if redirect.type == "file_redirect" and to is not None and re.match(r"0?<(?![(&>])", self._text(redirect)):
            self._load([to], language, node, is_started=False)
            return True
        return False

    def _printed(self, node: Node, language: Language | None, to: Node) -> bool:
        """Note the files that `cat` or `$(< FILE)` prints, because they are run as code. Returns whether the node is
        such a command."""
        if node.type in ("command_substitution", "process_substitution"):
            if self._text(node).startswith(">") or len(node.named_children) != 1:
                return False
            if (inner := node.named_children[0]).type == "file_redirect":
                return self._redirected(inner, language, to)
            return self._printed(inner, language, to)
        name = node.child_by_field_name("name") if node.type == "command" else None
        files = [each for each in node.children_by_field_name("argument") if not self._is_option(each)]
        if name is None or not files or self._text(name) not in ("cat", "/bin/cat", "/usr/bin/cat"):
            return False
        self._load(files, language, to, is_started=False)
        return True

    def _load(self, files: Sequence[Node], language: Language | None, node: Node, *, is_started: bool) -> None:
        for word in files:
            text = self._plain(word)
            if text in _INPUT:
                self._input(node, language)
            elif word.type == "process_substitution":
                if not self._printed(word, language, node):
                    self._report_unresolved(node)
            elif text != "/dev/null":
                self._take(self._value(word), language, node, is_started=is_started)

    def _take(self, found: Values, language: Language | None, node: Node, *, is_started: bool = False) -> None:
        paths = [None] if found is None else [absolute(each, self._here) for each in found if each]
        paths = [None if path is None or path.startswith(("/dev/", "/proc/")) else path for path in paths]
        self._references += [Reference(path, language, is_started) for path in paths if path is not None]
        if None in paths:
            self._report_unresolved(node)

    def _report_unresolved(self, node: Node, why: str = "") -> None:
        words = " ".join(self._text(node).split())[:200]
        self._unresolved.append(f"{_line(node)}: {why}{why and ' '}{words}")

    def _is_verb(self, words: Sequence[Node]) -> bool:
        return len(words) > 1 and self._text(words[0]) in _VERBS


def _called(program: Values) -> str:
    return os.path.basename(program[0]) if program is not None and len(program) == 1 else ""


def _line(node: Node) -> int:
    return node.start_point[0] + 1


def _is_in_subshell(node: Node | None) -> bool:
    while node is not None and node.type not in ("subshell", "command_substitution", "process_substitution"):
        node = node.parent
    return node is not None
