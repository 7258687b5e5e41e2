"""Programs that are only asked which version they are. What they run then may be a stand-in of their maker's."""

from __future__ import annotations

from typing import Final

from haft.policy.analysis.program import Invocation, Program
from haft.policy.analysis.programs.judging import named

_RUNS: Final = "does more than tell its version"

_LONG: Final = named("""
    bash zsh fish make cmake ninja meson gcc g++ cc c++ clang clang++ ld ar rustc rustup rustfmt cargo node npx deno
    bun tsc ts-node eslint prettier jest vitest mocha webpack vite ruby gem bundle rake perl php composer python
    python2 python3 pytest mypy ruff black flake8 isort pylint tox nox poetry pipenv uv uvx pdm hatch conda docker
    docker-compose podman kubectl helm terraform ansible svn hg vim nvim emacs nano code tmux screen gdb lldb valgrind
    strace gpg openssl psql mysql sqlite3 redis-cli mongosh javac gradle mvn swift dotnet ghc stack cabal elixir mix
    julia lua luajit R Rscript pandoc ffmpeg magick dot shellcheck shfmt hadolint pre-commit protoc buf bazel buck2
    nix brew apt apt-get dpkg rpm dnf yum apk snap flatpak systemctl zip xz zstd bc dc parallel direnv asdf mise nvm
    pyenv rbenv volta just task
""")
_SHORT: Final = {
    "-V": named("python python2 python3 rustc cargo uv ruff mypy pytest tmux mysql psql"),
    "-v": named("node npx ruby perl php lua tsc prettier eslint gcc g++ clang gem bun mvn gradle"),
}


def _asked(*names: str) -> Program:
    def check(invocation: Invocation) -> str | None:
        return None if invocation.has(*names) else f"`{invocation.name}` {_RUNS}"

    return Program(options=" ".join(names), operands="none", starts_others=True, clusters=False, check=check)


def _by_name(name: str) -> Program:
    return _asked("--version", *(short for short, names in sorted(_SHORT.items()) if name in names))


def _dashed(*names: str) -> Program:
    """Of those that write words after one dash: `java -version`."""

    def check(invocation: Invocation) -> str | None:
        words = [each.text for each in invocation.operands if each.literal]
        is_asked = len(words) == len(invocation.operands) == 1 and words[0] in names
        return None if is_asked else f"`{invocation.name}` {_RUNS}"

    return Program(options=" ".join(names), starts_others=True, clusters=False, single_dash=True, check=check)


def _worded(options: str = "--version") -> Program:
    """Of those that take the word `version`."""

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
    "java": _dashed("-version", "--version"),
    "javac": _dashed("-version", "--version"),
    "go": _worded("--version"),
    "zig": _worded("--version"),
    "openssl": _worded("--version"),
}
