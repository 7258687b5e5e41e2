"""Words as bash reads them: quotes, escapes and expansions, character by character.

A word is stored as pieces. Only one fact is taken from the parser: where an expansion ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from haft.lazy import regex
from haft.policy.analysis.deadline import NotUnderstood
from haft.policy.analysis.text.arithmetic import Arithmetic
from haft.policy.analysis.text.source import Source, descendants, ends_word, starts_word
from haft.values import dataclass

if TYPE_CHECKING:
    from tree_sitter import Node

PieceKind = Literal["plain", "quoted", "tilde", "variable", "substitution", "process", "arithmetic", "unclear"]

EXPANSIONS: Final = frozenset((
    "simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion",
))  # fmt: skip
_PLAIN: Final = regex(r"[^ \t\n;|&()<>\\'\"$`~]+")
_IN_QUOTES: Final = regex(r'[^"\\$`]+')
_NAME: Final = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_SIMPLE: Final = regex(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_BRACED: Final = regex(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HARMLESS: Final = regex(
    r"\$\{(?:#[A-Za-z_]\w*|[A-Za-z_]\w*(?::?[-+][\w./ ,:%+=-]*|(?:%%?|##?)[\w./ ,:%+=*?-]*"
    r"|:(?:[0-9]{1,9}| -[0-9]{1,9})(?::-?[0-9]{1,9})?))\}",
    re.ASCII,
)
_FROM_THE_END: Final = regex(r"\$\{[A-Za-z_]\w*:.*:-[0-9]+\}", re.ASCII)
"""A substring whose end is counted from the end of the text: bash reports an error if the text is too short."""
_DOLLAR: Final = regex(r"[A-Za-z0-9_{(\[*@#?$!-]")
_NAMED_DESCRIPTOR: Final = regex(r"\{.*\}")
_ANSI: Final = regex(r"(?:[^\\']|\\[\\'\"nt])*")
_ANSI_ESCAPES: Final = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive characters of a word that are of the same kind."""

    kind: PieceKind
    text: str
    """For plain and quoted pieces, the text without quotes; for a variable, its name; for any other kind, the text as
    it was written."""
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command line."""

    raw: str
    pieces: tuple[Piece, ...]
    substitutions: tuple[Node, ...] = ()
    """The substitutions (`$(…)`) in this word. Their commands are parts of their own."""

    @property
    def literal(self) -> str | None:
        """The word with its quotes removed; bash may still expand braces and patterns in this text. None if the word
        contains any other expansion."""
        if any(piece.kind not in ("plain", "quoted") for piece in self.pieces):
            return None
        return "".join(piece.text for piece in self.pieces)

    @property
    def unclear_part(self) -> str | None:
        """The text, as it was written, of the first piece that haft does not know to be harmless; None if haft knows
        all pieces to be harmless."""
        return next((piece.text for piece in self.pieces if piece.kind in ("unclear", "arithmetic")), None)


def word_at(source: Source, node: Node) -> Word:
    """The word that a node contains. Raises `NotUnderstood` if bash would not read the node as one whole word."""
    reader = WordReader(source, node)
    word = reader.read(node.start_byte)
    if word is None or reader.at != node.end_byte or not starts_word(source.text, node.start_byte):
        raise NotUnderstood(f"bash may read `{source.decoded(node)[:60]}` differently")
    is_descriptor = word.raw.isdigit() or _NAMED_DESCRIPTOR.fullmatch(word.raw)
    if is_descriptor and source.text[reader.at : reader.at + 1] in ("<", ">"):
        raise NotUnderstood(f"bash may read `{word.raw}` differently")
    return word


def assigned_value(source: Source, node: Node, start: int) -> Word:
    """The value of an assignment: the text from the offset `start` to the end of the word. The value may be empty."""
    if start == node.end_byte:
        if not ends_word(source.text, start):
            raise NotUnderstood(f"bash may read `{source.decoded(node)[:60]}` differently")
        return Word("", ())
    reader = WordReader(source, node, is_assigned=True)
    word = reader.read(start)
    if word is None or reader.at != node.end_byte:
        raise NotUnderstood(f"bash may read `{source.decoded(node)[:60]}` differently")
    return word


class WordReader:
    """Reads words in the text of a node; `at` is the end of the last word."""

    def __init__(self, source: Source, node: Node, *, is_assigned: bool = False) -> None:
        self._source = source
        self._text = source.text
        self._end = node.end_byte
        self._is_assigned = is_assigned
        self._expansions = outermost(node, EXPANSIONS)
        self._pieces: list[Piece] = []
        self._substitutions: list[Node] = []
        self.at = node.start_byte

    def read(self, start: int) -> Word | None:
        """The word that begins at `start`; None if bash would read no word there."""
        self.at, self._pieces, self._substitutions = start, [], []
        text, end = self._text, self._end
        if text.startswith("#", start) and not self._is_assigned:
            return None
        while self.at < end and self._one(text[self.at]):
            self._source.deadline.check()
        if self.at == start or not ends_word(text, self.at):
            return None
        return Word(text[start : self.at], tuple(self._pieces), tuple(self._substitutions))

    def _one(self, character: str) -> bool:
        """Read one piece; return False at the end of the word."""
        if character == "\\":
            return self._escape()
        if character == "'":
            return self._single_quoted(self._text.find("'", self.at + 1), 1)
        if character == '"':
            return self._double_quoted()
        if character in "$`":
            return self._expansion(is_quoted=False)
        if character == "~":
            self._tilde()
            return True
        if character in "<>":
            return self.at in self._expansions and self._parser_expansion(is_quoted=False)
        found = _PLAIN.match(self._text, self.at, self._end)
        if found is None:
            return False
        self._add("plain", found[0])
        self.at = found.end()
        return True

    def _tilde(self) -> None:
        before = self._pieces[-1] if self._pieces else None
        is_first = before is None or (before.kind == "plain" and before.text.endswith(("=", ":")))
        self._add("tilde" if is_first else "plain", "~")
        self.at += 1

    def _escape(self) -> bool:
        following = self._text[self.at + 1 : self.at + 2]
        # If a line continues inside of a word, bash joins the two halves, but the parser separates them.
        if following in ("", "\n") or self.at + 2 > self._end:
            return False
        self._add("quoted", following)
        self.at += 2
        return True

    def _single_quoted(self, close: int, skip: int) -> bool:
        if close < 0 or close >= self._end:
            raise NotUnderstood("a quote is not closed")
        self._add("quoted", self._text[self.at + skip : close])
        self.at = close + 1
        return True

    def _double_quoted(self) -> bool:
        text = self._text
        self.at += 1
        self._add("quoted", "")
        while self.at < self._end:
            character = text[self.at]
            if character == '"':
                self.at += 1
                return True
            if character == "\\":
                following = text[self.at + 1 : self.at + 2]
                kept = "" if following == "\n" else following if following in '$`"\\' else "\\" + following
                self._add("quoted", kept)
                self.at += 2
            elif character in "$`":
                self._expansion(is_quoted=True)
            else:
                found = _IN_QUOTES.match(text, self.at, self._end)
                assert found is not None
                self._add("quoted", found[0])
                self.at = found.end()
        raise NotUnderstood("a quote is not closed")

    def _expansion(self, *, is_quoted: bool) -> bool:
        if self.at in self._expansions:
            return self._parser_expansion(is_quoted=is_quoted)
        following = self._text[self.at + 1 : self.at + 2]
        if self._text[self.at] == "`" or (_DOLLAR.match(following) and self.at + 1 < self._end):
            raise NotUnderstood("haft cannot parse an expansion")
        if not is_quoted and following == "'":
            return self._ansi_quoted()
        if not is_quoted and following == '"':
            raise NotUnderstood('the text of `$"…"` depends on the language')
        self._add("quoted" if is_quoted else "plain", "$")
        self.at += 1
        return True

    def _ansi_quoted(self) -> bool:
        found = _ANSI.match(self._text, self.at + 2, self._end)
        assert found is not None
        if self._text[found.end() : found.end() + 1] != "'" or found.end() >= self._end:
            raise NotUnderstood("haft does not know an escape in `$'…'`")
        self._add("quoted", re.sub(r"\\(.)", lambda each: _ANSI_ESCAPES[each[1]], found[0]))
        self.at = found.end() + 1
        return True

    def _parser_expansion(self, *, is_quoted: bool) -> bool:
        node = self._expansions[self.at]
        raw = self._source.raw(node)
        self._pieces.append(self._piece_of(node, raw, is_quoted=is_quoted))
        if node.type in ("command_substitution", "process_substitution"):
            if raw.startswith("`") and "\\" in raw:
                raise NotUnderstood("bash reads backslashes inside of backticks twice")
            self._substitutions.append(node)
        else:
            self._substitutions += outermost(node, _SUBSTITUTIONS).values()
        self.at = node.end_byte
        return True

    def _piece_of(self, node: Node, raw: str, *, is_quoted: bool) -> Piece:
        if node.type == "simple_expansion":
            found = _SIMPLE.match(self._text, node.start_byte)
            if found is None or found.end() != node.end_byte:
                raise NotUnderstood("bash would end an expansion elsewhere")
            return Piece("variable", raw[1:], is_quoted)
        if node.type == "expansion":
            braced = _BRACED.fullmatch(raw)
            if braced is not None:
                return Piece("variable", braced[1], is_quoted)
            is_harmless = _HARMLESS.fullmatch(raw) and not (_FROM_THE_END.fullmatch(raw) and self._has_more_lines())
            return Piece("substitution" if is_harmless else "unclear", raw, is_quoted)
        if node.type == "arithmetic_expansion":
            arithmetic = Arithmetic(raw[3:-2]) if raw.startswith("$((") else None
            if (
                arithmetic is None
                or not arithmetic.is_valid
                or (arithmetic.may_divide_by_zero and self._has_more_lines())
            ):
                return Piece("unclear", raw, is_quoted)
            return Piece("arithmetic" if arithmetic.names else "substitution", raw, is_quoted)
        return Piece("process" if node.type == "process_substitution" else "substitution", raw, is_quoted)

    def _has_more_lines(self) -> bool:
        """Whether the text has several lines. This matters because bash, if an expansion fails, skips the rest of the
        line and runs the next line."""
        return "\n" in self._text

    def _add(self, kind: PieceKind, text: str) -> None:
        self._pieces.append(Piece(kind, text, kind == "quoted"))


_SUBSTITUTIONS: Final = frozenset(("command_substitution", "process_substitution"))


def outermost(node: Node, types: frozenset[str]) -> Mapping[int, Node]:
    """The outermost nodes of these types in a node, by their start offset."""
    found: dict[int, Node] = {}
    end = -1
    for each in descendants(node):
        if each.start_byte >= end and each.type in types:
            found[each.start_byte] = each
            end = each.end_byte
    return found


def names_in(arithmetic: str) -> list[str]:
    """The names of the variables in an arithmetic expression."""
    return Arithmetic(arithmetic[3:-2]).names


def is_name(text: str) -> bool:
    """Whether a text can be the name of a variable."""
    return _NAME.fullmatch(text) is not None
