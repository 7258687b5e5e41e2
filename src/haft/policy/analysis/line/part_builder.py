"""Makes the parts of a line, one by one: each simple command, assignment and redirection, with its classification."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from haft.lazy import regex
from haft.policy.analysis.command.classifier import Classification, CommandClassifier, only_directory
from haft.policy.analysis.command.dangers import DangerFinder, Dangers, in_class_order
from haft.policy.analysis.command.listings import Listing
from haft.policy.analysis.command.pattern_free import has_pattern, prints_no_pattern
from haft.policy.analysis.command.possible_dangers import (
    PossibleDangerFinder,
    has_command_in_subscript,
    has_composed_subscript,
    has_substitution,
    may_run_command,
)
from haft.policy.analysis.command.redirections import redirection_part
from haft.policy.analysis.command.wrappers import SHELLS
from haft.policy.analysis.command.xargs import parse_xargs
from haft.policy.analysis.deadline import NotUnderstood
from haft.policy.analysis.line.expander import Expander
from haft.policy.analysis.program import Argument
from haft.policy.analysis.scope import Scope, is_harmless_before, is_harmless_name, is_numeric
from haft.policy.analysis.text.pipes import stages_before, stages_of
from haft.policy.analysis.text.source import RESERVED, Source, decode
from haft.policy.analysis.text.words import Word, WordReader, assigned_value, is_name, outermost, word_at
from haft.policy.analysis.verdict import DANGERS, Danger, Part
from haft.values import dataclass, field, replace

if TYPE_CHECKING:
    from tree_sitter import Node

_UNEXPANDED: Final = regex(r"'|^(?:\"\w+\+?=|\w+\+?=\")\(")
_QUOTES: Final = regex(r"[\"'\\]")
_COMPOSED_INDEX: Final = regex(r"=\((?:.*\s)?\[[^\]\s]*[$`][^=]*\]\+?=", re.DOTALL)
_COUNTER: Final = regex(r"\w+\[\$?\{?(\w+)\}?\]", re.ASCII)
_MAX_PARTS: Final = 300
_MAX_REASON_LENGTH: Final = 400
_SUBSTITUTIONS: Final = frozenset(("command_substitution", "process_substitution"))
_CHANGES_THE_SHELL: Final = frozenset((
    "pushd", "popd", "set", "shopt", "eval", "source", ".", "mapfile", "readarray", "getopts", "unset", "declare",
    "local", "shift", "builtin", "alias", "enable", "trap", "let", "dirs",
))  # fmt: skip


@dataclass(slots=True)
class PartBuilder:
    """Collects the parts of one line."""

    source: Source
    classifier: CommandClassifier
    finder: DangerFinder
    parts: list[Part] = field(default_factory=list)

    def add(self, part: Part) -> None:
        """Add a part; raises `NotUnderstood` if the line has too many."""
        if len(self.parts) >= _MAX_PARTS:
            raise NotUnderstood("it has too many commands")
        if len(part.reason) > _MAX_REASON_LENGTH:
            part = replace(part, reason=part.reason[:_MAX_REASON_LENGTH] + "…")
        if "fetch-and-run" in part.dangers or "not-understood" in part.dangers:
            part = replace(part, possible=tuple(DANGERS))
        self.parts.append(part)

    def add_syntax(self, text: str, reason: str, *dangers: Danger, is_hidden: bool = False) -> None:
        """Add a part for syntax that is not safe. With `is_hidden`, the syntax may run commands that the line does not
        show, so it may have any danger."""
        possible = tuple(DANGERS) if is_hidden else ()
        self.add(Part("syntax", text, (), False, reason, dangers, literal=False, possible=possible))

    def expander(self, scope: Scope) -> Expander:
        """The expander for the words of a scope."""
        return Expander(scope, self.classifier.resolver, lambda node, raw: self._substitution_output(node, raw, scope))

    def _substitution_output(self, node: Node, raw: str, scope: Scope) -> Argument | None:
        """An argument that stands for the output of a substitution such as `$(ls)`, if haft knows that the output is a
        number, file names, or text without glob characters; otherwise None."""
        stages = stages_of(self.source, node)
        if stages is None:
            return None
        last = [self.source.raw(child) for child in stages[-1].children]
        if len(stages) > 1 and last in (["wc", "-l"], ["wc", "-w"], ["wc", "-c"]):
            return Argument(raw, literal=False, is_number=True)
        listing = self._listing(stages, scope)
        names = None if listing is None else listing.as_words()
        if names is not None:
            return Argument(
                raw, literal=False, paths=names, may_split=True, is_program_output=True, is_pattern_free=True
            )
        words = [self._expand(self._assignments_and_words(stage)[1], scope)[0] for stage in stages]
        is_pattern_free = all(words) and prints_no_pattern(words, scope.directories)
        is_pattern_free = is_pattern_free or (listing is not None and not any(map(has_pattern, listing.names)))
        return (
            Argument(raw, literal=False, may_be_option=True, may_split=True, is_pattern_free=True)
            if is_pattern_free
            else None
        )

    def _listing(self, stages: list[Node], scope: Scope) -> Listing | None:
        directory = only_directory(scope)
        if directory is None:
            return None
        words = [self._assignments_and_words(stage)[1] for stage in stages]
        if not all(words):
            return None
        return self.classifier.lister.names_of_pipe([self._expand(each, scope)[0] for each in words], directory)

    def names_piped_into(self, node: Node, scope: Scope) -> tuple[str, ...] | None:
        """The names that a pipe prints into a statement, one on each line; None if it may print something else."""
        stages = stages_before(self.source, node)
        listing = None if stages is None else self._listing(stages, scope)
        names = None if listing is None else listing.as_trimmed_lines()
        is_inside = (
            self.classifier.why_expansion_leaves_workspace((Argument("", False, names, may_split=True),), scope) is None
        )
        return names if is_inside else None

    def add_command(
        self, node: Node, more: list[Word], scope: Scope, stdin: bool | str, piped_from: Node | None
    ) -> Iterable[Node]:
        """Add a simple command, and return the substitutions in it."""
        assigned, words = self._assignments_and_words(node)
        words += more
        if not words:
            raise NotUnderstood("a command has no program")
        self._check_reserved(words)
        arguments, written, is_literal = self._expand(words, scope)
        before_it = [self.source.decoded(each) for each in assigned]
        substitutions = [each for word in words for each in word.substitutions]
        classification = self._classify(node, arguments, scope, piped_from, stdin is not False)
        if arguments[0].text == "time" and (assigned or piped_from is not None or words[0].raw != "time"):
            classification = Classification(False, "`time` is a program here, not a keyword of the shell")
        possible: set[Danger] = set()
        for each in assigned:
            name, value, problem = self._read_assignment(each)
            is_for_read = name == "IFS" and arguments[0].literal and arguments[0].text == "read"
            is_harmless = is_harmless_before(name, value.literal) or (is_for_read and value.literal is not None)
            if problem or not is_harmless:
                reason = f"`{name}` may change what `{arguments[0].text}` does"
                classification = Classification(False, reason, starts_others=classification.starts_others)
            substitutions += self._substitutions_in(each, value)
            possible |= self._possible_finder(scope).find_by_variable(name, value.literal)
        program = arguments[0]
        dangers = Dangers() if classification.is_safe else self._dangers(arguments, classification, scope, stdin, words)
        if program.text in _CHANGES_THE_SHELL and not classification.is_safe:
            scope.forget()
            scope.directories = None
        self.add(
            Part(
                "command",
                self.source.decoded(node),
                (*before_it, *written),
                classification.is_safe,
                classification.reason,
                dangers.visible,
                is_literal and all(self._read_assignment(each)[1].literal is not None for each in assigned),
                program.text if program.literal and written[0] == program.text else None,
                classification.starts_others,
                in_class_order((*possible, *dangers.possible)),
            )
        )
        return substitutions

    def _substitutions_in(self, node: Node, value: Word) -> Iterable[Node]:
        """The substitutions in an assignment, also those in an array or a subscript."""
        return value.substitutions or outermost(node, _SUBSTITUTIONS).values()

    def _assignments_and_words(self, node: Node) -> tuple[list[Node], list[Word]]:
        assigned: list[Node] = []
        words: list[Word] = []
        # A lone `$` is a word too, although the parser does not name its node.
        for child in node.children:
            if child.type == "variable_assignment" and not words:
                assigned.append(child)
            elif child.type != "comment" and not child.type.endswith("_redirect"):
                words.append(word_at(self.source, child))
        return assigned, words

    def _check_reserved(self, words: list[Word]) -> None:
        names = [word.raw for word in words[:3]]
        while names and names[0] in ("time", "-p"):
            del names[0]
        if names and names[0] in RESERVED:
            raise NotUnderstood(f"`{names[0]}` is a keyword of the shell in a place where it has no meaning")

    def _expand(self, words: list[Word], scope: Scope) -> tuple[list[Argument], list[str], bool]:
        """The arguments that the words become; the words to show to a person; and whether exactly the shown words will
        run."""
        expander = self.expander(scope)
        arguments: list[Argument] = []
        written: list[str] = []
        is_literal = True
        for word in words:
            found = expander.arguments(word)
            arguments += found
            if any(piece.kind == "variable" for piece in word.pieces):
                written.append(decode(word.raw))
                is_literal = False
            else:
                written += [each.text for each in found]
                is_literal = is_literal and all(each.literal for each in found)
        return arguments, written, is_literal

    def _classify(
        self, node: Node, arguments: list[Argument], scope: Scope, piped_from: Node | None, has_input: bool
    ) -> Classification:
        """Classify a command. `piped_from` is the stage of a pipe whose output is the command's input, if there is
        one."""
        found = parse_xargs(arguments[1:]) if arguments[0].literal and arguments[0].text == "xargs" else None
        if found is not None:
            stages = None if piped_from is None else stages_before(self.source, node)
            classification = self.classifier.classify_xargs(
                found, None if stages is None else self._listing(stages, scope), scope
            )
        else:
            classification = self.classifier.classify(arguments, scope)
        if (
            classification.is_safe
            and scope.reads_names
            and not has_input
            and not self.classifier.ignores_input(arguments)
        ):
            name = arguments[0].text
            return Classification(False, f"`{name}` may read input that belongs to the loop")
        return classification

    def _dangers(
        self,
        arguments: list[Argument],
        classification: Classification,
        scope: Scope,
        stdin: bool | str,
        words: list[Word],
    ) -> Dangers:
        named: list[Danger] = []
        stdin = decode(stdin) if isinstance(stdin, str) else stdin
        directories = sorted(scope.directories) if scope.directories else (None,)
        for directory in directories:
            has_outer_input = scope.has_input and stdin is False
            named += self.finder.find(
                arguments, directory, has_input=stdin is True, has_outer_input=has_outer_input
            ).visible
            if not classification.is_safe and arguments[0].text not in ("[", "test"):
                named += self.finder.operand_dangers(arguments, directory)
        if any(piece.kind == "substitution" for piece in words[0].pieces):
            named.append("fetch-and-run")
        if isinstance(stdin, str) and arguments[0].text.rpartition("/")[2] in SHELLS:
            named += self.finder.line_dangers(stdin, self.finder.depth + 1, False).visible
        if any(word.unclear_part is not None and may_run_command(word.unclear_part) for word in words):
            return Dangers(in_class_order(named), tuple(DANGERS))
        possible = self._possible_finder(scope).find(arguments, directories[0], stdin=stdin)
        return Dangers(in_class_order(named), in_class_order(possible))

    def _possible_finder(self, scope: Scope) -> PossibleDangerFinder:
        return PossibleDangerFinder(self.finder, has_outer_input=scope.has_input, is_in_loop=scope.is_loop_with_input)

    def add_assignment(self, node: Node, scope: Scope) -> Iterable[Node]:
        """Add the assignment of a variable for the rest of the line, and return the substitutions in it."""
        name, value, problem = self._read_assignment(node)
        value = self.expander(scope).resolve_arithmetic(value)
        if problem is None and value.unclear_part is not None:
            problem = f"haft cannot tell what `{decode(value.unclear_part)}` does before it runs"
        if problem is None and not is_harmless_name(name):
            problem = f"setting `{name}` may change the behaviour of programs"
        known = self.expander(scope).assigned_values(value) if problem is None else None
        if known is None:
            scope.forget((name,))
        else:
            scope.variables[name] = known
        text = self.source.decoded(node)
        reason = problem or "it only sets a variable for the line"
        is_evaluated = value.unclear_part is not None and may_run_command(value.unclear_part)
        is_hidden = (problem is not None and is_evaluated) or has_command_in_subscript(value.literal or "")
        is_hidden = is_hidden or (has_composed_subscript(name) and not self._is_counter(name, scope))
        is_hidden = is_hidden or _COMPOSED_INDEX.search(self.source.raw(node)) is not None
        found = () if problem is None else self._possible_finder(scope).find_by_variable(name, value.literal)
        possible = tuple(DANGERS) if is_hidden else in_class_order(found)
        is_literal = value.literal is not None
        self.add(Part("command", text, (text,), problem is None, reason, literal=is_literal, possible=possible))
        return self._substitutions_in(node, value)

    def _is_counter(self, name: str, scope: Scope) -> bool:
        found = _COUNTER.fullmatch(name)
        return found is not None and found[1] in scope.variables and is_numeric(scope.variables[found[1]])

    def _read_assignment(self, node: Node) -> tuple[str, Word, str | None]:
        """The name of the variable; the assigned value; and why the assignment is not safe, or None if it may be
        safe."""
        name, operator = node.children[0], node.children[1]
        written = self.source.raw(name)
        if name.type != "variable_name" or not is_name(written) or operator.type != "=":
            return written, Word("", ()), f"haft does not analyse this way to set `{decode(written)}`"
        if name.end_byte != operator.start_byte:
            raise NotUnderstood("an assignment is split")
        if any(child.type == "array" for child in node.children):
            return written, Word("", ()), f"haft does not analyse this way to set `{written}`"
        return written, assigned_value(self.source, node, operator.end_byte), None

    def set_loop_variable(
        self, node: Node, name: str, words: list[Word], scope: Scope, assigned: list[str] | None
    ) -> Iterable[Node]:
        """Record the variable of a `for` loop, and return the substitutions in the words of the loop."""
        expander = self.expander(scope)
        words = [expander.resolve_arithmetic(word) for word in words]
        arguments = [each for word in words for each in expander.arguments(word)]
        unclear = (each.text for each in arguments if each.may_have_effects)
        unclear_part = next(filter(None, (*(word.unclear_part for word in words), *unclear)), None)
        outside = self.classifier.why_expansion_leaves_workspace(
            (each for each in arguments if not each.is_program_output), scope
        )
        is_known = bool(words) and self.classifier.why_expansion_leaves_workspace(arguments, scope) is None
        if not is_harmless_name(name):
            self.add_syntax(self.source.decoded(node), f"setting `{name}` may change the behaviour of programs")
        elif unclear_part is not None:
            reason = f"haft cannot tell what `{decode(unclear_part)}` does before it runs"
            self.add_syntax(self.source.decoded(node), reason, is_hidden=may_run_command(unclear_part))
        elif outside is not None:
            self.add_syntax(self.source.decoded(node), outside)
        values = expander.loop_values(words) if is_known else None
        if values is None or assigned is None or name in assigned:
            scope.forget((name,))
        else:
            scope.variables[name] = values
        return [each for word in words for each in word.substitutions]

    def check_word(self, node: Node, word: Word) -> None:
        """Check a word whose value is only compared, or is only the input of a command. If an expansion in the word may
        do something, add a part that is not safe."""
        if word.unclear_part is not None:
            reason = f"haft cannot tell what `{decode(word.unclear_part)}` does before it runs"
            self.add_syntax(self.source.decoded(node), reason, is_hidden=may_run_command(word.unclear_part))

    def add_bracket(self, node: Node, scope: Scope) -> Iterable[Node]:
        """Add `[ … ]`, and return the substitutions in it."""
        words = self.words_between(node, node.start_byte, node.end_byte)
        self.add_test(node, words, self.classifier.classify(self._expand(words, scope)[0], scope), scope)
        return [each for word in words for each in word.substitutions]

    def add_test(self, node: Node, words: list[Word], classification: Classification, scope: Scope) -> None:
        """Add a test, such as `[[ … ]]`, as a part with this classification."""
        _, written, is_literal = self._expand(words, scope)
        text, reason = self.source.decoded(node), classification.reason
        if written[0] != "[":
            written = ["[[", *written, "]]"]
        is_hidden = not classification.is_safe and (
            has_substitution(word.literal or "" for word in words) or tests_composed_name(words)
        )
        possible = tuple(DANGERS) if is_hidden else ()
        part = Part("command", text, tuple(written), classification.is_safe, reason, (), is_literal, written[0])
        self.add(replace(part, possible=possible))

    def words_between(self, node: Node, at: int, end: int) -> list[Word]:
        """The words between two offsets of a node, which must contain only words and blanks."""
        reader = WordReader(self.source, node)
        words: list[Word] = []
        while at < end:
            if self.source.text[at] in " \t":
                at += 1
                continue
            word = reader.read(at)
            if word is None:
                raise NotUnderstood(f"bash may read `{self.source.decoded(node)[:60]}` differently")
            words.append(word)
            at = reader.at
        return words

    def add_declaration(self, node: Node, scope: Scope) -> None:
        """Add `export` or a similar command. It is never safe, because it changes how later programs behave."""
        text = self.source.decoded(node)
        words = tuple(text.split())
        raw = [self.source.raw(child) for child in node.children[1:]]
        found = self._possible_finder(scope).find_by_declaration(
            words[0], [(_QUOTES.sub("", each), _UNEXPANDED.search(each) is not None) for each in raw]
        )
        part = Part(
            "command",
            text,
            words,
            False,
            f"`{words[0]}` may change what the rest of the line does",
            (),
            False,
            words[0],
        )
        self.add(replace(part, possible=in_class_order(found)))

    def add_redirection(self, node: Node, target: Word | None, scope: Scope) -> Iterable[Node]:
        """Add a redirection to or from a file, and return the substitutions in its target."""
        operator = next(child.type for child in node.children if not child.is_named)
        arguments = [] if target is None else self.expander(scope).arguments(target)
        part = redirection_part(self.source.decoded(node), operator, arguments, scope, self.finder)
        if part is not None:
            self.add(part)
        return () if target is None else target.substitutions


def tests_composed_name(words: list[Word]) -> bool:
    """Whether `-v` tests a variable whose name is composed when the line runs, and so may contain a subscript."""
    return any(word.literal == "-v" and after.literal is None for word, after in itertools.pairwise(words))
