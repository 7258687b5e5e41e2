"""Finds in one pass where a line sets variables, changes directories or starts programs in the background."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from haft.lazy import regex
from haft.policy.analysis.text.source import Source, descendants

if TYPE_CHECKING:
    from tree_sitter import Node

_CHANGES_DIRECTORY: Final = frozenset(("cd", "pushd", "popd", "builtin", "command", "eval", "source", "."))
_SETS_VARIABLES: Final = frozenset(("read", "mapfile", "readarray", "getopts", "eval", "source", ".", "unset"))
_NAME: Final = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_COUNTS: Final = regex(r"[A-Za-z_][A-Za-z0-9_]*=(?:0|[1-9][0-9]{0,8}|\$\(\([^$`\[\]'\"\\]*\)\))")


class LineEffects:
    """The positions in one line where it sets variables, changes directories or starts programs in the background."""

    def __init__(self, source: Source) -> None:
        self._set_at: list[int] = []
        self._set: list[str | None] = []
        self._counts: list[bool] = []
        self.pattern_variables: set[str] = set()
        """Variables that the line sets to a value that may be a pattern of file names."""
        self._directory_changes: list[int] = []
        self._ampersands: list[int] = []
        for node in descendants(source.root):
            self._note(source, node)

    def _note(self, source: Source, node: Node) -> None:
        at = node.start_byte
        if node.type in ("variable_assignment", "for_statement"):
            name = node.child_by_field_name("name") or node.child_by_field_name("variable")
            if name is not None and _may_be_pattern(source, node):
                self.pattern_variables.add(source.raw(name))
            self._add(at, None if name is None else source.raw(name), _COUNTS.fullmatch(source.raw(node)) is not None)
        elif node.type in ("declaration_command", "unset_command"):
            self._add(at, None)
        elif node.type == "command_name":
            called = source.raw(node)
            if called in _SETS_VARIABLES:
                self._add(at, None)
                self.pattern_variables.update(_NAME.findall(source.raw(node.parent or node)))
            if called in _CHANGES_DIRECTORY:
                self._directory_changes.append(at)
        elif node.type == "&":
            self._ampersands.append(at)

    def _add(self, at: int, name: str | None, counts: bool = False) -> None:
        self._set_at.append(at)
        self._set.append(name)
        self._counts.append(counts)

    def variables_set_in(self, node: Node) -> list[str] | None:
        """The names of the variables that are set anywhere in a node; None if haft cannot tell all of them."""
        found = self._set[bisect_left(self._set_at, node.start_byte) : bisect_left(self._set_at, node.end_byte)]
        names = [name for name in found if name is not None]
        return names if len(names) == len(found) else None

    def is_only_counted(self, node: Node, name: str) -> bool:
        """Whether a node sets a variable only to numbers, provided that the variables in the arithmetic contain
        numbers."""
        inside = range(bisect_left(self._set_at, node.start_byte), bisect_left(self._set_at, node.end_byte))
        return all(self._counts[at] for at in inside if self._set[at] in (name, None))

    def changes_directory(self, node: Node) -> bool:
        """Whether a command in a node may change the directory of the line."""
        return _has_position_in(self._directory_changes, node)

    def starts_in_background(self, node: Node) -> bool:
        """Whether a command in a node runs in the background."""
        return _has_position_in(self._ampersands, node)


def _may_be_pattern(source: Source, node: Node) -> bool:
    nodes = [node] if node.type == "variable_assignment" else node.children_by_field_name("value")
    return any(sign in source.raw(each) for each in nodes for sign in "*?[$`")


def _has_position_in(positions: list[int], node: Node) -> bool:
    return bisect_left(positions, node.start_byte) < bisect_left(positions, node.end_byte)
