"""Small mistakes for source texts: where each could be made, and the text with it.

`mutants.py` makes them in the examples. Texts that only people and models read (comments, docstrings, descriptions) are
left as they are, because no test scenario is about them.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from typing import Final, NamedTuple


class Mutation(NamedTuple):
    """One mistake: the text from `start` to `end`, in bytes, becomes `new`."""

    operator: str
    start: int
    end: int
    new: str

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def line(self, source: bytes) -> str:
        """The line of the source in which the mistake begins."""
        return source[: self.start].rpartition(b"\n")[2].decode() + source[self.start :].partition(b"\n")[0].decode()

    def shown(self, source: bytes) -> str:
        """The line and the change, as one line of text."""
        line = source[: self.start].count(b"\n") + 1
        old = " ".join(source[self.start : self.end].decode().split())
        new = " ".join(self.new.split())
        return f"{line}: {self.operator}: {old[:60]} → {new[:60] or '(nothing)'}"


def mutations(name: str, source: bytes) -> list[Mutation]:
    """All mutations of a source that leave it a valid program."""
    text = source.decode()
    if name.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
        found, is_valid = list(_of_python(text)), _is_python
    elif name.endswith((".toml", ".json")):
        found, is_valid = list(_of_text(text, _DATA)), _is_toml if name.endswith(".toml") else _is_any
    else:
        found, is_valid = list(_of_text(text, _SHELL)), _is_bash
    return [each for each in dict.fromkeys(found) if each.applied(source) != source and is_valid(each.applied(source))]


# Python.

_COMPARED: Final = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_COUNTED: Final = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.BitOr: "&"}
_SPOKEN: Final = {"description", "help"}


def _of_python(text: str) -> Iterator[Mutation]:
    tree = ast.parse(text)
    lines = [0]
    for line in text.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    left_out = set(_spoken(tree))

    def visit(node: ast.AST) -> Iterator[Mutation]:
        if id(node) in left_out:
            return
        if isinstance(node, ast.expr | ast.stmt):
            start = lines[node.lineno - 1] + node.col_offset
            end = lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            segment = text.encode()[start:end].decode()
            for operator, new in _of_node(node, segment):
                yield Mutation(operator, start, end, new)
        for child in () if isinstance(node, ast.JoinedStr) else ast.iter_child_nodes(node):
            yield from visit(child)

    yield from visit(tree)


def _spoken(tree: ast.AST) -> Iterator[int]:
    """The nodes whose text only people and models read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            yield from (
                id(value)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant) and key.value in _SPOKEN
            )
        elif isinstance(node, ast.keyword) and node.arg in _SPOKEN:
            yield id(node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node)  # a docstring
        elif isinstance(node, ast.List) and len(node.elts) == 2 and _is_type(node.elts[0]):
            yield id(node.elts[1])  # a parameter of the toolbox format: its type and its description


def _is_type(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("string", "boolean", "number", "integer")


def _of_node(node: ast.AST, segment: str) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
            yield "compare", f"{ast.unparse(left)} {_COMPARED[type(op)]} {ast.unparse(right)}"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COUNTED:
            yield "count", f"{ast.unparse(left)} {_COUNTED[type(op)]} {ast.unparse(right)}"
        case ast.BoolOp(op=op, values=values):
            word = " and " if isinstance(op, ast.Or) else " or "
            yield "and-or", word.join(f"({ast.unparse(each)})" for each in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", ast.unparse(operand)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "condition", f"({ast.unparse(orelse)} if {ast.unparse(test)} else {ast.unparse(body)})"
        case ast.Constant(value=bool(value)):
            yield "boolean", str(not value)
        case ast.Constant(value=int() | float()):
            yield "number", f"({segment} + 1)"
        case ast.Constant(value=str()) | ast.JoinedStr():
            yield "text", f'({segment} + "~")'
        case ast.Return(value=value) if value is not None:
            yield "return", "return None"
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Continue():
            yield "delete", "pass"
        case ast.If(test=test):
            yield "if", segment.replace(ast.unparse(test), f"not ({ast.unparse(test)})", 1)


# Texts in other languages, by regular expressions.

_SPOKEN_TEXT: Final = re.compile(
    r"""(?m)^\s*\#.*$                             # a comment
    | ^(?:name|description|[a-z_]+):\ .*$         # what a toolbox executable says about itself
    | "?(?:description|help)"?\s*[:=]\s*"(?:[^"\\]|\\.)*"
    """,
    re.VERBOSE,
)
_NUMBER: Final = ("number", r"(?<![\w$%.{-])\d+(?![\w.}])", lambda found: str(int(found[0]) + 1))
_BOOLEAN: Final = ("boolean", r"\b(?:true|false)\b", lambda found: "false" if found[0] == "true" else "true")
_DATA: Final = (
    _NUMBER,
    _BOOLEAN,
    ("text", r'"(?:[^"\\\n]|\\.)*"', lambda found: f'{found[0][:-1]}~"'),
    ("delete", r"(?m)^\w+ = .*\n", lambda _found: ""),
    ("delete", r'(?<=[{,] )\w+ = (?:true|"[^"]*"), ', lambda _found: ""),
)
_SHELL: Final = (
    _NUMBER,
    _BOOLEAN,
    ("compare", r" == ", lambda _found: " != "),
    ("compare", r" (?:<|>|<=|>=) (?=[\w$])", lambda found: f" {'>=' if '<' in found[0] else '<'} "),
    ("test", r" -[dfnrwxz] ", lambda found: f" {'-z' if found[0] == ' -n ' else '-n' if '-z' in found[0] else '-d'} "),
    ("condition", r"\[\[ (?!! )", lambda _found: "[[ ! "),
    ("not", r"(?<=\[\[ )! ", lambda _found: ""),
    ("and-or", r" && | \|\| ", lambda found: " || " if "&&" in found[0] else " && "),
    ("count", r" [+-] (?=[\w$])", lambda found: " - " if "+" in found[0] else " + "),
    ("text", r"'[^'\n]+'", lambda found: f"{found[0][:-1]}~'"),
    ("text", r"(?<=\w=)\$\{\w+[:#][^}]*\}", lambda _found: "~"),
    ("redirect", r" >(?=[A-Z])", lambda _found: " >>"),
    ("exit", r"(?m)\b(?:exit|return) (?:\d+|\"[^\"]*\")", lambda _found: "exit 0"),
    ("delete", r"(?m)^ *(?:printf|echo|\w+=|shift|\[\[ .* \]\] \|\|) ?.*\n", lambda _found: ":\n"),
)


def _of_text(text: str, operators: tuple) -> Iterator[Mutation]:
    spoken = [each.span() for each in _SPOKEN_TEXT.finditer(text)]
    for operator, pattern, change in operators:
        for found in re.finditer(pattern, text):
            if not any(start < found.end() and found.start() < end for start, end in spoken):
                start, end = (len(text[:each].encode()) for each in found.span())
                yield Mutation(operator, start, end, change(found))


def _is_python(source: bytes) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _is_bash(source: bytes) -> bool:
    return subprocess.run(["bash", "-n"], input=source, capture_output=True, check=False).returncode == 0


def _is_toml(source: bytes) -> bool:
    try:
        tomllib.loads(source.decode())
    except tomllib.TOMLDecodeError:
        return False
    return True


def _is_any(_source: bytes) -> bool:
    return True
