"""Parses the program stubs of a scenario, and the calls of programs that it expects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from haft.testing.reading import parts
from haft.testing.reading.parts import Place, check_keys, number, table, text, text_match, texts, whole_number, words
from haft.testing.scenarios.scenario import ProgramAnswer, ProgramCall, Programs, ProgramStub

_ANSWER_KEYS: Final = ("stdout", "stderr", "exit", "exitCode", "writes", "args", "seconds")


def programs(where: Place, value: Any) -> Programs:
    """The stubs: a table of programs, or a list of tables with `command` and perhaps `args`."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = _listed_programs(where, value)
    stubs = []
    others: Any = "allow"
    for name, one in table(where, value).items():
        if name == "others":
            if one not in ("allow", "refuse"):
                raise (where / name).wrong(f"must be `allow` or `refuse`, not {one!r}")
            others = one
        elif one == "real":
            stubs.append(ProgramStub(_program(where / name, name), real=True))
        else:
            many = one if isinstance(one, Sequence) and not isinstance(one, str) else [one]
            if not many:
                raise (where / name).wrong("needs at least one answer")
            given = tuple(_answer_of(where / name, each) for each in many)
            stubs.append(ProgramStub(_program(where / name, name), given))
    return Programs(tuple(stubs), others)


def _listed_programs(where: Place, value: Sequence[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for index, each in enumerate(value):
        one = dict(table(where / index, each))
        name, args = _command(where / index, one)
        found.setdefault(name, []).append({**one, **({} if args is None else {"args": args})})
    return found


def _command(where: Place, one: dict[str, Any]) -> tuple[str, list[str] | None]:
    """Take the program, and the first arguments if there are any, out of a table."""
    named = [key for key in ("program", "command") if key in one]
    if len(named) != 1:
        raise where.wrong("needs one of `program` and `command`")
    key = named[0]
    first = words(where / key, one.pop(key)) if key == "command" else [text(where / key, one.pop(key))]
    if not first:
        raise (where / key).wrong("must not be empty")
    args = one.pop("args", one.pop("arguments", None))
    rest = [*first[1:], *(() if args is None else texts(where / "args", args))]
    return first[0], rest if rest or args is not None else None


def _program(where: Place, name: str) -> str:
    if name in ("", ".", "..") or ("/" in name and not name.startswith("/")):
        raise where.wrong("must be the name of a program, or an absolute path")
    return parts.name(where, name)


def _answer_of(where: Place, value: Any) -> ProgramAnswer:
    if value is None:
        return ProgramAnswer()
    if isinstance(value, str):
        return ProgramAnswer(stdout=value)
    found = table(where, value)
    check_keys(where, found, _ANSWER_KEYS)
    if "exit" in found and "exitCode" in found:
        raise where.wrong("has both `exit` and `exitCode`; keep one of them")
    writes = {path: text(where / "writes" / path, each) for path, each in table(where, found.get("writes", {})).items()}
    code = whole_number(where / "exit", found.get("exit", found.get("exitCode", 0))) or 0
    if not 0 <= code <= 255:
        raise (where / "exit").wrong(f"must be between 0 and 255, not {code}")
    return ProgramAnswer(
        stdout=text(where / "stdout", found.get("stdout", "")),
        stderr=text(where / "stderr", found.get("stderr", "")),
        exit=code,
        writes=writes,
        args=texts(where / "args", found["args"]) if found.get("args") is not None else None,
        seconds=number(where / "seconds", found["seconds"]) or 0 if found.get("seconds") else 0,
    )


def expected_calls(where: Place, value: Any) -> tuple[ProgramCall, ...] | None:
    """All calls of stubs, in order: a list of command lines, or of tables."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise where.wrong(f"must be a list of calls, not {value!r}")
    return tuple(_expected_call(where / index, each) for index, each in enumerate(value))


def _expected_call(where: Place, value: Any) -> ProgramCall:
    if isinstance(value, str):
        line = words(where, value)
        if not line:
            raise where.wrong("must not be empty")
        return ProgramCall(line[0], tuple(line[1:]))
    one = dict(table(where, value))
    check_keys(where, one, ("program", "command", "args", "arguments", "stdin", "cwd", "env"))
    name, args = _command(where, one)
    given = table(where / "env", one.get("env", {}))
    env = {key: None if each is None else text(where / "env" / key, each) for key, each in given.items()}
    cwd = text(where / "cwd", one["cwd"]) if one.get("cwd") is not None else None
    return ProgramCall(
        name, None if args is None else tuple(args), text_match(where / "stdin", one.get("stdin")), cwd, env
    )
