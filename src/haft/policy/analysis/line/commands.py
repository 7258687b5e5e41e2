"""Makes the parts of a line, one by one: each simple command, assignment and redirection, with its classification."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from haft.lazy import regex
from haft.policy.analysis.command.classifier import Classification, CommandClassifier, only
from haft.policy.analysis.command.dangers import DangerFinder, Dangers, ordered
from haft.policy.analysis.command.listings import Listing
from haft.policy.analysis.command.possible import (
    PossibleFinder,
    evaluates,
    has_open_subscript,
    holds_subscript,
    names_commands,
)
from haft.policy.analysis.command.redirections import redirected
from haft.policy.analysis.command.texts import has_pattern, prints_no_pattern
from haft.policy.analysis.command.wrapping import SHELLS
from haft.policy.analysis.command.xargs import xargs
from haft.policy.analysis.deadline import NotUnderstood
from haft.policy.analysis.line.expanding import Expander
from haft.policy.analysis.program import Argument
from haft.policy.analysis.scope import Scope, is_harmless_before, is_harmless_name, is_numeric
from haft.policy.analysis.text.pipes import stages_before, stages_of
from haft.policy.analysis.text.source import RESERVED, Source, shown
from haft.policy.analysis.text.words import Word, WordReader, is_name, outermost, value_of, word_at
from haft.policy.analysis.verdict import DANGERS, Danger, Part
from haft.values import dataclass, field, replace

if TYPE_CHECKING:
    from tree_sitter import Node

_LEFT_ALONE: Final = regex(r"'|^(?:\"\w+\+?=|\w+\+?=\")\(")
_QUOTES: Final = regex(r"[\"'\\]")
_OPEN_ITEM: Final = regex(r"=\((?:.*\s)?\[[^\]\s]*[$`][^=]*\]\+?=", re.DOTALL)
_COUNTER: Final = regex(r"\w+\[\$?\{?(\w+)\}?\]", re.ASCII)
_MOST_PARTS: Final = 300
_LONGEST_REASON: Final = 400
_SUBSTITUTIONS: Final = frozenset(("command_substitution", "process_substitution"))
_CHANGES_THE_SHELL: Final = frozenset((
    "pushd", "popd", "set", "shopt", "eval", "source", ".", "mapfile", "readarray", "getopts", "unset", "declare",
    "local", "shift", "builtin", "alias", "enable", "trap", "let", "dirs",
))  # fmt: skip


@dataclass(slots=True)
class Commands:
    """Gathers the parts of one line."""

    source: Source
    judge: CommandClassifier
    finder: DangerFinder
    parts: list[Part] = field(default_factory=list)

    def add(self, part: Part) -> None:
        """One part more, up to a bound."""
        if len(self.parts) >= _MOST_PARTS:
            raise NotUnderstood("it has too many commands")
        if len(part.reason) > _LONGEST_REASON:
            part = replace(part, reason=part.reason[:_LONGEST_REASON] + "…")
        if "fetch-and-run" in part.dangers or "not-understood" in part.dangers:
            part = replace(part, possible=tuple(DANGERS))
        self.parts.append(part)

    def syntax(self, text: str, reason: str, *dangers: Danger, is_hidden: bool = False) -> None:
        """Something that is not a command and not safe; `is_hidden`: it may run commands that nobody sees."""
        possible = tuple(DANGERS) if is_hidden else ()
        self.add(Part("syntax", text, (), False, reason, dangers, literal=False, possible=possible))

    def expander(self, scope: Scope) -> Expander:
        """What turns words into arguments in a scope."""
        return Expander(scope, self.judge.places, lambda node, raw: self._substituted(node, raw, scope))

    def _substituted(self, node: Node, raw: str, scope: Scope) -> Argument | None:
        """What a substitution stands for, where it is a number or names of files."""
        stages = stages_of(self.source, node)
        if stages is None:
            return None
        last = [self.source.of(child) for child in stages[-1].children]
        if len(stages) > 1 and last in (["wc", "-l"], ["wc", "-w"], ["wc", "-c"]):
            return Argument(raw, literal=False, is_number=True)
        listing = self._listed(stages, scope)
        names = None if listing is None else listing.as_words()
        if names is not None:
            return Argument(raw, literal=False, paths=names, splits=True, is_listed=True, is_text=True)
        words = [self._expanded(self._words(stage)[1], scope)[0] for stage in stages]
        is_text = all(words) and prints_no_pattern(words, scope.here)
        is_text = is_text or (listing is not None and not any(map(has_pattern, listing.names)))
        return Argument(raw, literal=False, may_be_option=True, splits=True, is_text=True) if is_text else None

    def _listed(self, stages: list[Node], scope: Scope) -> Listing | None:
        directory = only(scope)
        if directory is None:
            return None
        words = [self._words(stage)[1] for stage in stages]
        if not all(words):
            return None
        return self.judge.lister.listed([self._expanded(each, scope)[0] for each in words], directory)

    def lines_before(self, node: Node, scope: Scope) -> tuple[str, ...] | None:
        """The names that a pipe leads to a statement, one a line; None where it leads something else there."""
        stages = stages_before(self.source, node)
        listing = None if stages is None else self._listed(stages, scope)
        names = None if listing is None else listing.as_items()
        is_inside = self.judge.why_not_look_up((Argument("", False, names, splits=True),), scope) is None
        return names if is_inside else None

    def command(
        self, node: Node, more: list[Word], scope: Scope, fed: bool | str, before: Node | None
    ) -> Iterable[Node]:
        """A simple command; answers with the substitutions in it."""
        assigned, words = self._words(node)
        words += more
        if not words:
            raise NotUnderstood("a command has no program")
        self._check_reserved(words)
        arguments, written, is_literal = self._expanded(words, scope)
        before_it = [self.source.shown(each) for each in assigned]
        inner = [each for word in words for each in word.inner]
        classification = self._judged(node, arguments, scope, before, fed is not False)
        if arguments[0].text == "time" and (assigned or before is not None or words[0].raw != "time"):
            classification = Classification(False, "`time` is a program here, not a keyword of the shell")
        possible: set[Danger] = set()
        for each in assigned:
            name, value, problem = self._assignment(each)
            is_for_read = name == "IFS" and arguments[0].literal and arguments[0].text == "read"
            is_harmless = is_harmless_before(name, value.literal) or (is_for_read and value.literal is not None)
            if problem or not is_harmless:
                reason = f"`{name}` may change what `{arguments[0].text}` does"
                classification = Classification(False, reason, starts_others=classification.starts_others)
            inner += self._inside(each, value)
            possible |= self._possible(scope).of_variable(name, value.literal)
        program = arguments[0]
        dangers = Dangers() if classification.is_safe else self._dangers(arguments, classification, scope, fed, words)
        if program.text in _CHANGES_THE_SHELL and not classification.is_safe:
            scope.forget()
            scope.here = None
        self.add(
            Part(
                "command",
                self.source.shown(node),
                (*before_it, *written),
                classification.is_safe,
                classification.reason,
                dangers.named,
                is_literal and all(self._assignment(each)[1].literal is not None for each in assigned),
                program.text if program.literal and written[0] == program.text else None,
                classification.starts_others,
                ordered((*possible, *dangers.possible)),
            )
        )
        return inner

    def _inside(self, node: Node, value: Word) -> Iterable[Node]:
        """The substitutions in an assignment, those too in an array and in a subscript."""
        return value.inner or outermost(node, _SUBSTITUTIONS).values()

    def _words(self, node: Node) -> tuple[list[Node], list[Word]]:
        assigned: list[Node] = []
        words: list[Word] = []
        # A lone dollar is a word too, though the parser gives it no name.
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

    def _expanded(self, words: list[Word], scope: Scope) -> tuple[list[Argument], list[str], bool]:
        """Arguments; the words to show; and whether those are what will run."""
        expander = self.expander(scope)
        arguments: list[Argument] = []
        written: list[str] = []
        is_literal = True
        for word in words:
            found = expander.arguments(word)
            arguments += found
            if any(piece.kind == "variable" for piece in word.pieces):
                written.append(shown(word.raw))
                is_literal = False
            else:
                written += [each.text for each in found]
                is_literal = is_literal and all(each.literal for each in found)
        return arguments, written, is_literal

    def _judged(
        self, node: Node, arguments: list[Argument], scope: Scope, before: Node | None, is_fed: bool
    ) -> Classification:
        """`before` is what a pipe leads in from, where nothing else is redirected there."""
        found = xargs(arguments[1:]) if arguments[0].literal and arguments[0].text == "xargs" else None
        if found is not None:
            stages = None if before is None else stages_before(self.source, node)
            classification = self.judge.handed(found, None if stages is None else self._listed(stages, scope), scope)
        else:
            classification = self.judge.judged(arguments, scope)
        if classification.is_safe and scope.is_fed_names and not is_fed and not self.judge.leaves_input(arguments):
            name = arguments[0].text
            return Classification(False, f"`{name}` may read input that belongs to the loop")
        return classification

    def _dangers(
        self,
        arguments: list[Argument],
        classification: Classification,
        scope: Scope,
        fed: bool | str,
        words: list[Word],
    ) -> Dangers:
        named: list[Danger] = []
        fed = shown(fed) if isinstance(fed, str) else fed
        directories = sorted(scope.here) if scope.here else (None,)
        for directory in directories:
            is_within = scope.is_fed and fed is False
            named += self.finder.found(arguments, directory, is_fed=fed is True, is_within=is_within).named
            if not classification.is_safe and arguments[0].text not in ("[", "test"):
                named += self.finder.outside(arguments, directory)
        if any(piece.kind == "substitution" for piece in words[0].pieces):
            named.append("fetch-and-run")
        if isinstance(fed, str) and arguments[0].text.rpartition("/")[2] in SHELLS:
            named += self.finder.inner(fed, self.finder.depth + 1, False).named
        if any(word.trouble is not None and evaluates(word.trouble) for word in words):
            return Dangers(ordered(named), tuple(DANGERS))
        possible = self._possible(scope).found(arguments, directories[0], fed=fed)
        return Dangers(ordered(named), ordered(possible))

    def _possible(self, scope: Scope) -> PossibleFinder:
        return PossibleFinder(self.finder, is_within=scope.is_fed, is_in_loop=scope.is_fed_loop)

    def assignment(self, node: Node, scope: Scope) -> Iterable[Node]:
        """A variable that is set for the rest of the line; answers with the substitutions in it."""
        name, value, problem = self._assignment(node)
        value = self.expander(scope).settled(value)
        if problem is None and value.trouble is not None:
            problem = f"haft cannot tell what `{shown(value.trouble)}` does before it runs"
        if problem is None and not is_harmless_name(name):
            problem = f"setting `{name}` may change the behaviour of programs"
        known = self.expander(scope).assigned(value) if problem is None else None
        if known is None:
            scope.forget((name,))
        else:
            scope.known[name] = known
        text = self.source.shown(node)
        reason = problem or "it only sets a variable for the line"
        is_evaluated = value.trouble is not None and evaluates(value.trouble)
        is_hidden = (problem is not None and is_evaluated) or holds_subscript(value.literal or "")
        is_hidden = is_hidden or (has_open_subscript(name) and not self._is_counter(name, scope))
        is_hidden = is_hidden or _OPEN_ITEM.search(self.source.of(node)) is not None
        found = () if problem is None else self._possible(scope).of_variable(name, value.literal)
        possible = tuple(DANGERS) if is_hidden else ordered(found)
        is_literal = value.literal is not None
        self.add(Part("command", text, (text,), problem is None, reason, literal=is_literal, possible=possible))
        return self._inside(node, value)

    def _is_counter(self, name: str, scope: Scope) -> bool:
        found = _COUNTER.fullmatch(name)
        return found is not None and found[1] in scope.known and is_numeric(scope.known[found[1]])

    def _assignment(self, node: Node) -> tuple[str, Word, str | None]:
        """A variable's name, what is assigned, and what is wrong with it."""
        name, operator = node.children[0], node.children[1]
        written = self.source.of(name)
        if name.type != "variable_name" or not is_name(written) or operator.type != "=":
            return written, Word("", ()), f"haft does not analyse this way to set `{shown(written)}`"
        if name.end_byte != operator.start_byte:
            raise NotUnderstood("an assignment is split")
        if any(child.type == "array" for child in node.children):
            return written, Word("", ()), f"haft does not analyse this way to set `{written}`"
        return written, value_of(self.source, node, operator.end_byte), None

    def loop(
        self, node: Node, name: str, words: list[Word], scope: Scope, assigned: list[str] | None
    ) -> Iterable[Node]:
        """The variable of a loop; answers with the substitutions in its words."""
        expander = self.expander(scope)
        words = [expander.settled(word) for word in words]
        arguments = [each for word in words for each in expander.arguments(word)]
        unclear = (each.text for each in arguments if each.is_unclear)
        trouble = next(filter(None, (*(word.trouble for word in words), *unclear)), None)
        outside = self.judge.why_not_look_up((each for each in arguments if not each.is_listed), scope)
        is_known = bool(words) and self.judge.why_not_look_up(arguments, scope) is None
        if not is_harmless_name(name):
            self.syntax(self.source.shown(node), f"setting `{name}` may change the behaviour of programs")
        elif trouble is not None:
            reason = f"haft cannot tell what `{shown(trouble)}` does before it runs"
            self.syntax(self.source.shown(node), reason, is_hidden=evaluates(trouble))
        elif outside is not None:
            self.syntax(self.source.shown(node), outside)
        values = expander.values(words) if is_known else None
        if values is None or assigned is None or name in assigned:
            scope.forget((name,))
        else:
            scope.known[name] = values
        return [each for word in words for each in word.inner]

    def compared(self, node: Node, word: Word) -> None:
        """A word that is only compared, or only fed to a command."""
        if word.trouble is not None:
            reason = f"haft cannot tell what `{shown(word.trouble)}` does before it runs"
            self.syntax(self.source.shown(node), reason, is_hidden=evaluates(word.trouble))

    fed = compared

    def bracket(self, node: Node, scope: Scope) -> Iterable[Node]:
        """`[ … ]`; answers with the substitutions in it."""
        words = self.words_between(node, node.start_byte, node.end_byte)
        self.tested(node, words, self.judge.judged(self._expanded(words, scope)[0], scope), scope)
        return [each for word in words for each in word.inner]

    def tested(self, node: Node, words: list[Word], classification: Classification, scope: Scope) -> None:
        """A test as a part."""
        _, written, is_literal = self._expanded(words, scope)
        text, reason = self.source.shown(node), classification.reason
        if written[0] != "[":
            written = ["[[", *written, "]]"]
        is_hidden = not classification.is_safe and (
            names_commands(word.literal or "" for word in words) or tests_unknown_name(words)
        )
        possible = tuple(DANGERS) if is_hidden else ()
        part = Part("command", text, tuple(written), classification.is_safe, reason, (), is_literal, written[0])
        self.add(replace(part, possible=possible))

    def words_between(self, node: Node, at: int, end: int) -> list[Word]:
        """The words in a stretch of a node that holds nothing else."""
        reader = WordReader(self.source, node)
        words: list[Word] = []
        while at < end:
            if self.source.text[at] in " \t":
                at += 1
                continue
            word = reader.read(at)
            if word is None:
                raise NotUnderstood(f"bash may read `{self.source.shown(node)[:60]}` differently")
            words.append(word)
            at = reader.at
        return words

    def declaration(self, node: Node, scope: Scope) -> None:
        """`export` and its like, which change what programs do that come after."""
        text = self.source.shown(node)
        words = tuple(text.split())
        raw = [self.source.of(child) for child in node.children[1:]]
        found = self._possible(scope).of_declaration(
            words[0], [(_QUOTES.sub("", each), _LEFT_ALONE.search(each) is not None) for each in raw]
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
        self.add(replace(part, possible=ordered(found)))

    def redirection(self, node: Node, target: Word | None, scope: Scope) -> Iterable[Node]:
        """A redirection to or from a file; answers with the substitutions in its target."""
        operator = next(child.type for child in node.children if not child.is_named)
        arguments = [] if target is None else self.expander(scope).arguments(target)
        part = redirected(self.source.shown(node), operator, arguments, scope, self.finder)
        if part is not None:
            self.add(part)
        return () if target is None else target.inner


def tests_unknown_name(words: list[Word]) -> bool:
    """Whether a test asks for a variable whose name is put together, and may hold a subscript."""
    return any(word.literal == "-v" and after.literal is None for word, after in itertools.pairwise(words))
