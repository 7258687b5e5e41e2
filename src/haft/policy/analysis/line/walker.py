"""Reads a line from left to right, without recursion: each simple command, redirection and unknown syntax is a part.

A stack holds the remaining steps. Each step has a scope: the facts that are known when it runs, such as the directory.
Steps at the same level (not in a subshell of their own) share one scope, so that a change of directory affects the
steps after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from haft.lazy import regex
from haft.policy.analysis.deadline import NotUnderstood
from haft.policy.analysis.line.brackets import add_double_bracket
from haft.policy.analysis.line.part_builder import PartBuilder
from haft.policy.analysis.scope import Scope, Values, is_numeric
from haft.policy.analysis.text.heredocs import read_heredoc
from haft.policy.analysis.text.line_effects import LineEffects
from haft.policy.analysis.text.pipes import cannot_fail, is_input, line_variable
from haft.policy.analysis.text.source import Source, descendants
from haft.policy.analysis.text.words import Word, outermost, word_at

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_STEPS: Final = 5_000
_COUNTING_LOOP: Final = regex(
    r"for \(\(\s*(\w+)\s*=\s*\d+\s*;\s*\1\s*[<>]=?\s*\d+\s*;\s*\1\s*(?:\+\+|--|[+-]=\s*\d+)\s*\)\)", re.ASCII
)
"""A loop that counts from one number to another. Its arithmetic uses only the loop's own variable."""
_EXEC: Final = regex(r"(?:(?:command|builtin)\s+)*\\?exec\b")
_LISTS_NAMES: Final = regex(r"(?:\$\(|`)\s*(?:find|fd|fdfind|ls|git|tree|rg)\b")
_PASSES_INPUT_ON: Final = frozenset(("command", "list", "pipeline", "redirected_statement"))
"""Statements whose own visitor passes their input on to the statements inside them."""
_LOOPS: Final = frozenset(("while_statement", "for_statement"))
_SKIPPED: Final = frozenset(("comment", "heredoc_body", "heredoc_end", "heredoc_start"))
_SUBSTITUTIONS: Final = frozenset(("command_substitution", "process_substitution"))
_STATEMENTS: Final = frozenset((
    "command", "redirected_statement", "list", "pipeline", "subshell", "compound_statement", "test_command",
    "command_substitution", "process_substitution", "variable_assignment", "declaration_command",
))  # fmt: skip

Step = Callable[[], None]


