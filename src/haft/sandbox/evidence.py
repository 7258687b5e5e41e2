"""Finds out from the output of a failed call whether the sandbox or a limit stopped it.

The kernel reports a refusal only to the program, so the program's output is the only evidence. haft reads the output
only after a failure. It reads only the part that is shown, and looks only for messages that a sandbox is known to
cause. If the program prints no message, or prints it in another language than English, the call counts as a plain
failure.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from typing import Final

from haft.contracts import (
    PLUGIN_ENTRY,
    Confinement,
    HaftError,
    LimitExceeded,
    Limits,
    SandboxDenied,
    without_progress,
    written_grant,
)
from haft.files import first_line, is_repository_top
from haft.lazy import regex
from haft.sandbox.credentials import holds_private_keys, looked_for
from haft.sandbox.grant_resolver import OWN_TO_EACH
from haft.sandbox.network_signs import CURL_UNRESOLVED, NO_NETWORK, missed_network, sign_in
from haft.sandbox.protected import protected_names
from haft.sandbox.site import SYSTEM
from haft.sandbox.toolchains import is_below
from haft.values import dataclass

_READ_ONLY: Final = regex(r"read-only file system", re.IGNORECASE)
_NAMED: Final = regex(r"read-only file system: '([^']+)'", re.IGNORECASE)
"""The form in which Python names the file in an error."""
_NO_REPOSITORY: Final = regex(r"not a git repository", re.IGNORECASE)
_MISSING: Final = regex(r"no such file|\bENOENT\b|cannot find|not found", re.IGNORECASE)
_TOO_LARGE: Final = regex(r"file too large|file size limit exceeded|\bEFBIG\b", re.IGNORECASE)
_TOO_MANY_OPEN: Final = regex(r"too many open files|\bEMFILE\b", re.IGNORECASE)
_PATH: Final = regex(r"(?<![\w.])(?:~|/)[^\s'\"`:;,()\[\]{}<>|&‘’“”]+")
_BUSY: Final = regex(r"device or resource busy|\bEBUSY\b|invalid cross-device link", re.IGNORECASE)
_NO_COMMAND: Final = regex(r"(?:^|: )([\w.+-]+): (?:command )?not found")

SIGN: Final = regex(
    "|".join(each.pattern for each in (_READ_ONLY, NO_NETWORK, _BUSY, _NO_REPOSITORY, _MISSING)), re.IGNORECASE
)
_NO_PACKAGE: Final = regex(r"cannot find (?:module|package) ['\"`](?![./~])", re.IGNORECASE)
SYSTEM_PLACES: Final = (*SYSTEM, "/var")
CURL_FAILED: Final = "curl exited 6, which means that it could not resolve a host"
NO_KEYS: Final = "there are private keys at that path, and haft gives no tool access to those"
NEVER: Final = "`sandbox.network` is `never`, and nothing opens it"
MAX_LINES: Final = 400
MAX_CANDIDATES: Final = 20
MAX_PARTS: Final = 12
MAX_PATHS: Final = 8
MAX_WORDS: Final = 100
LONGEST_LINE: Final = 4000
LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The facts about this machine that are needed to tell a denial of the sandbox from another failure."""

    workspace: str
    home: str
    shown: tuple[str, ...] = ()
    """Paths inside hidden directories that calls see nevertheless."""
    repository: str | None = None
    """The directory of the workspace's repository, if it is outside the workspace."""
    state_home: str = ""
    """The directory with haft's own state, which no grant opens."""
    path: str = ""
    """The host's PATH. Calls get it without the directories inside the workspace."""
    is_in_view: Callable[[str], bool] = lambda _path: True
    """Whether a call without approval sees a path, if something exists there."""


def diagnose(
    output: str, confinement: Confinement, limits: Limits, host: HostFacts, exit_code: int | None = None
) -> HaftError | None:
    """The error that explains why a call failed; None if neither the sandbox nor a limit stopped it. Give `exit_code`
    only if it is the exit code of curl."""
    if not confinement.layers:
        return None
    lines = _last_lines(output)
    names: set[str] = set()
    looked_at = 0
    for line in reversed(lines):
        found = _limit(line, limits)
        if found is None and looked_at < MAX_CANDIDATES and SIGN.search(line):
            looked_at += 1
            names = names or set(protected_names(host.workspace))
            found = _denial(line, confinement, host, names)
        if found is not None:
            return found
    if not _lacks_network(confinement):
        return None
    if (missed := missed_network(lines)) is not None:
        return _no_network(missed, confinement)
    return _no_network(CURL_FAILED, confinement) if exit_code == CURL_UNRESOLVED else None


def swallowed_failure(output: str, confinement: Confinement) -> HaftError | None:
    """The network failure that the output of a successful call reports; None if the output reports none."""
    if (
        not confinement.layers
        or not _lacks_network(confinement)
        or (line := missed_network(_last_lines(output))) is None
    ):
        return None
    return _no_network(line, confinement)


