"""Programs that are allowed only to print their version. Some of them are launchers that start the real program.
Programs are not listed if they use files of the workspace even to print their version: files that name another version
of the program to run (`cargo`, `go`, `bundle`, `yarn`, `bazel`), settings that load code (`pytest`, `tox`, `hg`,
`mvn`), or a copy of the program among the project's own packages (`jest`, `webpack`).
"""

from __future__ import annotations

from typing import Final

from haft.policy.analysis.program import Invocation, Program
from haft.policy.analysis.programs.shared_checks import word_set

_RUNS: Final = "does more than print its version"

_LONG: Final = word_set("""
    bash zsh fish make cmake ninja meson gcc g++ cc c++ clang clang++ ld ar node npx deno bun tsc ruby gem rake perl
    php python python2 python3 mypy ruff black uv uvx docker podman svn vim nvim emacs nano code tmux screen strace
    gpg openssl psql mysql sqlite3 redis-cli mongosh javac ghc elixir julia lua luajit R Rscript pandoc ffmpeg dot
    shellcheck shfmt hadolint protoc buf nix brew apt apt-get dpkg rpm dnf yum apk snap flatpak systemctl zip xz zstd
    bc dc parallel nvm pyenv rbenv just task
""")
_SHORT: Final = {
    "-V": word_set("python python2 python3 uv ruff mypy tmux mysql psql"),
    "-v": word_set("node npx ruby perl php lua tsc gcc g++ clang gem bun"),
}


def _with_options(*names: str) -> Program:
    def check(invocation: Invocation) -> str | None:
        return None if invocation.has(*names) else f"`{invocation.name}` {_RUNS}"

    return Program(options=" ".join(names), operands="none", starts_others=True, clusters=False, check=check)


def _by_name(name: str) -> Program:
    return _with_options("--version", *(short for short, names in sorted(_SHORT.items()) if name in names))


def _with_single_dash(*names: str) -> Program:
    """The entry of a program whose version option has a single dash: `java -version`."""

    def check(invocation: Invocation) -> str | None:
        words = [each.text for each in invocation.operands if each.literal]
        is_asked = len(words) == len(invocation.operands) == 1 and words[0] in names
        return None if is_asked else f"`{invocation.name}` {_RUNS}"

    return Program(options=" ".join(names), starts_others=True, clusters=False, single_dash=True, check=check)


def _with_version_word(options: str = "--version") -> Program:
    """The entry of a program with the subcommand `version`."""

    def check(invocation: Invocation) -> str | None:
        return None if invocation.has("--version") else f"`{invocation.name}` {_RUNS}"

    return Program(
        options=options,
        operands="words",
        starts_others=True,
        check=check,
        subcommands={"version": Program(operands="none")},
    )


VERSIONS: Final[dict[str, Program]] = {
    **{name: _by_name(name) for name in sorted(_LONG)},
    "java": _with_single_dash("-version", "--version"),
    "javac": _with_single_dash("-version", "--version"),
    "zig": _with_version_word("--version"),
    "openssl": _with_version_word("--version"),
}
