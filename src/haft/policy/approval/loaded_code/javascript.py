"""Finds what a JavaScript or TypeScript file loads: modules whose paths are relative to the file or built from
`__dirname`, and packages in `node_modules`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

from haft.policy.approval.loaded_code.reference import Reference, References, Script

_STRING: Final = r"""(?:"([^"\n]*)"|'([^'\n]*)'|`([^`$]*)`)"""
_IMPORT: Final = re.compile(rf"\b(?:from|import)\s*{_STRING}")
_CALL: Final = re.compile(r"\b(?:require(?:\.resolve)?|import)\s*\(\s*")
_LITERAL: Final = re.compile(rf"{_STRING}\s*[,)]")
_FROM_HERE: Final = re.compile(
    rf"""(?:(?:path\.)?(?:join|resolve)\s*\(\s*(?:__dirname|import\.meta\.dir(?:name)?)\s*,\s*{_STRING}\s*\)"""
    rf"""|__dirname\s*\+\s*{_STRING}|`\$\{{__dirname\}}([^`$]*)`)\s*\)"""
)
_COMMENT: Final = re.compile(r"(?<![:\w\"'`])//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENDINGS: Final = ("", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".json", ".node")


def references_of(script: Script) -> References:
    """The files that a JavaScript or TypeScript text loads."""
    text = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), script.text)
    here = os.path.dirname(script.real_path)
    references, unresolved = [], []

    def take(name: str, at: int) -> None:
        if name.startswith(("./", "../", "/")) or name in (".", ".."):
            references.append(Reference(os.path.normpath(os.path.join(here, name)), "javascript", is_module=True))
        elif (package := _package(name, here)) is not None:
            unresolved.append(f"{_line(text, at)}: the package {package}")

    for found in _IMPORT.finditer(text):
        take(_string_of(found), found.start())
    for found in _CALL.finditer(text):
        if (literal := _LITERAL.match(text, found.end())) is not None:
            take(_string_of(literal), found.start())
        elif (relative := _FROM_HERE.match(text, found.end())) is not None:
            take(f"./{_string_of(relative)}", found.start())
        else:
            words = text[found.start() : found.start() + 80].split("\n")[0]
            unresolved.append(f"{_line(text, found.start())}: {words}")
    return References(tuple(dict.fromkeys(references)), tuple(dict.fromkeys(unresolved)))


def _string_of(found: re.Match[str]) -> str:
    return next((group for group in found.groups() if group is not None), "")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _package(name: str, here: str) -> str | None:
    """The directory of a package that is loaded by its name, in the nearest `node_modules` from `here` upward; None if
    there is no such package."""
    if not name or name.startswith(("node:", "bun:", "npm:", "jsr:", "http:", "https:", "data:")):
        return None
    word = "/".join(name.split("/")[: 2 if name.startswith("@") else 1])
    while True:
        if os.path.isdir(place := os.path.join(here, "node_modules", word)):
            return place
        if here == os.path.dirname(here):
            return None
        here = os.path.dirname(here)


def files_of(module: str) -> Iterator[str]:
    """Yield the paths of the files that the path `module` may stand for. This path may lack an ending, or be the path
    of a directory."""
    yield from (f"{module}{ending}" for ending in _ENDINGS)
    yield from (os.path.join(module, f"index{ending}") for ending in _ENDINGS[1:])
    yield os.path.join(module, "package.json")
    if module.endswith((".js", ".mjs", ".cjs")):
        yield re.sub(r"js$", "ts", module)  # In TypeScript, an import of `a.js` means `a.ts`.
