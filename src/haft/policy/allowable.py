"""What could be allowed for good: rules no wider than what a person sees, and none where that would be a blank cheque.

A rule for an interpreter, a wrapper or a fetcher would allow whatever they are handed next time, even where the words
are the same: a script can be rewritten between two runs. For these nothing is offered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.contracts import Allowable
from haft.policy.analysis.verdict import Part
from haft.policy.question import Question
from haft.policy.rules.commands import exactly
from haft.policy.rules.patterns import escaped

_INTERPRETERS: Final = {
    "sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "tcsh", "busybox", "python", "python2", "python3",
    "pypy", "pypy3", "perl", "ruby", "node", "nodejs", "deno", "bun", "lua", "luajit", "php", "tclsh", "wish",
    "expect", "osascript", "pwsh", "awk", "gawk", "mawk", "nawk", "sed", "ed", "ex", "vi", "vim", "nvim",
    "emacs", "gdb", "ld.so", "eval", "source", ".",
}  # fmt: skip
_WRAPPERS: Final = {
    "env", "command", "builtin", "exec", "xargs", "parallel", "nohup", "nice", "ionice", "timeout", "time",
    "setsid", "stdbuf", "script", "watch", "sudo", "su", "doas", "pkexec", "chroot", "unshare", "nsenter",
    "strace", "ltrace", "trap", "alias", "find", "fd", "fdfind", "docker", "podman", "kubectl", "npx",
    "uvx", "pipx",
}  # fmt: skip
_FETCHERS: Final = {
    "curl", "wget", "aria2c", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "ssh", "scp", "sftp", "rsync",
    "pip", "pip3", "uv",
}  # fmt: skip
_MANIFOLD: Final = {"git", "npm", "yarn", "pnpm", "cargo", "go"}
NEVER: Final = frozenset(_INTERPRETERS | _WRAPPERS | _FETCHERS | _MANIFOLD)
"""Programs that run other programs, or what they are told to, or what they fetch. The last ones do so only by some of
their subcommands: see `_TELLING`."""

_TELLING: Final[Mapping[str, frozenset[str]]] = {
    "npm": frozenset({"test", "t"}),
    "yarn": frozenset({"test"}),
    "pnpm": frozenset({"test"}),
    "cargo": frozenset({"test", "build", "check", "clippy", "fmt"}),
    "go": frozenset({"test", "build", "vet", "fmt"}),
    "git": frozenset({"add", "commit", "stash", "checkout", "switch", "restore", "branch", "tag"}),
}
"""Subcommands that say enough of what is run."""


def allowable(question: Question, unsafe: Sequence[Part] | None) -> tuple[Allowable, ...]:
    """What an answer could allow. `unsafe` are the parts that were asked about, where there is a command."""
    spec = question.spec
    if unsafe is None:
        matches = _others(question, ())
        if matches is None:
            return ()
        found = [_offer(f"exactly this call of {spec.name}", spec.name, matches)]
        named = [name for name in spec.paths if isinstance(question.arguments.get(name), str)]
        if named and len(question.arguments) > len(named):
            places = {name: exact_text(question.arguments[name]) for name in named}
            label = f"{spec.name} with {', '.join(f'{name} {question.arguments[name]}' for name in named)}"
            found.append(_offer(f"{label}, whatever else it is given", spec.name, places))
        return tuple(found)
    patterns = [_pattern(part) for part in unsafe]
    others = _others(question, spec.commands)
    if not patterns or others is None or question.env or any(pattern is None for pattern in patterns):
        return ()
    command: Any = patterns[0] if len(patterns) == 1 else patterns
    label = " and ".join(f"`{part.text}`" for part in unsafe)
    return (_offer(f"exactly {label}", spec.name, {spec.commands[0]: command, **others}),)


def _offer(label: str, tool: str, matches: Mapping[str, Any]) -> Allowable:
    rule: dict[str, Any] = {"tool": tool, "action": "allow"}
    return Allowable(label, {**rule, "matches": dict(matches)} if matches else rule)


def _others(question: Question, but: tuple[str, ...]) -> dict[str, Any] | None:
    """The other arguments, exactly; None where one cannot be written down as a rule."""
    found: dict[str, Any] = {}
    for name, value in question.arguments.items():
        if name in but or name == question.spec.meta.get("timeoutArgument"):
            continue
        exact = _exact(value)
        if exact is None:
            return None
        found[name] = exact
    return found


def _exact(value: Any) -> Any:
    if isinstance(value, str):
        return exact_text(value)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        inner = {name: _exact(each) for name, each in value.items()}
        return None if not inner or any(each is None for each in inner.values()) else inner
    return None  # A list in a rule means "any of these", and null nothing at all.


def exact_text(text: str) -> str:
    """A pattern that matches this text and no other."""
    pattern = escaped(text)
    return f"\\{pattern}" if pattern.startswith("/") else pattern


def _pattern(part: Part) -> str | None:
    """A pattern for exactly this part; None where nothing may be allowed for good."""
    if part.dangers or not part.literal or part.kind == "syntax" or not part.text.isprintable():
        return None
    if part.kind == "command":
        program = (part.program or "").rsplit("/", 1)[-1]
        if part.program is None or "=" in part.words[0] or "/" in part.program:
            return None
        if program in NEVER and not (set(part.words[1:2]) & _TELLING.get(program, frozenset())):
            return None
        return exactly(part.words)
    sign, *target = part.words
    return f"{sign} {exactly(target)}"
