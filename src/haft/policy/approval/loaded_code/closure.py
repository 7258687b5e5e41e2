"""Finds the files that a tool's files load, and the files that those load in turn, within limits. The references that a
text contains are cached by a digest of the text. Whether the files exist is checked every time. A file that a script
names counts even if it does not exist: if somebody creates it later, the tool has changed."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import Final

from haft.lazy import regex
from haft.policy.approval.loaded_code.reference import Language, Reference, References, Script
from haft.values import dataclass

MOST_FILES: Final = 300
LARGEST: Final = 1_000_000
"""The maximum size in bytes of a file that haft searches for references."""
MOST_KNOWN: Final = 2_000
_KNOWN: Final[dict[bytes, References]] = {}
_ENDINGS: Final[dict[str, Language]] = {
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ksh"), "shell"),
    **dict.fromkeys((".py", ".pyw"), "python"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx"), "javascript"),
}
_INTERPRETERS: Final[tuple[tuple[re.Pattern[str], Language], ...]] = (
    (regex(r"(?:ba|da|z|k|a)?sh"), "shell"),
    (regex(r"(?:python|pypy)[\d.]*|uv"), "python"),
    (regex(r"node|nodejs|bun|deno|tsx|ts-node"), "javascript"),
)


@dataclass(frozen=True, slots=True)
class LoadedFiles:
    """The loaded files, and the places where haft cannot tell what is loaded: `FILE:LINE: WORDS`."""

    files: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()


def loaded_by(files: Sequence[str], here: str | None = None) -> LoadedFiles:
    """The files that `files` load, directly or indirectly, without `files` themselves. `here` is the directory in which
    they run; None if it is not known, so that paths relative to it cannot be resolved."""
    known = dict.fromkeys(files)
    unresolved: list[str] = []
    left: list[tuple[str, str, Language | None]] = [(path, path, None) for path in reversed(files)]
    seen: set[tuple[str, str, Language | None]] = set()
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        path, main, language = one
        for reference in _references(path, main, language, unresolved, here):
            for inner in files_of(reference):
                if inner not in known and len(known) - len(files) >= MOST_FILES:
                    return LoadedFiles(
                        tuple(known)[len(files) :], (*unresolved, f"more than {MOST_FILES} files are loaded")
                    )
                known[inner] = None
                left.append((inner, inner if reference.is_started else main, reference.language))
    return LoadedFiles(tuple(known)[len(dict.fromkeys(files)) :], tuple(dict.fromkeys(unresolved)))


def _references(
    path: str, main: str, language: Language | None, unresolved: list[str], here: str | None
) -> Sequence[Reference]:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ()
            data = file.read(LARGEST + 1)
    except (OSError, ValueError):
        return ()
    if b"\0" in data:
        return ()
    text = data.decode("utf-8", "surrogateescape")
    language = language or _language(path, text, is_main=path == main)
    if language is None:
        if text.startswith("#!"):
            unresolved.append(f"{path}:1: haft cannot tell what is loaded in a script of {text[2:100].split()[0]}")
        return ()
    if len(data) > LARGEST:
        unresolved.append(f"{path}:1: the file is too large to search for loaded files")
        return ()
    script = Script(path, main, os.path.realpath(path), os.path.realpath(main), text)
    found_references = _remembered(language, script, here)
    unresolved += [f"{path}:{each}" for each in found_references.unresolved]
    return found_references.references


def _remembered(language: Language, script: Script, here: str | None) -> References:
    """The references of a script. They are cached by a digest of everything that they depend on, so that the cache
    holds no texts."""
    every = "\0".join((language, here or "", script.path, script.main, script.real_path, script.real_main, script.text))
    digest = hashlib.sha256(every.encode("utf-8", "surrogateescape")).digest()
    if digest not in _KNOWN:
        if len(_KNOWN) >= MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[digest] = _read(language, script, here)
    return _KNOWN[digest]


def _read(language: Language, script: Script, here: str | None) -> References:
    match language:
        case "shell":
            from haft.policy.approval.loaded_code import shell

            return shell.references_of(script, here)
        case "python":
            from haft.policy.approval.loaded_code import python

            return python.references_of(script)
        case "javascript":
            from haft.policy.approval.loaded_code import javascript

            return javascript.references_of(script)


def _language(path: str, text: str, *, is_main: bool) -> Language | None:
    """The language of a file: by its `#!` line; without one, by the ending of its name. A started program with neither
    is a shell script. None for any other file."""
    if text.startswith("#!"):
        words = [os.path.basename(word) for word in text[2:300].split("\n", 1)[0].split()]
        for word in words:
            for pattern, language in _INTERPRETERS:
                if pattern.fullmatch(word):
                    return language
        return None
    ending = os.path.splitext(path)[1].lower()
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    return "shell" if is_main and not ending and os.access(path, os.X_OK) else None


def files_of(reference: Reference) -> Iterator[str]:
    """Yield the files that a reference stands for: a module or a pattern may stand for several."""
    if reference.is_module:
        if reference.language == "python":
            from haft.policy.approval.loaded_code.python import files_of
        else:
            from haft.policy.approval.loaded_code.javascript import files_of
        yield from filter(os.path.isfile, files_of(reference.path))
    elif glob.has_magic(reference.path):
        yield from sorted(path for path in glob.iglob(reference.path) if not os.path.isdir(path))
    elif not os.path.isdir(reference.path):
        yield reference.path
