"""What a tool's files load, and what that loads in turn, within bounds.

Which files there are is looked up each time; what a text says is remembered by the text. Files that are not there count
too where a script names them: when one appears, the tool is another.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import Final

from haft.lazy import regex
from haft.policy.approval.sourced.reference import Language, Reference, Said, Script
from haft.values import dataclass

MOST_FILES: Final = 300
LARGEST: Final = 1_000_000
"""Bytes of one file that is looked into."""
MOST_KNOWN: Final = 2_000
_KNOWN: Final[dict[bytes, Said]] = {}
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
class Loaded:
    """The files, and where something is loaded that cannot be told: `FILE:LINE: WORDS`."""

    files: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()


def loaded_by(files: Sequence[str]) -> Loaded:
    """What these files load that is not among them, at any remove."""
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
        for reference in _said(path, main, language, unresolved):
            for inner in _files_of(reference):
                if inner not in known and len(known) - len(files) >= MOST_FILES:
                    return Loaded(tuple(known)[len(files) :], (*unresolved, f"more than {MOST_FILES} files are loaded"))
                known[inner] = None
                left.append((inner, inner if reference.is_started else main, reference.language))
    return Loaded(tuple(known)[len(dict.fromkeys(files)) :], tuple(dict.fromkeys(unresolved)))


def _said(path: str, main: str, language: Language | None, unresolved: list[str]) -> Sequence[Reference]:
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
            unresolved.append(f"{path}:1: what is loaded is not looked for in a script of {text[2:100].split()[0]}")
        return ()
    if len(data) > LARGEST:
        unresolved.append(f"{path}:1: it is too large to be looked into")
        return ()
    said = _remembered(language, Script(path, main, os.path.realpath(path), os.path.realpath(main), text))
    unresolved += [f"{path}:{each}" for each in said.unresolved]
    return said.references


def _remembered(language: Language, script: Script) -> Said:
    """What a script says. Remembered by a digest of all that decides it, so that no texts are kept."""
    every = "\0".join((language, script.path, script.main, script.real_path, script.real_main, script.text))
    digest = hashlib.sha256(every.encode("utf-8", "surrogateescape")).digest()
    if digest not in _KNOWN:
        if len(_KNOWN) >= MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[digest] = _read(language, script)
    return _KNOWN[digest]


def _read(language: Language, script: Script) -> Said:
    match language:
        case "shell":
            from haft.policy.approval.sourced import shell

            return shell.said_by(script)
        case "python":
            from haft.policy.approval.sourced import python

            return python.said_by(script)
        case "javascript":
            from haft.policy.approval.sourced import javascript

            return javascript.said_by(script)


def _language(path: str, text: str, *, is_main: bool) -> Language | None:
    """In which language a file is, by its first line, else by its name. A program without either is run by sh."""
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


def _files_of(reference: Reference) -> Iterator[str]:
    """The files that are meant."""
    if reference.is_module:
        if reference.language == "python":
            from haft.policy.approval.sourced.python import files_of
        else:
            from haft.policy.approval.sourced.javascript import files_of
        yield from filter(os.path.isfile, files_of(reference.path))
    elif glob.has_magic(reference.path):
        yield from sorted(path for path in glob.iglob(reference.path) if not os.path.isdir(path))
    elif not os.path.isdir(reference.path):
        yield reference.path
