"""Reads here-documents, which are texts in the line that a command gets as its input: finds where such a text ends, and
what bash expands in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from haft.lazy import regex
from haft.policy.analysis.deadline import NotUnderstood
from haft.policy.analysis.text.source import Source
from haft.values import dataclass

if TYPE_CHECKING:
    from tree_sitter import Node

_DELIMITER: Final = regex(r"(['\"]?)([A-Za-z0-9_.-]+)\1")
_REST: Final = regex(r"(?:[^'\"\\`$#\n]|'[^'\n]*'|\"[^\"\\`$\n]*\"|\$[A-Za-z_])*")
_EXPANDS: Final = regex(r"(?<!\\)(?:\\\\)*(?:`|\$(?![A-Za-z_]|\{[A-Za-z_][A-Za-z0-9_]*\}|[^A-Za-z0-9_{(\[*@#?$!-]|\Z))")
_VARIABLE: Final = regex(r"\$[A-Za-z_{]")


@dataclass(frozen=True, slots=True)
class Heredoc:
    """The text of one here-document."""

    body: str
    is_literal: bool
    is_clear: bool
    """Whether bash expands nothing in this text except variables."""


def read_heredoc(source: Source, node: Node) -> Heredoc:
    """The text of a here-document; raises `NotUnderstood` if bash may end the text in another place than the parser."""
    text = source.text
    start = next((child for child in node.children if child.type == "heredoc_start"), None)
    end = next((child for child in node.children if child.type == "heredoc_end"), None)
    delimiter = None if start is None else _DELIMITER.fullmatch(source.raw(start))
    if start is None or end is None or delimiter is None:
        raise NotUnderstood("haft cannot tell where the text of a `<<` ends")
    line_end = text.find("\n", start.end_byte)
    if line_end < 0 or not _REST.fullmatch(text, start.end_byte, line_end):
        raise NotUnderstood("haft cannot parse the rest of the line after a `<<`")
    at = node.start_byte
    for child in node.children:
        if child.start_byte >= line_end:
            break
        if text[at : child.start_byte].strip(" \t"):
            raise NotUnderstood("haft cannot parse the rest of the line after a `<<`")
        at = child.end_byte
    if text[at:line_end].strip(" \t"):
        raise NotUnderstood("haft cannot parse the rest of the line after a `<<`")
    is_indented = text.startswith("<<-", node.start_byte) or text[node.start_byte : start.start_byte].endswith("<<-")
    at = stop = line_end + 1
    while at < len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        line = text[at:stop].lstrip("\t") if is_indented else text[at:stop]
        if line == delimiter[2]:
            break
        at = stop + 1
    if at >= len(text) or not at <= end.start_byte <= end.end_byte == stop:
        raise NotUnderstood("haft cannot tell where the text of a `<<` ends")
    body = text[line_end + 1 : at]
    if delimiter[1]:
        return Heredoc(body, is_literal=True, is_clear=True)
    is_clear = _EXPANDS.search(body) is None and "\\\n" not in body
    return Heredoc(body, is_literal=is_clear and _VARIABLE.search(body) is None, is_clear=is_clear)
