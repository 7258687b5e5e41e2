"""Turns words into arguments: braces, variables that the line itself set, and patterns of file names.

An unknown word stays unknown, but is marked with what it may become: several words, or an option.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from haft.lazy import regex
from haft.policy.analysis.command.texts import has_pattern, is_set_by_bash, named
from haft.policy.analysis.program import Argument
from haft.policy.analysis.scope import Scope, Values, is_numeric
from haft.policy.analysis.text.braces import Characters, without_braces
from haft.policy.analysis.text.source import shown
from haft.policy.analysis.text.words import Piece, Word, names_in
from haft.policy.analysis.tree.globbing import Marked, is_pattern, looked_up
from haft.policy.analysis.tree.places import Places
from haft.values import dataclass, replace

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_VALUES: Final = 1_000
_NUMBERS: Final = frozenset(("?", "#", "$", "!"))
"""Variables of the shell that hold a number, always."""
_ONE_WORD: Final = regex(r"[A-Za-z0-9_./@%+,:=-]+")


@dataclass(frozen=True, slots=True)
class Expander:
    """Turns the words of one level of the shell into arguments."""

    scope: Scope
    places: Places
    substituted: Callable[[Node, str], Argument | None] = lambda _node, _raw: None
    """What the command in a substitution prints, as words, where that can be told."""

    def arguments(self, word: Word) -> list[Argument]:
        """What a word may become."""
        self.places.deadline.check()
        raw = shown(word.raw)
        word = self.settled(word)
        if len(word.pieces) == 1 and word.pieces[0].kind == "process" and raw.startswith("<("):
            return [Argument(raw, literal=False, paths=("/dev/fd/63",))]
        alone = self._alone(word, raw)
        if alone is not None:
            return [alone]
        if any(piece.kind in ("substitution", "process", "unclear", "tilde") for piece in word.pieces):
            return [self._unknown(word, raw)]
        pieces = self._with_variables(word)
        if pieces is None:
            return [self._unknown(word, raw)]
        variants, values = pieces
        self.places.values_left -= len(variants) - 1
        if self.places.values_left < 0:
            return [Argument(raw, literal=False, may_be_option=True, splits=True)]
        written: list[Argument] = []
        for characters in variants:
            self.places.deadline.check()
            expanded = without_braces(characters)
            if expanded is None or len(written) + len(expanded) > _MOST_VALUES:
                return [Argument(raw, literal=False, may_be_option=True, splits=True)]
            written += [self._one(raw, each) for each in expanded]
        if len(variants) == 1 and not values.from_files:
            return written
        return [_together(raw, written, values)]

    def settled(self, word: Word) -> Word:
        """A word in which arithmetic over variables that hold numbers is told from arithmetic that may do more."""
        if all(piece.kind != "arithmetic" for piece in word.pieces):
            return word
        pieces = tuple(
            replace(piece, kind="substitution" if self._is_reckoned(piece.text) else "unclear")
            if piece.kind == "arithmetic"
            else piece
            for piece in word.pieces
        )
        return Word(word.raw, pieces, word.inner)

    def _is_reckoned(self, arithmetic: str) -> bool:
        values = [self.scope.known.get(name) for name in names_in(arithmetic)]
        return all(each is not None and is_numeric(each) for each in values)

    def _alone(self, word: Word, raw: str) -> Argument | None:
        """A word that is one expansion, whose result is known as far as it matters."""
        pieces = [piece for piece in word.pieces if piece.text or piece.kind != "quoted"]
        if len(pieces) != 1:
            return None
        piece = pieces[0]
        if piece.kind == "variable":
            values = self.scope.known.get(piece.text)
            is_number = values is not None and values.is_number
            return Argument(raw, literal=False, may_be_option=True, is_number=True) if is_number else None
        if piece.kind == "substitution" and piece.text.startswith("$((") and not word.inner:
            return Argument(raw, literal=False, may_be_option=True, is_number=True)
        if piece.kind != "substitution" or len(word.inner) != 1:
            return None
        found = self.substituted(word.inner[0], raw)
        is_known = found is not None and (found.is_number or (found.paths is not None and not piece.is_quoted))
        return found if is_known else None

    def _one(self, raw: str, characters: Characters) -> Argument:
        text = shown("".join(character for character, _ in characters))
        if not is_pattern(characters):
            return Argument(text)
        paths = self._looked_up(_decoded(characters))
        may_be_option = characters[0][0] in "*?[-" and not (characters[0][1] and characters[0][0] != "-")
        return Argument(raw, literal=False, paths=paths, may_be_option=may_be_option, splits=True)

    def _looked_up(self, marked: Marked) -> tuple[str, ...] | None:
        if not self.scope.here:
            return None
        names: list[str] = []
        for directory in sorted(self.scope.here):
            found = looked_up(marked, directory, self.places)
            if found is None:
                return None
            names += found
        return tuple(dict.fromkeys(names))

    def _with_variables(self, word: Word) -> tuple[list[Characters], Values] | None:
        """The word for every value of its variables; None where one is not known."""
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
                or values.is_text
                or not (piece.is_quoted or all(map(_ONE_WORD.fullmatch, values.items)))
            ):
                return None
            from_files = from_files or values.from_files
            may_be_option = may_be_option or values.may_be_option or (values.from_files and not piece.is_quoted)
            choices.append([tuple((character, True) for character in _stored(item)) for item in values.items])
        count = 1
        for choice in choices:
            count *= len(choice)
            if count > _MOST_VALUES:
                return None
        variants = [tuple(itertools.chain.from_iterable(each)) for each in itertools.product(*choices)]
        return variants, Values((), from_files, may_be_option and _begins_open(word.pieces))

    def _values(self, name: str) -> Values | None:
        if name == "PWD":
            # Behind links it is spelt in another way.
            if not self.scope.here or not self.scope.is_plain:
                return None
            return Values(tuple(sorted(self.scope.here)))
        return self.scope.known.get(name)

    def _unknown(self, word: Word, raw: str) -> Argument:
        splits = any(
            piece.kind in ("variable", "substitution") and not piece.is_quoted and piece.text not in _NUMBERS
            for piece in word.pieces
        )
        splits = splits or any(piece.kind == "variable" and piece.text == "@" for piece in word.pieces)
        return Argument(
            raw,
            literal=False,
            may_be_option=splits or _begins_open(word.pieces),
            splits=splits,
            is_unclear=word.trouble is not None or self._may_look_up(word),
            is_text=self._text(word) is not None,
        )

    def _may_look_up(self, word: Word) -> bool:
        """Whether something that is not quoted may be a pattern of file names, which bash would look up anywhere."""
        inner = iter(word.inner)
        for piece in word.pieces:
            if piece.kind in ("quoted", "tilde"):
                continue
            node = next(inner, None) if piece.text.startswith(("$(", "`", "<(", ">(")) else None
            if piece.text.startswith("$(("):
                node = None
            if not piece.is_quoted and self._may_be_pattern(piece, node):
                return True
        return False

    def _may_be_pattern(self, piece: Piece, node: Node | None) -> bool:
        if piece.kind == "plain":
            return has_pattern(piece.text)
        if node is not None:
            found = None if piece.kind == "process" else self.substituted(node, piece.text)
            return piece.kind != "process" and not (found is not None and (found.is_number or found.is_text))
        name = named(piece.text)
        values = self.scope.known.get(name)
        if piece.text.startswith(("$((", "${#")) or name in _NUMBERS:
            return False
        if values is None:
            return name in self.scope.patterns or is_set_by_bash(name)
        return any(map(has_pattern, values.items))

    def assigned(self, word: Word) -> Values | None:
        """All that a variable may hold after an assignment; None where that is not known."""
        word = self.settled(word)
        alone = self._alone(word, word.raw)
        if alone is not None and alone.is_number:
            return Values((), may_be_option=True, is_number=True)
        is_open = any(piece.kind in ("substitution", "process", "unclear", "tilde") for piece in word.pieces)
        found = None if is_open else self._with_variables(word)
        if found is None:
            return self._text(word)
        items = [shown("".join(character for character, _ in variant)) for variant in found[0]]
        return Values(tuple(dict.fromkeys(items)), found[1].from_files, any(each.startswith("-") for each in items))

    def _text(self, word: Word) -> Values | None:
        """For what is not known but to hold no pattern, quoted or not."""
        pieces = tuple(
            Piece("plain", piece.text) if piece.kind == "quoted" else replace(piece, is_quoted=False)
            for piece in word.pieces
        )
        is_text = word.trouble is None and not self._may_look_up(Word(word.raw, pieces, word.inner))
        return Values((), may_be_option=True, is_text=True) if is_text else None

    def values(self, words: list[Word]) -> Values | None:
        """All that a variable may hold that goes through some words; None where that is not known."""
        items: list[str] = []
        from_files = may_be_option = is_open = False
        is_text = True
        for argument in itertools.chain.from_iterable(map(self.arguments, words)):
            if argument.literal:
                items.append(argument.text)
                may_be_option = may_be_option or argument.text.startswith("-")
            elif argument.paths is not None:
                items += argument.paths
                from_files = True
                may_be_option = may_be_option or argument.may_be_option
            else:
                is_text = is_text and (argument.is_text or argument.is_number) and not argument.is_unclear
                is_open = True
            if len(items) > _MOST_VALUES:
                return None
        if is_open:
            is_text = is_text and not any(map(has_pattern, items))
            return Values((), may_be_option=True, is_text=True) if is_text else None
        return Values(tuple(dict.fromkeys(items)), from_files, may_be_option)


def _together(raw: str, written: list[Argument], values: Values) -> Argument:
    names: list[str] = []
    for each in written:
        if each.paths is None and not each.literal:
            return Argument(raw, literal=False, may_be_option=True, splits=True)
        names += (each.text,) if each.literal else each.paths or ()
    may_be_option = values.may_be_option or any(each.may_be_option or each.text.startswith("-") for each in written)
    splits = any(each.splits for each in written)
    return Argument(raw, literal=False, paths=tuple(dict.fromkeys(names)), may_be_option=may_be_option, splits=splits)


def _begins_open(pieces: tuple[Piece, ...]) -> bool:
    """Whether the first character of the word is not known, or is a dash."""
    for piece in pieces:
        if piece.kind in ("plain", "quoted"):
            if piece.text:
                return piece.text.startswith("-")
        else:
            return piece.kind not in ("tilde", "process") and piece.text not in _NUMBERS
    return False


def _decoded(characters: Characters) -> Marked:
    if all(character.isascii() for character, _ in characters):
        return characters
    marks = [is_quoted for character, is_quoted in characters if not "\x80" <= character <= "\xbf"]
    return tuple(zip(shown("".join(character for character, _ in characters)), marks, strict=False))


def _stored(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")
