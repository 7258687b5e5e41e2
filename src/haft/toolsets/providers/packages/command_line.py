"""Reads the commands that people paste to start a packaged server: `npx -y PACKAGE`, `uvx PACKAGE` and the like.

haft does not run these programs. It takes the package, the program in it and the arguments from the command line, and
installs the package itself. An option that this module does not know is an error that names the option, because it
could change which package is meant.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from haft.lazy import regex
from haft.values import dataclass, field

Registry = Literal["npm", "PyPI"]

_NPM: Final = regex(r"(?P<name>(?:@[\w~-][\w.~-]*/)?[A-Za-z0-9~-][\w.~-]*)(?:@(?P<version>[\w.^~<>=|*+ -]+))?")
_NAME: Final = regex(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_PYPI: Final = regex(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?P<extras>\[[A-Za-z0-9._,\s-]*\])?\s*"
    r"(?:@\s*(?P<version>[A-Za-z0-9.!+_-]+)|(?P<bounds>(?:===|==|>=|<=|~=|!=|<|>)[A-Za-z0-9.*!+_,<>=~ -]+))?"
)
_LATEST: Final = "latest"

_OWN_NPM: Final = "haft uses the registries of your own npm configuration, such as `registry=…` in ~/.npmrc"
_OWN_UV: Final = "haft uses the indexes of your own environment, such as UV_DEFAULT_INDEX"
_SHELL_LINE: Final = "it runs a line of shell: name the program and its arguments instead"


class UnsupportedCommand(ValueError):
    """A command that runs a package in a way that haft does not support. The text says what to change."""


@dataclass(frozen=True, slots=True)
class PackageCommand:
    """A command that runs a program of a package."""

    runner: str
    """The words that run packages, such as `npx` or `pipx run`."""
    registry: Registry
    packages: tuple[str, ...]
    """The packages to install, each with its version as the registry's tools write it. The first one has the
    program."""
    program: str | None
    """The name of the program; None if it is the only program of the first package, or is named like it."""
    args: tuple[str, ...]
    python: str | None = None
    """The Python that the command asks for, such as `3.12`; None if it asks for none."""
    uses_bun: bool = False
    """Whether the program must run with bun."""


@dataclass(frozen=True, slots=True)
class _Runner:
    """One way to run packages."""

    words: tuple[str, ...]
    registry: Registry
    flags: frozenset[str]
    """Options without a value that need nothing of haft."""
    ignored: frozenset[str] = frozenset()
    """Options with a value that need nothing of haft."""
    package: frozenset[str] = frozenset()
    """Options that name a package that has the program."""
    more: frozenset[str] = frozenset()
    """Options that name further packages."""
    python: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    """Options that haft knows and does not support, each with the reason."""
    ends_at_program: bool = True
    """Whether all words after the program are arguments of the program."""

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def with_value(self) -> frozenset[str]:
        return self.ignored | self.package | self.more | self.python


_NPM_FLAGS: Final = frozenset(
    (
        "-y", "--yes", "-q", "--quiet", "-s", "--silent", "--prefer-online", "--prefer-offline", "--ignore-scripts",
        "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress",
    )
)  # fmt: skip
_NPM_IGNORED: Final = frozenset(("--loglevel", "--reporter"))
_NPM_REFUSED: Final = {"-c": _SHELL_LINE, "--call": _SHELL_LINE, "--registry": _OWN_NPM, "--userconfig": _OWN_NPM}
_UV_FLAGS: Final = frozenset(
    (
        "-q", "--quiet", "-v", "--verbose", "--no-progress", "--isolated", "--refresh", "-n", "--no-cache",
        "--native-tls", "--system-certs", "--no-env-file", "--no-config", "--no-python-downloads", "--no-build",
        "-U", "--upgrade",
    )
)  # fmt: skip
_UV_REFUSED: Final = dict.fromkeys(
    ("-i", "--index-url", "--extra-index-url", "--index", "--default-index", "-f", "--find-links", "--pip-args"),
    _OWN_UV,
)


def _npm(*words: str, package: Sequence[str], flags: Sequence[str] = (), ends_at_program: bool = True) -> _Runner:
    return _Runner(
        words,
        "npm",
        _NPM_FLAGS | {*flags},
        _NPM_IGNORED,
        frozenset(package),
        refused=_NPM_REFUSED,
        ends_at_program=ends_at_program,
    )


def _uv(*words: str) -> _Runner:
    return _Runner(
        words,
        "PyPI",
        _UV_FLAGS,
        package=frozenset(("--from",)),
        more=frozenset(("--with", "-w")),
        python=frozenset(("-p", "--python")),
        refused=_UV_REFUSED,
    )


_RUNNERS: Final = (
    _npm("npx", package=("-p", "--package")),
    _npm("npm", "exec", package=("--package",), ends_at_program=False),
    _npm("npm", "x", package=("--package",), ends_at_program=False),
    _npm("pnpx", package=("--package",)),
    _npm("pnpm", "dlx", package=("--package",)),
    _npm("yarn", "dlx", package=("-p", "--package")),
    _npm("bunx", package=("-p", "--package"), flags=("--bun",)),
    _npm("bun", "x", package=("-p", "--package"), flags=("--bun",)),
    _uv("uvx"),
    _uv("uv", "tool", "run"),
    _Runner(
        ("pipx", "run"),
        "PyPI",
        frozenset(("-q", "--quiet", "-v", "--verbose", "--no-cache")),
        package=frozenset(("--spec",)),
        more=frozenset(("--with",)),
        python=frozenset(("--python",)),
        refused=_UV_REFUSED,
    ),
)


def parse_command(command: str, args: Sequence[str]) -> PackageCommand | None:
    """The package that a command runs; None if the command runs none. Raises `UnsupportedCommand` if it runs one in a
    way that haft does not support."""
    program = _program_name(command)
    if program == "cmd" and args and args[0].lower() == "/c" and len(args) > 1:
        return parse_command(args[1], args[2:])  # How Windows starts npx.
    for runner in _RUNNERS:
        if runner.words[0] == program and (split := _without_subcommand(runner, args)) is not None:
            return _parse(runner, *split)
    return None


def _program_name(command: str) -> str:
    """The name of a program on PATH or with an absolute path; empty for a relative path, which is a file of the
    workspace."""
    if "/" in command and not os.path.isabs(command):
        return ""
    name = os.path.basename(command)
    return name.lower().removesuffix(".cmd").removesuffix(".exe")


def _without_subcommand(runner: _Runner, args: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """The options before the words that run packages, such as `exec` in `npm --yes exec`, and the words after them;
    None if the command does something else."""
    rest = list(runner.words[1:])
    if not rest:
        return [], list(args)
    at = 0
    while at < len(args) and args[at].startswith("-"):
        at += 2 if args[at] in runner.with_value else 1
    if list(args[at : at + len(rest)]) != rest:
        return None
    return list(args[:at]), list(args[at + len(rest) :])


@dataclass(slots=True)
class _Found:
    """The options of one command line."""

    packages: list[str] = field(default_factory=list)
    more: list[str] = field(default_factory=list)
    python: str | None = None
    uses_bun: bool = False


def _parse(runner: _Runner, before: Sequence[str], words: Sequence[str]) -> PackageCommand:
    found = _Found()
    if _options(runner, before, found):
        raise UnsupportedCommand(f"`{runner.name}`: `{before[-1]}` has no value")
    rest = _options(runner, words, found)
    if not rest:
        raise UnsupportedCommand(f"`{runner.name}` names no package: write `{runner.name} PACKAGE`")
    program, args = rest[0], rest[1:]
    if not runner.ends_at_program:
        args = _after_program(runner, args, found)
    packages = [_spec(runner, one) for one in found.packages or (program,)]
    named = program if found.packages else None
    if named is not None and not regex(r"[\w.+@-]+").fullmatch(named):
        raise UnsupportedCommand(f"`{runner.name}`: `{named}` is no name of a program")
    packages += [_spec(runner, one) for one in found.more]
    return PackageCommand(
        runner.name, runner.registry, tuple(packages), named, tuple(args), found.python, uses_bun=found.uses_bun
    )


def _after_program(runner: _Runner, words: Sequence[str], found: _Found) -> list[str]:
    """The arguments of the program, without the options of the runner among them, which end at `--`."""
    if "--" not in words:
        for word in words:
            if word.startswith("-") and len(word) > 1:
                _known(runner, word.partition("=")[0])
        return [word for word in words if not word.startswith("-") or len(word) == 1]
    at = list(words).index("--")
    return [*_after_program(runner, words[:at], found), *words[at + 1 :]]


def _options(runner: _Runner, words: Sequence[str], found: _Found) -> list[str]:
    """Read options up to the first other word, and return the words from there on."""
    left = list(words)
    while left and left[0].startswith("-") and len(left[0]) > 1:
        word = left.pop(0)
        if word == "--":
            break
        name, has_value, value = word.partition("=")
        _known(runner, name)
        if name in runner.flags:
            found.uses_bun = found.uses_bun or name == "--bun"
            continue
        if not has_value:
            if not left:
                raise UnsupportedCommand(f"`{runner.name}`: `{name}` has no value")
            value = left.pop(0)
        if name in runner.package:
            found.packages.append(value)
        elif name in runner.more:
            found.more += [one.strip() for one in value.split(",") if one.strip()] if _is_list(value) else [value]
        elif name in runner.python:
            found.python = value
    return left


def _is_list(value: str) -> bool:
    """Whether a text is a list of packages, and not one package with several bounds of its version."""
    return all(_NAME.match(one.strip()) for one in value.split(",")) and "[" not in value


def _known(runner: _Runner, option: str) -> None:
    if option in runner.flags or option in runner.with_value:
        return
    if option in runner.refused:
        raise UnsupportedCommand(f"`{runner.name} {option}` is not supported: {runner.refused[option]}")
    known = ", ".join(sorted({*runner.package, *runner.more, *runner.python}))
    where = "the name of the package" if runner.ends_at_program else "`--`"
    raise UnsupportedCommand(
        f"haft does not know the option `{option}` of `{runner.name}`: remove it, or write it after {where} if it is "
        f"an option of the server. haft installs the package itself, and understands {known}"
    )


def _spec(runner: _Runner, written: str) -> str:
    """A package with its version, as the tools of its registry write it."""
    if runner.registry == "npm":
        found = _NPM.fullmatch(written)
        if found is not None:
            version = (found["version"] or "").strip()
            return found["name"] if version in ("", _LATEST) else f"{found['name']}@{version}"
    else:
        found = _PYPI.fullmatch(written)
        if found is not None:
            bounds = found["bounds"] or ""
            if found["version"] not in (None, _LATEST):
                bounds = f"=={found['version']}"
            return f"{found['name']}{found['extras'] or ''}{bounds}".replace(" ", "")
    raise UnsupportedCommand(
        f"`{runner.name}` runs `{written}`, which is no package of {runner.registry}: haft installs servers only from "
        "package indexes. Install it yourself, and name its program as the command"
    )


def package_name(registry: Registry, spec: str) -> str:
    """The name of a package without its version."""
    found = (_NPM if registry == "npm" else _PYPI).fullmatch(spec)
    return found["name"] if found is not None else spec
