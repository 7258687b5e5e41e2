"""Reads a line from left to right, without recursion: each simple command, redirection and unknown syntax is a part.

A stack holds the remaining steps. Each step has the scope in which it runs. Steps at one level of the shell share their
scope, so that a change of directory affects only the steps after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from haft.lazy import regex
from haft.policy.analysis.deadline import NotUnderstood
from haft.policy.analysis.line.brackets import double_bracket
from haft.policy.analysis.line.commands import Commands
from haft.policy.analysis.scope import Scope, Values, is_numeric
from haft.policy.analysis.text.heredocs import heredoc_of
from haft.policy.analysis.text.notes import Notes
from haft.policy.analysis.text.pipes import cannot_fail, is_input, line_variable
from haft.policy.analysis.text.source import Source, descendants
from haft.policy.analysis.text.words import Word, outermost, word_at

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_STEPS: Final = 5_000
_COUNTS: Final = regex(
    r"for \(\(\s*(\w+)\s*=\s*\d+\s*;\s*\1\s*[<>]=?\s*\d+\s*;\s*\1\s*(?:\+\+|--|[+-]=\s*\d+)\s*\)\)", re.ASCII
)
"""A loop that counts from one number to another: its arithmetic evaluates nothing that was set elsewhere."""
_EXEC: Final = regex(r"(?:(?:command|builtin)\s+)*\\?exec\b")
_LISTS: Final = regex(r"(?:\$\(|`)\s*(?:find|fd|fdfind|ls|git|tree|rg)\b")
_JOINS: Final = frozenset(("command", "list", "pipeline", "redirected_statement"))
"""Statements that hand on themselves what leads into them."""
_LOOPS: Final = frozenset(("while_statement", "for_statement"))
_SKIPPED: Final = frozenset(("comment", "heredoc_body", "heredoc_end", "heredoc_start"))
_SUBSTITUTIONS: Final = frozenset(("command_substitution", "process_substitution"))
_STATEMENTS: Final = frozenset((
    "command", "redirected_statement", "list", "pipeline", "subshell", "compound_statement", "test_command",
    "command_substitution", "process_substitution", "variable_assignment", "declaration_command",
))  # fmt: skip

Step = Callable[[], None]


class Walk:
    """One line being taken apart."""

    def __init__(self, source: Source, commands: Commands) -> None:
        self._source = source
        self._commands = commands
        self._steps: list[Step] = []
        self._notes = Notes(source)
        self._redirects: dict[int, list[Node]] = {}
        self._more_words: dict[int, list[Word]] = {}
        self._visits: Mapping[str, Callable[[Node, Scope, Node | None], None]] = {
            "list": self._list,
            "pipeline": self._pipeline,
            "redirected_statement": self._redirected,
            "command": self._command,
            "variable_assignment": self._assignments,
            "variable_assignments": self._assignments,
            "negated_command": self._inside,
            "subshell": self._subshell,
            "compound_statement": self._compound,
            "if_statement": self._branches,
            "elif_clause": self._inside,
            "else_clause": self._inside,
            "while_statement": self._loop,
            "for_statement": self._for,
            "do_group": self._inside,
            "case_statement": self._case,
            "case_item": self._case_item,
            "function_definition": self._function,
            "test_command": self._test,
            "declaration_command": self._declaration,
            "unset_command": self._declaration,
            "file_redirect": self._lone_redirect,
        }

    def run(self, scope: Scope) -> None:
        """All of it."""
        scope.patterns = frozenset(self._notes.patterns)
        self._sequence(self._source.root.children, scope)
        count = 0
        while self._steps:
            count += 1
            if count > _MOST_STEPS:
                raise NotUnderstood("it has too many commands")
            self._source.deadline.check()
            self._steps.pop()()
        if any(self._redirects.values()) or self._more_words:
            raise NotUnderstood("haft cannot parse a redirection")

    def _then(self, steps: Iterable[Step]) -> None:
        self._steps += reversed(list(steps))

    def _visit(self, node: Node, scope: Scope, before: Node | None = None) -> None:
        """One statement; `before` is what a pipe leads in from."""
        visit = self._visits.get(node.type)
        if not self._is_certain(node):
            self._then([lambda start=scope.here: self._may_be_left_out(node, scope, start)])  # type: ignore[misc]  # bound early
        self._feed(node, scope, before)
        if visit is None:
            self._not_understood(node, scope, f"haft does not analyse this syntax: `{self._source.shown(node)[:60]}`")
        else:
            visit(node, scope, before)

    def _feed(self, node: Node, scope: Scope, before: Node | None) -> None:
        """What leads into a statement leads into all that runs in it."""
        if node.type in _JOINS:
            return
        start = scope.is_fed, scope.is_fed_loop
        is_fed = before is not None or self._is_fed_otherwise(node)
        is_fed_loop = node.type in _LOOPS and (is_fed or scope.is_fed or self._goes_through_names(node))

        def end() -> None:
            scope.is_fed, scope.is_fed_loop = start

        if is_fed or is_fed_loop:
            self._then([end])
            scope.is_fed = scope.is_fed or is_fed
            scope.is_fed_loop = scope.is_fed_loop or is_fed_loop

    def _goes_through_names(self, node: Node) -> bool:
        """Whether a loop goes through what a program lists."""
        values = [self._source.of(child) for child in node.children_by_field_name("value")]
        return any(map(_LISTS.search, values))

    def _is_fed_otherwise(self, node: Node) -> bool:
        redirects = self._redirects.get(node.id, ())
        return any(is_input(each) and not cannot_fail(self._source, each) for each in redirects)

    def _is_certain(self, node: Node) -> bool:
        """Whether no redirection can fail, which would leave a statement out."""
        own = node.named_children if node.type == "command" else ()
        redirects = [child for child in own if child.type.endswith("_redirect")] + self._redirects.get(node.id, [])
        return all(cannot_fail(self._source, each) for each in redirects)

    def _may_be_left_out(self, node: Node, scope: Scope, start: frozenset[str] | None) -> None:
        """What a statement changed, it may not have changed."""
        if start is None:
            scope.here = None
        else:
            scope.failed = scope.failed | start
        # What is set before a command is set for that command alone; what `read` sets is forgotten anyway.
        if node.type != "command":
            scope.forget(self._notes.assigned(node))

    def _sequence(self, nodes: Iterable[Node], scope: Scope) -> None:
        steps: list[Step] = []
        for node in nodes:
            if node.is_named and node.type not in _SKIPPED:
                steps += [lambda node=node: self._visit(node, scope), scope.widen]  # type: ignore[misc]  # bound early
            elif node.type == "&":
                steps.append(lambda: self._commands.syntax("&", "nothing waits for a command in the background"))
        self._then(steps)

    def _inside(self, node: Node, scope: Scope, _before: Node | None) -> None:
        self._with_redirects(node, scope)
        self._sequence(node.children, scope)

    def _list(self, node: Node, scope: Scope, before: Node | None) -> None:
        left, right = (child for child in node.children if child.is_named and child.type != "comment")
        operators = [child.type for child in node.children if not child.is_named and child.type.strip()]
        if operators not in (["&&"], ["||"]):
            raise NotUnderstood("haft does not know an operator between its commands")
        is_either = operators == ["||"]

        def go_on() -> None:
            if is_either:
                scope.widen()
            start = scope.here
            self._then([lambda: self._visit(right, scope, before), lambda: join(start)])

        def join(start: frozenset[str] | None) -> None:
            """The right side may not have run."""
            if is_either or start is None:
                scope.widen(start)
            else:
                scope.failed = scope.failed | start
            scope.forget(self._notes.assigned(right))

        self._then([lambda: self._visit(left, scope, before), go_on])

    def _pipeline(self, node: Node, scope: Scope, before: Node | None) -> None:
        steps: list[Step] = []
        for child in node.children:
            if not child.is_named:
                if child.type not in ("|", "|&", "\n"):
                    raise NotUnderstood("haft does not know an operator in a pipe")
                continue
            if child.type == "comment":
                continue
            steps.append(lambda child=child, before=before: self._stage(child, scope, before))  # type: ignore[misc]  # bound early
            before = child
        self._then([*steps, scope.widen, lambda: scope.forget(self._notes.assigned(node))])

    def _stage(self, node: Node, scope: Scope, before: Node | None) -> None:
        # The parser puts `a && b > f | c` together as `(a && b > f) | c`. Bash does not: `a` is in no pipe there.
        is_list = node.type == "list" or (
            node.type == "redirected_statement" and any(child.type == "list" for child in node.children)
        )
        self._visit(node, scope if is_list else scope.copy(), before)

    def _redirected(self, node: Node, scope: Scope, before: Node | None) -> None:
        body = next((child for child in node.named_children if not child.type.endswith("_redirect")), None)
        redirects = [child for child in node.named_children if child.type.endswith("_redirect")]
        if body is None:
            self._redirects.setdefault(node.id, []).extend(redirects)
            self._with_redirects(node, scope)
            return
        last = body
        while last.type in ("list", "pipeline", "negated_command", "redirected_statement"):
            inside = [child for child in last.named_children if not child.type.endswith(("_redirect", "comment"))]
            if not inside:
                raise NotUnderstood("a redirection belongs to no command")
            last = inside[-1]
        self._redirects.setdefault(last.id, []).extend(redirects)
        self._visit(body, scope, before)

    def _lone_redirect(self, node: Node, scope: Scope, _before: Node | None) -> None:
        """`$(< file)`."""
        self._redirects[node.id] = [node]
        self._with_redirects(node, scope)

    def _with_redirects(self, node: Node, scope: Scope) -> bool | str:
        """Classify the redirections of a statement; whether composed text, or which text, is its input."""
        fed: bool | str = False
        waiting = self._redirects.pop(node.id, [])
        for redirect in waiting:
            if redirect.type == "file_redirect":
                words = self._targets(redirect)
                inner = self._commands.redirection(redirect, words[0] if words else None, scope)
                self._then_inner(inner, scope)
                if len(words) > 1:
                    if node.type != "command":
                        raise NotUnderstood("unexpected words follow a redirection")
                    self._more_words.setdefault(node.id, []).extend(words[1:])
            elif redirect.type == "heredoc_redirect":
                fed = self._heredoc(redirect, scope, waiting)
            elif redirect.type == "herestring_redirect":
                word = word_at(self._source, redirect.named_children[-1])
                fed = word.literal if word.literal is not None else True
                self._commands.fed(redirect, word)
                self._then_inner(word.inner, scope)
            else:
                raise NotUnderstood("haft does not know this kind of redirection")
        return fed

    def _targets(self, redirect: Node) -> list[Word]:
        nodes = [child for child in redirect.named_children if child.type != "file_descriptor"]
        return [word_at(self._source, child) for child in nodes]

    def _heredoc(self, redirect: Node, scope: Scope, waiting: list[Node]) -> bool | str:
        heredoc = heredoc_of(self._source, redirect)
        rest: list[Node] = []
        for child in redirect.named_children:
            if child.type.endswith("_redirect"):
                waiting.append(child)
            elif child.type not in (*_SKIPPED, "file_descriptor"):
                rest.append(child)
        if not heredoc.is_clear:
            # The parser does not see all that bash would run there.
            reason = "an expansion in the text of a `<<` may do something"
            self._commands.syntax(self._source.shown(redirect), reason, "not-understood")
            for child in redirect.children:
                if child.type == "heredoc_body":
                    self._then_inner(outermost(child, _SUBSTITUTIONS).values(), scope)
        for child in rest:
            if child.type not in self._visits:
                raise NotUnderstood("haft cannot parse the rest of the line after a `<<`")
            copy = scope.copy()
            self._then([lambda child=child, copy=copy: self._visit(child, copy, redirect)])  # type: ignore[misc]  # bound early
            scope.forget()
            if self._notes.changes_directory(child):
                scope.here = None
        return heredoc.body if heredoc.is_literal else True

    def _then_inner(self, nodes: Iterable[Node], scope: Scope, *, is_fed: bool = False) -> None:
        """Judge what stands in substitutions: each in a level of its own."""
        for node in nodes:
            inside = scope.copy()
            inside.is_fed = is_fed or inside.is_fed or node.children[0].type == ">("
            self._sequence(node.children, inside)

    def _command(self, node: Node, scope: Scope, before: Node | None) -> None:
        redirects = [child for child in node.named_children if child.type.endswith("_redirect")]
        self._redirects.setdefault(node.id, []).extend(redirects)
        is_fed_otherwise = any(map(is_input, self._redirects[node.id]))
        fed = self._with_redirects(node, scope) or before is not None or is_fed_otherwise
        more = self._more_words.pop(node.id, [])
        inner = self._commands.command(node, more, scope, fed, None if is_fed_otherwise else before)
        if is_fed_otherwise and _EXEC.match(self._source.of(node)):
            scope.is_fed = True
        self._then_inner(inner, scope, is_fed=before is not None)

    def _assignments(self, node: Node, scope: Scope, _before: Node | None) -> None:
        self._with_redirects(node, scope)
        for each in (node,) if node.type == "variable_assignment" else node.named_children:
            self._then_inner(self._commands.assignment(each, scope), scope)

    def _subshell(self, node: Node, scope: Scope, _before: Node | None) -> None:
        self._with_redirects(node, scope)
        self._sequence(node.children, scope.copy())

    def _compound(self, node: Node, scope: Scope, _before: Node | None) -> None:
        if node.children[0].type != "{":
            self._not_understood(node, scope, "arithmetic evaluates names and may run commands in them")
            return
        self._inside(node, scope, None)

    def _branches(self, node: Node, scope: Scope, _before: Node | None) -> None:
        """Of `if` and `case`: each may be taken or not."""
        self._with_redirects(node, scope)
        names = self._notes.assigned(node)
        start = scope.here

        def join() -> None:
            scope.widen(start)
            scope.forget(names)

        steps: list[Step] = []
        for child in node.children:
            if child.type in ("then", "elif_clause", "else_clause", "case_item"):
                steps.append(join)
            if child.is_named and child.type not in _SKIPPED:
                steps += [lambda child=child: self._visit(child, scope), scope.widen]  # type: ignore[misc]  # bound early
            elif child.type == "&":
                steps.append(lambda: self._commands.syntax("&", "nothing waits for a command in the background"))
        self._then([*steps, join])

    def _loop(self, node: Node, scope: Scope, before: Node | None) -> None:
        is_fed_otherwise = before is None or any(map(is_input, self._redirects.get(node.id, ())))
        lines = None if is_fed_otherwise else self._commands.lines_before(node, scope)
        self._with_redirects(node, scope)
        self._before_loop(node, scope)
        if self._is_endless_bomb(node):
            self._commands.syntax(self._source.shown(node), "it starts programs endlessly", "fork-bomb")
        names = self._notes.assigned(node)
        condition = node.child_by_field_name("condition")
        variable = None if condition is None else line_variable(self._source, condition)
        if lines is None or variable is None or condition is None or node.children[0].type != "while":
            self._then([lambda: self._sequence(node.children, scope), lambda: scope.forget(names)])
            return
        inside = scope.copy()

        def begin() -> None:
            inside.known[variable] = Values(lines, from_files=True)
            inside.is_fed_names = True

        rest = [child for child in node.children if child.id != condition.id]
        steps = [lambda: self._visit(condition, inside), begin, lambda: self._sequence(rest, inside)]
        # It is a stage of a pipe: a shell of its own, of which nothing is seen outside.
        self._then([*steps, lambda: scope.forget(names)])

    def _before_loop(self, node: Node, scope: Scope) -> None:
        names = self._notes.assigned(node)
        counters = [name for name in names or () if name in scope.known and is_numeric(scope.known[name])]
        counters = [name for name in counters if self._notes.only_counts(node, name)]
        scope.forget(names)
        for name in counters:
            scope.known[name] = Values((), may_be_option=True, is_number=True)
        if self._notes.changes_directory(node):
            scope.here = None

    def _for(self, node: Node, scope: Scope, _before: Node | None) -> None:
        self._with_redirects(node, scope)
        variable = node.child_by_field_name("variable")
        body = node.child_by_field_name("body")
        if variable is None or body is None or body.type != "do_group" or node.children[0].type != "for":
            self._not_understood(node, scope, "haft does not analyse loops of this kind")
            return
        words = [word_at(self._source, child) for child in node.children_by_field_name("value")]
        self._before_loop(node, scope)
        inner = self._commands.loop(node, self._source.of(variable), words, scope, self._notes.assigned(body))
        # There may have been nothing to go through.
        self._then([lambda: self._visit(body, scope), lambda: scope.forget(self._notes.assigned(node))])
        self._then_inner(inner, scope)

    def _case(self, node: Node, scope: Scope, before: Node | None) -> None:
        value = node.child_by_field_name("value")
        if value is None:
            raise NotUnderstood("a `case` has no word")
        word = word_at(self._source, value)
        self._commands.compared(node, word)
        names = self._notes.assigned(node)
        start = scope.here
        steps: list[Step] = []

        def join() -> None:
            scope.widen(start)
            scope.forget(names)

        self._with_redirects(node, scope)
        for child in node.named_children:
            if child.type == "case_item":
                steps += [lambda child=child: self._visit(child, scope, before), join]  # type: ignore[misc]  # bound early
        self._then(steps)
        self._then_inner(word.inner, scope)

    def _case_item(self, node: Node, scope: Scope, _before: Node | None) -> None:
        values = node.children_by_field_name("value")
        for value in values:
            word = word_at(self._source, value)
            self._commands.compared(node, word)
            self._then_inner(word.inner, scope)
        ids = {value.id for value in values}
        self._sequence((child for child in node.children if child.id not in ids), scope)

    def _function(self, node: Node, scope: Scope, _before: Node | None) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        shown = self._source.shown(node)
        if name is None or body is None:
            raise NotUnderstood("a function has no name")
        called = {self._source.of(each) for each in descendants(body) if each.type == "command_name"}
        multiplies = any(each.type in ("&", "|", "|&", "pipeline") for each in descendants(body))
        if self._source.of(name) in called and multiplies:
            self._commands.syntax(shown, "the function starts itself endlessly", "fork-bomb")
        else:
            self._commands.syntax(shown, f"`{self._source.shown(name)}` is then no longer the program of this name")
        # What leads into it is known only where it is called.
        self._visit(body, Scope(scope.here, patterns=scope.patterns, is_fed=True))
        scope.is_fed = scope.is_fed or "exec" in called
        scope.forget()

    def _test(self, node: Node, scope: Scope, _before: Node | None) -> None:
        self._with_redirects(node, scope)
        if node.children[0].type == "[":
            inner = self._commands.bracket(node, scope)
        elif node.children[0].type == "[[":
            inner = double_bracket(self._source, node, scope, self._commands)
        else:
            self._not_understood(node, scope, "arithmetic evaluates names and may run commands in them")
            return
        self._then_inner(inner, scope)

    def _declaration(self, node: Node, scope: Scope, _before: Node | None) -> None:
        self._with_redirects(node, scope)
        self._commands.declaration(node, scope)
        scope.forget()
        self._then_inner(outermost(node, _SUBSTITUTIONS).values(), scope)

    def _not_understood(self, node: Node, scope: Scope, reason: str) -> None:
        """What is not looked into is not safe; the commands in it are judged all the same, to name their dangers."""
        is_hidden = _COUNTS.match(self._source.of(node)) is None
        self._commands.syntax(self._source.shown(node), reason, is_hidden=is_hidden)
        scope.forget()
        for child in node.children:
            for each in outermost(child, _STATEMENTS).values():
                if each.type in _SUBSTITUTIONS:
                    self._then_inner((each,), scope)
                else:
                    self._then([lambda each=each: self._visit(each, scope)])  # type: ignore[misc]  # bound early

    def _is_endless_bomb(self, node: Node) -> bool:
        condition = node.child_by_field_name("condition")
        is_endless = condition is not None and self._source.of(condition) in ("true", ":", "[ 1 ]")
        return is_endless and self._notes.starts_in_background(node)
