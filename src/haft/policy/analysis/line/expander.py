"""Turns words into arguments: expands braces, variables that the line itself set, and patterns of file names.

If the value of a word is not known, its argument says what the word may become: several words, or an option.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from haft.lazy import regex
from haft.policy.analysis.command.pattern_free import has_pattern, is_set_by_bash, variable_name
from haft.policy.analysis.program import Argument
from haft.policy.analysis.scope import Scope, Values, is_numeric
from haft.policy.analysis.text.braces import Characters, expand_braces
from haft.policy.analysis.text.source import decode
from haft.policy.analysis.text.words import Piece, Word, names_in
from haft.policy.analysis.tree.globbing import Marked, expand_pattern, is_pattern
from haft.policy.analysis.tree.path_resolver import PathResolver
from haft.values import dataclass, replace

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_VALUES: Final = 1_000
_NUMBERS: Final = frozenset(("?", "#", "$", "!"))
"""Variables of the shell that always contain a number."""
_ONE_WORD: Final = regex(r"[A-Za-z0-9_./@%+,:=-]+")


@dataclass(frozen=True, slots=True)
class Expander:
    """Turns the words of one scope, such as a subshell, into arguments."""

    scope: Scope
    resolver: PathResolver
    substitution_output: Callable[[Node, str], Argument | None] = lambda _node, _raw: None
    """Returns what the command in a substitution (`$(…)`) prints, as an argument; None if haft cannot tell."""

    def arguments(self, word: Word) -> list[Argument]:
        """The arguments that a word may become."""
        self.resolver.deadline.check()
        raw = decode(word.raw)
        word = self.resolve_arithmetic(word)
        if len(word.pieces) == 1 and word.pieces[0].kind == "process" and raw.startswith("<("):
            return [Argument(raw, literal=False, paths=("/dev/fd/63",))]
        alone = self._single_expansion(word, raw)
        if alone is not None:
            return [alone]
        if any(piece.kind in ("substitution", "process", "unclear", "tilde") for piece in word.pieces):
            return [self._unknown(word, raw)]
        pieces = self._with_variables(word)
        if pieces is None:
            return [self._unknown(word, raw)]
        variants, values = pieces
        self.resolver.values_left -= len(variants) - 1
        if self.resolver.values_left < 0:
            return [Argument(raw, literal=False, may_be_option=True, may_split=True)]
        written: list[Argument] = []
        for characters in variants:
            self.resolver.deadline.check()
            expanded = expand_braces(characters)
            if expanded is None or len(written) + len(expanded) > _MAX_VALUES:
                return [Argument(raw, literal=False, may_be_option=True, may_split=True)]
            written += [self._argument(raw, each) for each in expanded]
        if len(variants) == 1 and not values.from_files:
            return written
        return [_combine(raw, written, values)]

    def resolve_arithmetic(self, word: Word) -> Word:
        """A copy of the word in which each arithmetic piece has another kind: `substitution` if all variables in the
        piece contain numbers, otherwise `unclear`."""
        if all(piece.kind != "arithmetic" for piece in word.pieces):
            return word
        pieces = tuple(
            replace(piece, kind="substitution" if self._has_only_numbers(piece.text) else "unclear")
            if piece.kind == "arithmetic"
            else piece
            for piece in word.pieces
        )
        return Word(word.raw, pieces, word.substitutions)

    def _has_only_numbers(self, arithmetic: str) -> bool:
        values = [self.scope.variables.get(name) for name in names_in(arithmetic)]
        return all(each is not None and is_numeric(each) for each in values)

    def _single_expansion(self, word: Word, raw: str) -> Argument | None:
        """The argument for a word that consists of a single expansion; None for other words, or if haft knows too
        little about the result."""
        pieces = [piece for piece in word.pieces if piece.text or piece.kind != "quoted"]
        if len(pieces) != 1:
            return None
        piece = pieces[0]
        if piece.kind == "variable":
            values = self.scope.variables.get(piece.text)
            is_number = values is not None and values.is_number
            return Argument(raw, literal=False, may_be_option=True, is_number=True) if is_number else None
        if piece.kind == "substitution" and piece.text.startswith("$((") and not word.substitutions:
            return Argument(raw, literal=False, may_be_option=True, is_number=True)
        if piece.kind != "substitution" or len(word.substitutions) != 1:
            return None
        found = self.substitution_output(word.substitutions[0], raw)
        is_known = found is not None and (found.is_number or (found.paths is not None and not piece.is_quoted))
        return found if is_known else None

    def _argument(self, raw: str, characters: Characters) -> Argument:
        text = decode("".join(character for character, _ in characters))
        if not is_pattern(characters):
            return Argument(text)
        paths = self._expand_pattern(_decode_characters(characters))
        may_be_option = characters[0][0] in "*?[-" and not (characters[0][1] and characters[0][0] != "-")
        return Argument(raw, literal=False, paths=paths, may_be_option=may_be_option, may_split=True)

    def _expand_pattern(self, marked: Marked) -> tuple[str, ...] | None:
        if not self.scope.directories:
            return None
        names: list[str] = []
        for directory in sorted(self.scope.directories):
            found = expand_pattern(marked, directory, self.resolver)
            if found is None:
                return None
            names += found
        return tuple(dict.fromkeys(names))

    def _with_variables(self, word: Word) -> tuple[list[Characters], Values] | None:
        """The texts that the word becomes with each combination of values of its variables; and a `Values` object whose
        flags describe these texts, and whose `items` are empty. None if a value is unknown, or if there are too many
        combinations."""
        choices: list[list[Characters]] = []
        from_files = may_be_option = False
        for piece in word.pieces:
            if piece.kind != "variable":
                choices.append([tuple((character, piece.kind == "quoted") for character in piece.text)])
                continue
            values = self._values(piece.text)
            if (
                values is None
                or values.is_number
                or values.is_pattern_free
                or not (piece.is_quoted or all(map(_ONE_WORD.fullmatch, values.items)))
            ):
                return None
            from_files = from_files or values.from_files
            may_be_option = may_be_option or values.may_be_option or (values.from_files and not piece.is_quoted)
            choices.append([tuple((character, True) for character in _to_latin1(item)) for item in values.items])
        count = 1
        for choice in choices:
            count *= len(choice)
            if count > _MAX_VALUES:
                return None
        variants = [tuple(itertools.chain.from_iterable(each)) for each in itertools.product(*choices)]
        return variants, Values((), from_files, may_be_option and _may_begin_with_dash(word.pieces))

    def _values(self, name: str) -> Values | None:
        if name == "PWD":
            # After a change of directory through a link, bash stores another path in PWD.
            if not self.scope.directories or not self.scope.followed_no_link:
                return None
            return Values(tuple(sorted(self.scope.directories)))
        return self.scope.variables.get(name)

    def _unknown(self, word: Word, raw: str) -> Argument:
        splits = any(
            piece.kind in ("variable", "substitution") and not piece.is_quoted and piece.text not in _NUMBERS
            for piece in word.pieces
        )
        splits = splits or any(piece.kind == "variable" and piece.text == "@" for piece in word.pieces)
        return Argument(
            raw,
            literal=False,
            may_be_option=splits or _may_begin_with_dash(word.pieces),
            may_split=splits,
            may_have_effects=word.unclear_part is not None or self._may_have_pattern(word),
            is_pattern_free=self._pattern_free_values(word) is not None,
        )

    def _may_have_pattern(self, word: Word) -> bool:
        """Whether an unquoted piece may contain a pattern of file names, which bash would expand anywhere on the
        disk."""
        substitutions = iter(word.substitutions)
        for piece in word.pieces:
            if piece.kind in ("quoted", "tilde"):
                continue
            node = next(substitutions, None) if piece.text.startswith(("$(", "`", "<(", ">(")) else None
            if piece.text.startswith("$(("):
                node = None
            if not piece.is_quoted and self._may_be_pattern(piece, node):
                return True
        return False

    def _may_be_pattern(self, piece: Piece, node: Node | None) -> bool:
        if piece.kind == "plain":
            return has_pattern(piece.text)
        if node is not None:
            found = None if piece.kind == "process" else self.substitution_output(node, piece.text)
            return piece.kind != "process" and not (found is not None and (found.is_number or found.is_pattern_free))
        name = variable_name(piece.text)
        values = self.scope.variables.get(name)
        if piece.text.startswith(("$((", "${#")) or name in _NUMBERS:
            return False
        if values is None:
            return name in self.scope.pattern_variables or is_set_by_bash(name)
        return any(map(has_pattern, values.items))

    def assigned_values(self, word: Word) -> Values | None:
        """All values that a variable may have after an assignment; None if haft cannot tell."""
        word = self.resolve_arithmetic(word)
        alone = self._single_expansion(word, word.raw)
        if alone is not None and alone.is_number:
            return Values((), may_be_option=True, is_number=True)
        is_open = any(piece.kind in ("substitution", "process", "unclear", "tilde") for piece in word.pieces)
        found = None if is_open else self._with_variables(word)
        if found is None:
            return self._pattern_free_values(word)
        items = [decode("".join(character for character, _ in variant)) for variant in found[0]]
        return Values(tuple(dict.fromkeys(items)), found[1].from_files, any(each.startswith("-") for each in items))

    def _pattern_free_values(self, word: Word) -> Values | None:
        """`Values` that say that the word is unknown text without a pattern of file names; None if it may contain
        one."""
        pieces = tuple(
            Piece("plain", piece.text) if piece.kind == "quoted" else replace(piece, is_quoted=False)
            for piece in word.pieces
        )
        is_pattern_free = word.unclear_part is None and not self._may_have_pattern(
            Word(word.raw, pieces, word.substitutions)
        )
        return Values((), may_be_option=True, is_pattern_free=True) if is_pattern_free else None

    def loop_values(self, words: list[Word]) -> Values | None:
        """All values that the variable of a loop over these words may have; None if haft cannot tell."""
        items: list[str] = []
        from_files = may_be_option = is_open = False
        is_pattern_free = True
        for argument in itertools.chain.from_iterable(map(self.arguments, words)):
            if argument.literal:
                items.append(argument.text)
                may_be_option = may_be_option or argument.text.startswith("-")
            elif argument.paths is not None:
                items += argument.paths
                from_files = True
                may_be_option = may_be_option or argument.may_be_option
            else:
                is_pattern_free = (
                    is_pattern_free
                    and (argument.is_pattern_free or argument.is_number)
                    and not argument.may_have_effects
                )
                is_open = True
            if len(items) > _MAX_VALUES:
                return None
        if is_open:
            is_pattern_free = is_pattern_free and not any(map(has_pattern, items))
            return Values((), may_be_option=True, is_pattern_free=True) if is_pattern_free else None
        return Values(tuple(dict.fromkeys(items)), from_files, may_be_option)


def _combine(raw: str, written: list[Argument], values: Values) -> Argument:
    names: list[str] = []
    for each in written:
        if each.paths is None and not each.literal:
            return Argument(raw, literal=False, may_be_option=True, may_split=True)
        names += (each.text,) if each.literal else each.paths or ()
    may_be_option = values.may_be_option or any(each.may_be_option or each.text.startswith("-") for each in written)
    splits = any(each.may_split for each in written)
    return Argument(
        raw, literal=False, paths=tuple(dict.fromkeys(names)), may_be_option=may_be_option, may_split=splits
    )


def _may_begin_with_dash(pieces: tuple[Piece, ...]) -> bool:
    """Whether the first character of the word is a dash, or is unknown and may be one."""
    for piece in pieces:
        if piece.kind in ("plain", "quoted"):
            if piece.text:
                return piece.text.startswith("-")
        else:
            return piece.kind not in ("tilde", "process") and piece.text not in _NUMBERS
    return False


def _decode_characters(characters: Characters) -> Marked:
    if all(character.isascii() for character, _ in characters):
        return characters
    marks = [is_quoted for character, is_quoted in characters if not "\x80" <= character <= "\xbf"]
    return tuple(zip(decode("".join(character for character, _ in characters)), marks, strict=False))


def _to_latin1(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")