class LineWalker:
    """Visits the statements of one line in order, and adds their parts to a builder."""

    def __init__(self, source: Source, builder: PartBuilder) -> None:
        self._source = source
        self._builder = builder
        self._steps: list[Step] = []
        self._effects = LineEffects(source)
        self._redirects: dict[int, list[Node]] = {}
        self._more_words: dict[int, list[Word]] = {}
        self._visits: Mapping[str, Callable[[Node, Scope, Node | None], None]] = {
            "list": self._list,
            "pipeline": self._pipeline,
            "redirected_statement": self._redirected,
            "command": self._command,
            "variable_assignment": self._assignments,
            "variable_assignments": self._assignments,
            "negated_command": self._visit_children,
            "subshell": self._subshell,
            "compound_statement": self._compound,
            "if_statement": self._branches,
            "elif_clause": self._visit_children,
            "else_clause": self._visit_children,
            "while_statement": self._loop,
            "for_statement": self._for,
            "do_group": self._visit_children,
            "case_statement": self._case,
            "case_item": self._case_item,
            "function_definition": self._function,
            "test_command": self._test,
            "declaration_command": self._declaration,
            "unset_command": self._declaration,
            "file_redirect": self._lone_redirect,
        }

    def run(self, scope: Scope) -> None:
        """Visit the whole line."""
        scope.pattern_variables = frozenset(self._effects.pattern_variables)
        self._sequence(self._source.root.children, scope)
        count = 0
        while self._steps:
            count += 1
            if count > _MAX_STEPS:
                raise NotUnderstood("it has too many commands")
            self._source.deadline.check()
            self._steps.pop()()
        if any(self._redirects.values()) or self._more_words:
            raise NotUnderstood("haft cannot parse a redirection")

    def _push(self, steps: Iterable[Step]) -> None:
        self._steps += reversed(list(steps))

    def _visit(self, node: Node, scope: Scope, piped_from: Node | None = None) -> None:
        """Visit one statement. `piped_from` is the stage before it, if the statement is a later stage of a pipe."""
        visit = self._visits.get(node.type)
        if not self._is_certain_to_run(node):
            self._push([lambda start=scope.directories: self._may_not_run(node, scope, start)])  # type: ignore[misc]  # bound early
        self._note_input(node, scope, piped_from)
        if visit is None:
            self._not_understood(node, scope, f"haft does not analyse this syntax: `{self._source.decoded(node)[:60]}`")
        else:
            visit(node, scope, piped_from)

    def _note_input(self, node: Node, scope: Scope, piped_from: Node | None) -> None:
        """Record that the input of a statement is also the input of all commands in it."""
        if node.type in _PASSES_INPUT_ON:
            return
        start = scope.has_input, scope.is_loop_with_input
        has_input = piped_from is not None or self._has_redirected_input(node)
        is_loop_with_input = node.type in _LOOPS and (has_input or scope.has_input or self._iterates_over_names(node))

        def end() -> None:
            scope.has_input, scope.is_loop_with_input = start

        if has_input or is_loop_with_input:
            self._push([end])
            scope.has_input = scope.has_input or has_input
            scope.is_loop_with_input = scope.is_loop_with_input or is_loop_with_input

    def _iterates_over_names(self, node: Node) -> bool:
        """Whether a loop iterates over the output of a program that lists files, as in `for f in $(find .)`."""
        values = [self._source.raw(child) for child in node.children_by_field_name("value")]
        return any(map(_LISTS_NAMES.search, values))

    def _has_redirected_input(self, node: Node) -> bool:
        redirects = self._redirects.get(node.id, ())
        return any(is_input(each) and not cannot_fail(self._source, each) for each in redirects)

    def _is_certain_to_run(self, node: Node) -> bool:
        """Whether none of a statement's redirections can fail. If one fails, bash does not run the statement."""
        own = node.named_children if node.type == "command" else ()
        redirects = [child for child in own if child.type.endswith("_redirect")] + self._redirects.get(node.id, [])
        return all(cannot_fail(self._source, each) for each in redirects)

    def _may_not_run(self, node: Node, scope: Scope, start: frozenset[str] | None) -> None:
        """Handle a statement that perhaps does not run: in `scope`, the directories before the statement (`start`) stay
        possible, and the variables that the statement sets become unknown."""
        if start is None:
            scope.directories = None
        else:
            scope.directories_if_failed = scope.directories_if_failed | start
        # Assignments before a command hold only for that command, and `read` forgets its variables anyway.
        if node.type != "command":
            scope.forget(self._effects.variables_set_in(node))

    def _sequence(self, nodes: Iterable[Node], scope: Scope) -> None:
        steps: list[Step] = []
        for node in nodes:
            if node.is_named and node.type not in _SKIPPED:
                steps += [lambda node=node: self._visit(node, scope), scope.widen]  # type: ignore[misc]  # bound early
            elif node.type == "&":
                steps.append(lambda: self._builder.add_syntax("&", "nothing waits for a command in the background"))
        self._push(steps)

    def _visit_children(self, node: Node, scope: Scope, _before: Node | None) -> None:
        self._with_redirects(node, scope)
        self._sequence(node.children, scope)

    def _list(self, node: Node, scope: Scope, piped_from: Node | None) -> None:
        left, right = (child for child in node.children if child.is_named and child.type != "comment")
        operators = [child.type for child in node.children if not child.is_named and child.type.strip()]
        if operators not in (["&&"], ["||"]):
            raise NotUnderstood("haft does not know an operator between its commands")
        is_either = operators == ["||"]

        def visit_right() -> None:
            if is_either:
                scope.widen()
            start = scope.directories
            self._push([lambda: self._visit(right, scope, piped_from), lambda: join(start)])

        def join(start: frozenset[str] | None) -> None:
            """Handle the case that the statement after `&&` or `||` did not run."""
            if is_either or start is None:
                scope.widen(start)
            else:
                scope.directories_if_failed = scope.directories_if_failed | start
            scope.forget(self._effects.variables_set_in(right))

        self._push([lambda: self._visit(left, scope, piped_from), visit_right])

    def _pipeline(self, node: Node, scope: Scope, piped_from: Node | None) -> None:
        steps: list[Step] = []
        for child in node.children:
            if not child.is_named:
                if child.type not in ("|", "|&", "\n"):
                    raise NotUnderstood("haft does not know an operator in a pipe")
                continue
            if child.type == "comment":
                continue
            steps.append(lambda child=child, piped_from=piped_from: self._stage(child, scope, piped_from))  # type: ignore[misc]  # bound early
            piped_from = child
        self._push([*steps, scope.widen, lambda: scope.forget(self._effects.variables_set_in(node))])

    def _stage(self, node: Node, scope: Scope, piped_from: Node | None) -> None:
        # The parser reads `a && b > f | c` as `(a && b > f) | c`. In bash, `a` is not part of the pipe.
        is_list = node.type == "list" or (
            node.type == "redirected_statement" and any(child.type == "list" for child in node.children)
        )
        self._visit(node, scope if is_list else scope.copy(), piped_from)

    def _redirected(self, node: Node, scope: Scope, piped_from: Node | None) -> None:
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
        self._visit(body, scope, piped_from)

    def _lone_redirect(self, node: Node, scope: Scope, _before: Node | None) -> None:
        """Visit `$(< file)`."""
        self._redirects[node.id] = [node]
        self._with_redirects(node, scope)

    def _with_redirects(self, node: Node, scope: Scope) -> bool | str:
        """Classify the redirections of a statement, and return the input that a heredoc or a herestring gives to the
        statement: its text if the text is known, True if the text is not known, False if there is no such input."""
        stdin: bool | str = False
        waiting = self._redirects.pop(node.id, [])
        for redirect in waiting:
            if redirect.type == "file_redirect":
                words = self._targets(redirect)
                substitutions = self._builder.add_redirection(redirect, words[0] if words else None, scope)
                self._push_substitutions(substitutions, scope)
                if len(words) > 1:
                    if node.type != "command":
                        raise NotUnderstood("unexpected words follow a redirection")
                    self._more_words.setdefault(node.id, []).extend(words[1:])
            elif redirect.type == "heredoc_redirect":
                stdin = self._heredoc(redirect, scope, waiting)
            elif redirect.type == "herestring_redirect":
                word = word_at(self._source, redirect.named_children[-1])
                stdin = word.literal if word.literal is not None else True
                self._builder.check_word(redirect, word)
                self._push_substitutions(word.substitutions, scope)
            else:
                raise NotUnderstood("haft does not know this kind of redirection")
        return stdin

    def _targets(self, redirect: Node) -> list[Word]:
        nodes = [child for child in redirect.named_children if child.type != "file_descriptor"]
        return [word_at(self._source, child) for child in nodes]

    def _heredoc(self, redirect: Node, scope: Scope, waiting: list[Node]) -> bool | str:
        heredoc = read_heredoc(self._source, redirect)
        rest: list[Node] = []
        for child in redirect.named_children:
            if child.type.endswith("_redirect"):
                waiting.append(child)
            elif child.type not in (*_SKIPPED, "file_descriptor"):
                rest.append(child)
        if not heredoc.is_clear:
            # Bash would expand more in this text than the parser sees.
            reason = "an expansion in the text of a `<<` may do something"
            self._builder.add_syntax(self._source.decoded(redirect), reason, "not-understood")
            for child in redirect.children:
                if child.type == "heredoc_body":
                    self._push_substitutions(outermost(child, _SUBSTITUTIONS).values(), scope)
        for child in rest:
            if child.type not in self._visits:
                raise NotUnderstood("haft cannot parse the rest of the line after a `<<`")
            copy = scope.copy()
            self._push([lambda child=child, copy=copy: self._visit(child, copy, redirect)])  # type: ignore[misc]  # bound early
            scope.forget()
            if self._effects.changes_directory(child):
                scope.directories = None
        return heredoc.body if heredoc.is_literal else True

    def _push_substitutions(self, nodes: Iterable[Node], scope: Scope, *, has_input: bool = False) -> None:
        """Visit the commands in substitutions, each in its own copy of the scope."""
        for node in nodes:
            inside = scope.copy()
            inside.has_input = has_input or inside.has_input or node.children[0].type == ">("
            self._sequence(node.children, inside)

    def _command(self, node: Node, scope: Scope, piped_from: Node | None) -> None:
        redirects = [child for child in node.named_children if child.type.endswith("_redirect")]
        self._redirects.setdefault(node.id, []).extend(redirects)
        has_other_input = any(map(is_input, self._redirects[node.id]))
        stdin = self._with_redirects(node, scope) or piped_from is not None or has_other_input
        more = self._more_words.pop(node.id, [])
        substitutions = self._builder.add_command(node, more, scope, stdin, None if has_other_input else piped_from)
        if has_other_input and _EXEC.match(self._source.raw(node)):
            scope.has_input = True
        self._push_substitutions(substitutions, scope, has_input=piped_from is not None)

    def _assignments(self, node: Node, scope: Scope, _before: Node | None) -> None:
        self._with_redirects(node, scope)
        for each in (node,) if node.type == "variable_assignment" else node.named_children:
            self._push_substitutions(self._builder.add_assignment(each, scope), scope)

    def _subshell(self, node: Node, scope: Scope, _before: Node | None) -> None:
        self._with_redirects(node, scope)
        self._sequence(node.children, scope.copy())

    def _compound(self, node: Node, scope: Scope, _before: Node | None) -> None:
        if node.children[0].type != "{":
            self._not_understood(node, scope, "arithmetic evaluates names and may run commands in them")
            return
        self._visit_children(node, scope, None)

    def _branches(self, node: Node, scope: Scope, _before: Node | None) -> None:
        """Visit the branches of an `if`: each of them may run or not."""
        self._with_redirects(node, scope)
        names = self._effects.variables_set_in(node)
        start = scope.directories

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
                steps.append(lambda: self._builder.add_syntax("&", "nothing waits for a command in the background"))
        self._push([*steps, join])

    def _loop(self, node: Node, scope: Scope, piped_from: Node | None) -> None:
        has_other_input = piped_from is None or any(map(is_input, self._redirects.get(node.id, ())))
        lines = None if has_other_input else self._builder.names_piped_into(node, scope)
        self._with_redirects(node, scope)
        self._before_loop(node, scope)
        if self._is_endless_bomb(node):
            self._builder.add_syntax(self._source.decoded(node), "it starts programs endlessly", "fork-bomb")
        names = self._effects.variables_set_in(node)
        condition = node.child_by_field_name("condition")
        variable = None if condition is None else line_variable(self._source, condition)
        if lines is None or variable is None or condition is None or node.children[0].type != "while":
            self._push([lambda: self._sequence(node.children, scope), lambda: scope.forget(names)])
            return
        inside = scope.copy()

        def begin() -> None:
            inside.variables[variable] = Values(lines, from_files=True)
            inside.reads_names = True

        rest = [child for child in node.children if child.id != condition.id]
        steps = [lambda: self._visit(condition, inside), begin, lambda: self._sequence(rest, inside)]
        # A stage of a pipe runs in its own shell, so its changes are not visible outside.
        self._push([*steps, lambda: scope.forget(names)])

    def _before_loop(self, node: Node, scope: Scope) -> None:
        names = self._effects.variables_set_in(node)
        counters = [name for name in names or () if name in scope.variables and is_numeric(scope.variables[name])]
        counters = [name for name in counters if self._effects.is_only_counted(node, name)]
        scope.forget(names)
        for name in counters:
            scope.variables[name] = Values((), may_be_option=True, is_number=True)
        if self._effects.changes_directory(node):
            scope.directories = None

    def _for(self, node: Node, scope: Scope, _before: Node | None) -> None:
        self._with_redirects(node, scope)
        variable = node.child_by_field_name("variable")
        body = node.child_by_field_name("body")
        if variable is None or body is None or body.type != "do_group" or node.children[0].type != "for":
            self._not_understood(node, scope, "haft does not analyse loops of this kind")
            return
        words = [word_at(self._source, child) for child in node.children_by_field_name("value")]
        self._before_loop(node, scope)
        substitutions = self._builder.set_loop_variable(
            node, self._source.raw(variable), words, scope, self._effects.variables_set_in(body)
        )
        # The body may not run at all, because there may be no words.
        self._push([lambda: self._visit(body, scope), lambda: scope.forget(self._effects.variables_set_in(node))])
        self._push_substitutions(substitutions, scope)

    def _case(self, node: Node, scope: Scope, piped_from: Node | None) -> None:
        value = node.child_by_field_name("value")
        if value is None:
            raise NotUnderstood("a `case` has no word")
        word = word_at(self._source, value)
        self._builder.check_word(node, word)
        names = self._effects.variables_set_in(node)
        start = scope.directories
        steps: list[Step] = []

        def join() -> None:
            scope.widen(start)
            scope.forget(names)

        self._with_redirects(node, scope)
        for child in node.named_children:
            if child.type == "case_item":
                steps += [lambda child=child: self._visit(child, scope, piped_from), join]  # type: ignore[misc]  # bound early
        self._push(steps)
        self._push_substitutions(word.substitutions, scope)

    def _case_item(self, node: Node, scope: Scope, _before: Node | None) -> None:
        values = node.children_by_field_name("value")
        for value in values:
            word = word_at(self._source, value)
            self._builder.check_word(node, word)
            self._push_substitutions(word.substitutions, scope)
        ids = {value.id for value in values}
        self._sequence((child for child in node.children if child.id not in ids), scope)

    def _function(self, node: Node, scope: Scope, _before: Node | None) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        shown = self._source.decoded(node)
        if name is None or body is None:
            raise NotUnderstood("a function has no name")
        called = {self._source.raw(each) for each in descendants(body) if each.type == "command_name"}
        multiplies = any(each.type in ("&", "|", "|&", "pipeline") for each in descendants(body))
        if self._source.raw(name) in called and multiplies:
            self._builder.add_syntax(shown, "the function starts itself endlessly", "fork-bomb")
        else:
            self._builder.add_syntax(
                shown, f"`{self._source.decoded(name)}` is then no longer the program of this name"
            )
        # The input of a function is known only where the function is called.
        self._visit(body, Scope(scope.directories, pattern_variables=scope.pattern_variables, has_input=True))
        scope.has_input = scope.has_input or "exec" in called
        scope.forget()

    def _test(self, node: Node, scope: Scope, _before: Node | None) -> None:
        self._with_redirects(node, scope)
        if node.children[0].type == "[":
            substitutions = self._builder.add_bracket(node, scope)
        elif node.children[0].type == "[[":
            substitutions = add_double_bracket(self._source, node, scope, self._builder)
        else:
            self._not_understood(node, scope, "arithmetic evaluates names and may run commands in them")
            return
        self._push_substitutions(substitutions, scope)

    def _declaration(self, node: Node, scope: Scope, _before: Node | None) -> None:
        self._with_redirects(node, scope)
        self._builder.add_declaration(node, scope)
        scope.forget()
        self._push_substitutions(outermost(node, _SUBSTITUTIONS).values(), scope)

    def _not_understood(self, node: Node, scope: Scope, reason: str) -> None:
        """For syntax that haft does not analyse: add a part that is not safe, and visit the commands in the syntax to
        find their dangers."""
        is_hidden = _COUNTING_LOOP.match(self._source.raw(node)) is None
        self._builder.add_syntax(self._source.decoded(node), reason, is_hidden=is_hidden)
        scope.forget()
        for child in node.children:
            for each in outermost(child, _STATEMENTS).values():
                if each.type in _SUBSTITUTIONS:
                    self._push_substitutions((each,), scope)
                else:
                    self._push([lambda each=each: self._visit(each, scope)])  # type: ignore[misc]  # bound early

    def _is_endless_bomb(self, node: Node) -> bool:
        condition = node.child_by_field_name("condition")
        is_endless = condition is not None and self._source.raw(condition) in ("true", ":", "[ 1 ]")
        return is_endless and self._effects.starts_in_background(node)