def looked_for_credentials(output: str, confinement: Confinement, host: HostFacts) -> list[tuple[str, str]]:
    """The hidden credentials files that a call looked for, each with a hint that says how to show the file to the
    call."""
    seen = (host.workspace, *confinement.readable, *confinement.writable, *host.shown)
    paths = [path for path in looked_for(_last_lines(output), host.home) if is_below(path, confinement.hidden)]
    return [(path, _how_to_show(path, confinement)) for path in dict.fromkeys(paths) if not is_below(path, seen)]


def _how_to_show(path: str, confinement: Confinement) -> str:
    real = os.path.realpath(path)
    if real != path:
        return f"it is a link to {real}, and no grant follows links: put the file itself there"
    if confinement.session:
        return _on_entry(confinement, f"read = [{json.dumps(path)}]")
    return _shown_by(path)


def _last_lines(output: str) -> list[str]:
    """The last lines of the output, each cut to a bounded length."""
    return [
        without_progress(line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE // 2] + line[-LONGEST_LINE // 2 :])
        for line in output.splitlines()[-MAX_LINES:]
    ]


def _lacks_network(confinement: Confinement) -> bool:
    """Whether the output must show that a connection was refused, since the sandbox has no record of connections."""
    return not confinement.network and not confinement.is_by_host


def waited_for_network(output: str) -> bool:
    """Whether the output of a call that timed out says that the call had no network. False proves nothing: a call may
    wait for the network without a message."""
    return any(NO_NETWORK.search(line) for line in _last_lines(output))


def _limit(line: str, limits: Limits) -> HaftError | None:
    if _TOO_LARGE.search(line) and limits.max_written_file_bytes:
        return LimitExceeded(
            "max_written_file_bytes", limits.max_written_file_bytes, "it wrote a file that is too large"
        )
    if _TOO_MANY_OPEN.search(line):
        return LimitExceeded("max_open_files", limits.max_open_files, "one of its processes opened too many files")
    return None


def _denial(line: str, confinement: Confinement, host: HostFacts, names: set[str]) -> HaftError | None:
    workspace = host.workspace
    if _READ_ONLY.search(line):
        return _not_writable(line, _shortened(line, _READ_ONLY), confinement, host, names)
    if _lacks_network(confinement) and NO_NETWORK.search(line):
        return _no_network(line, confinement)
    if _BUSY.search(line) and (name := _protected_in(line, workspace, names)) and confinement.profile == "workspace":
        return _protected(name, _shortened(line, _BUSY), confinement, workspace)
    if _NO_REPOSITORY.search(line):
        return _repository_above(_shortened(line, _NO_REPOSITORY), confinement, host)
    if _MISSING.search(line):
        return _hidden(line, confinement, host) or _not_on_path(line, confinement, host)
    return None


def _hidden(line: str, confinement: Confinement, host: HostFacts) -> HaftError | None:
    if _NO_PACKAGE.search(line):
        return None  # A package is not installed; the path in the line is the file that imports it.
    line = line.partition(" imported from ")[0]
    said = _shortened(line, _MISSING)
    seen = (host.workspace, *confinement.readable, *host.shown)
    granted = (*confinement.readable, *confinement.path, *confinement.writable, *OWN_TO_EACH)
    for path in _paths(line, host.home):
        if not os.path.lexists(path):
            continue
        if confinement.unasked and confinement.hidden and not host.is_in_view(path) and not is_below(path, granted):
            return _out_of_view(path, said)
        if not is_below(path, confinement.hidden):
            continue
        if not is_below(path, seen):
            return _unseen(path, path, said, confinement)
        # The call sees the script, but perhaps not its interpreter.
        interpreter = _interpreter(path)
        if interpreter and is_below(interpreter, confinement.hidden) and not is_below(interpreter, seen):
            directory = os.path.dirname(interpreter)
            whole = os.path.dirname(directory) if os.path.basename(directory) == "bin" else directory
            return _unseen(interpreter, whole, said, confinement)
    return None


def _repository_above(said: str, confinement: Confinement, host: HostFacts) -> HaftError | None:
    """The error if the workspace's repository begins in a hidden directory above the workspace: git needs the whole
    repository. None if the repository begins elsewhere, or if the call sees that directory."""
    place = os.path.dirname(host.workspace)
    while place != "/" and not is_repository_top(place):
        place = os.path.dirname(place)
    if place == "/" or not confinement.hidden or is_below(place, (*confinement.readable, *confinement.writable)):
        return None
    if is_below(place, confinement.hidden):
        return _unseen(place, place, said, confinement)
    return _out_of_view(place, said) if confinement.unasked and not host.is_in_view(place) else None


def _unseen(path: str, granted: str, said: str, confinement: Confinement) -> HaftError:
    if holds_private_keys(path) or holds_private_keys(granted):
        return SandboxDenied(f"access to a path: `{path}` is hidden", said, NO_KEYS)
    grant = f"read = [{json.dumps(granted)}]"
    how = _on_entry(confinement, grant) if confinement.session else _shown_by(granted)
    return SandboxDenied(f"access to a path: `{path}` is hidden", said, how)


def _out_of_view(path: str, said: str) -> HaftError:
    denied = f"access to a path: `{path}` exists on this machine, but calls that run without approval do not see it"
    if holds_private_keys(path):
        return SandboxDenied(denied, said, NO_KEYS)
    return SandboxDenied(denied, said, f"{_shown_by(path)}; or write a rule that allows the call")


def _shown_by(path: str) -> str:
    return _by_option(f"--read {shlex.quote(path)}")


def _interpreter(path: str) -> str | None:
    """The absolute path of the interpreter that the first line of a script names; None if the line names none."""
    first = first_line(path)
    words = first.removeprefix("#!").split()
    return words[0] if first.startswith("#!/") and words else None


def _not_on_path(line: str, confinement: Confinement, host: HostFacts) -> HaftError | None:
    """The error if the missing program exists in a directory of the workspace that is on the person's PATH, because
    calls do not get such directories on their PATH. None if the program is in no such directory."""
    if confinement.neutral or not (found := _NO_COMMAND.search(line)):
        return None
    for entry in host.path.split(os.pathsep):
        program = os.path.join(entry, found.group(1))
        if is_below(os.path.normpath(entry), (host.workspace,)) and os.access(program, os.X_OK):
            inside = os.path.relpath(program, host.workspace)
            denied = "a program: the PATH of a call has no directories of the workspace"
            return SandboxDenied(denied, _shortened(line, _NO_COMMAND), f"call it as `{shlex.quote(inside)}`")
    return None


def _not_writable(line: str, said: str, confinement: Confinement, host: HostFacts, names: set[str]) -> HaftError:
    workspace = host.workspace
    if (confinement.profile == "workspace" or confinement.session) and (name := _protected_in(line, workspace, names)):
        return _protected(name, said, confinement, workspace)
    if confinement.session and confinement.profile == "read-only" and (place := _unopened(line, workspace)):
        return SandboxDenied(
            "a write: the process of this tool may only read the workspace",
            said,
            _opens(confinement, "", f"write = [{json.dumps(place)}]"),
        )
    places = [path for path in _paths(line, "") if not is_below(path, confinement.writable)] or _paths(line, "")
    if not places and confinement.profile != "read-only":
        return SandboxDenied(
            "a write to a read-only path", said, _opens(confinement, "--write PATH", 'write = ["PATH"]')
        )
    if not places or is_below(places[-1], (workspace,)):
        if confinement.profile == "read-only":
            return SandboxDenied(
                "a write: the tool may only read", said, "call a tool that does not declare itself read-only"
            )
        return _protected(os.path.relpath(places[-1], workspace), said, confinement, workspace)
    path = places[-1]
    denied = f"a write: `{path}` is outside of what it may write"
    if is_below(path, OWN_TO_EACH):
        return SandboxDenied(
            denied, said, f"each call has its own {path[:5].rstrip('/')}, and no grant opens the host's"
        )
    if host.state_home and is_below(path, (host.state_home,)):
        return _in_state_home(path, said, confinement)
    place = path if os.path.exists(path) else os.path.dirname(path)
    own = ("/var/tmp", host.home, *([host.repository] if host.repository else ()))  # noqa: S108
    if os.path.isdir(place) and is_below(place, SYSTEM_PLACES) and not is_below(place, own):
        return SandboxDenied(
            denied, said, f"{place} belongs to the system, and no grant is suggested: write into the workspace"
        )
    if (
        place == "/"
        or is_below(host.home, (place,))
        or not os.path.exists(place)
        or "/." in path.removeprefix(host.repository or "")
    ):
        # The command itself may have printed this path, so the hint must not propose a grant for it.
        hint = (
            _opens(confinement, "--write PATH", 'write = ["PATH"]')
            if confinement.session
            else "to allow it: `--write PATH`"
        )
        return SandboxDenied(denied, said, f"{hint}, once you know what it wants there")
    if host.repository is not None and is_below(path, (host.repository,)):
        place = host.repository  # git writes several parts of a repository together.
    if os.path.exists(place) and not os.access(place, os.W_OK):
        return SandboxDenied(denied, said, "you have no right to write there yourself, so no grant would help")
    return SandboxDenied(
        denied, said, _opens(confinement, f"--write {shlex.quote(place)}", f"write = [{json.dumps(place)}]")
    )


def _in_state_home(path: str, said: str, confinement: Confinement) -> HaftError:
    """The error for a write into haft's own state, where packaged MCP servers are installed."""
    denied = f"a write: `{path}` is in haft's own directory, which no grant opens"
    if not confinement.session:
        return SandboxDenied(denied, said, "write into the workspace")
    own = written_grant("write", '["."]', confinement.entry)
    return SandboxDenied(
        f"{denied}: a server cannot change its own installation",
        said,
        "let it keep its files elsewhere: most servers have an option or a variable for that; name a path in the "
        f"workspace there, and add {own}",
    )


def _unopened(line: str, workspace: str) -> str | None:
    """The directory, relative to the workspace, that a person must grant before a program can write the path that
    `line` names. `.` if the line names no path; None if the path is outside the workspace."""
    named = _NAMED.findall(line) or _paths(line, "") or [""]
    path = os.path.normpath(os.path.join(workspace, named[-1]))
    if not is_below(path, (workspace,)):
        return None
    place = os.path.dirname(path)
    return os.path.relpath(place, workspace) if is_below(place, (workspace,)) and os.path.isdir(place) else "."


def _opens(confinement: Confinement, option: str, grant: str) -> str:
    """The hint that says how to allow what the sandbox denied: by an option of the next call, or by a grant if the
    process outlives its calls."""
    if confinement.ungrantable is not None:
        return ungrantable(confinement.ungrantable)
    if confinement.session:
        return _on_entry(confinement, grant)
    return _by_option(option)


def ungrantable(holder: str) -> str:
    """The hint for a call of a sub-agent that gets no grants."""
    return f"{holder} gets no grants: do it yourself, or let a type do it that is not `restricted`"


def _on_entry(confinement: Confinement, grant: str) -> str:
    key, _, values = grant.partition(" = ")
    written = written_grant(key, values, confinement.entry)
    return f"to allow it: {written}. It then holds for every call of this {_owner(confinement)}"


def _owner(confinement: Confinement) -> str:
    return "plugin" if confinement.entry == PLUGIN_ENTRY else "server"


def _by_option(option: str) -> str:
    return f"to allow it: add `{option}` to this call, or write a rule: `haft permissions add allow … {option}`"


def _no_network(line: str, confinement: Confinement) -> HaftError:
    how = NEVER if confinement.never_network else _opens(confinement, "--network=HOST", 'network = ["HOST"]')
    return SandboxDenied(
        "a connection: it has no network", line if line == CURL_FAILED else _shortened(line, sign_in(line)), how
    )


def connection_hint(grant: str, confinement: Confinement | None, *, is_never: bool) -> str:
    """A hint that says how to grant a host and port to a call."""
    if is_never:
        return NEVER
    if confinement is not None and confinement.ungrantable is not None:
        return ungrantable(confinement.ungrantable)
    if confinement is not None and confinement.session:
        return _on_entry(confinement, f"network = [{json.dumps(grant)}]")
    return f"to allow it: `--network={shlex.quote(grant)}`"


def _protected(inside: str, said: str, confinement: Confinement, workspace: str) -> HaftError:
    denied = f"a write: `{inside}` is protected, since programs on the host run or obey it"
    option = f"--write {shlex.quote(os.path.join(workspace, inside))}"
    return SandboxDenied(denied, said, _opens(confinement, option, f"write = [{json.dumps(inside)}]"))


def _protected_in(line: str, workspace: str, names: set[str]) -> str | None:
    """The protected path that a line names; None if it names none. The kernel reports a protected path as busy when a
    program tries to replace it, since the path is a mount point."""
    inside = workspace.rstrip("/") + "/"
    for word in re.split(r"[\s'\"`:;,()‘’“”]+", line)[:MAX_WORDS]:
        absolute = word.startswith(("/", "~"))
        if absolute and not word.startswith(inside):
            continue
        parts = word.removeprefix(inside).split("/")[:MAX_PARTS]
        # A relative path may begin in a directory of the workspace.
        for begin in range(1 if absolute else len(parts)):
            for end in range(begin + 1, len(parts) + 1):
                name = "/".join(parts[begin:end])
                if name in names:
                    return name
    return None


def _paths(line: str, home: str) -> list[str]:
    found = []
    for word in _PATH.findall(line)[:MAX_PATHS]:
        path = home + word[1:] if word.startswith("~/") and home else word
        if path.startswith("/"):
            found.append(os.path.normpath(path.rstrip(".")))
    return found


def _shortened(line: str, sign: re.Pattern[str]) -> str:
    """A short line as it is; of a long line, the part around the message that `sign` recognises."""
    words = line.strip()
    if len(words) <= LONGEST:
        return words
    found = sign.search(words)
    begin = max(0, (found.start() if found else 0) - LONGEST // 2)
    return f"{'…' if begin else ''}{words[begin : begin + LONGEST]}…"
