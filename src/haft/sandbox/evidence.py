"""Signs that a failed call was denied something by the sandbox or a limit, read from what it said.

The kernel refuses without telling anyone but the program, so its words are the only witness. They are read only after a
failure, from what is shown of the output, and only sentences that a sandbox is known to cause count. What a program
keeps to itself, or says in another language than English, stays a plain failure."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from typing import Final

from haft.contracts import Confinement, HaftError, LimitExceeded, Limits, SandboxDenied, without_progress
from haft.files import first_line
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
"""How Python names the file in an error."""
_NO_REPOSITORY: Final = regex(r"not a git repository", re.IGNORECASE)
_MISSING: Final = regex(r"no such file|\bENOENT\b|cannot find|not found", re.IGNORECASE)
_TOO_LARGE: Final = regex(r"file too large|file size limit exceeded|\bEFBIG\b", re.IGNORECASE)
_TOO_MANY_OPEN: Final = regex(r"too many open files|\bEMFILE\b", re.IGNORECASE)
_PATH: Final = regex(r"(?<![\w.])(?:~|/)[^\s'\"`:;,()\[\]{}<>|&‘’“”]+")
_BUSY: Final = regex(r"device or resource busy|\bEBUSY\b|invalid cross-device link", re.IGNORECASE)
_NO_COMMAND: Final = regex(r"(?:^|: )([\w.+-]+): (?:command )?not found")

_SIGN: Final = regex(
    "|".join(each.pattern for each in (_READ_ONLY, NO_NETWORK, _BUSY, _NO_REPOSITORY, _MISSING)), re.IGNORECASE
)
_NO_PACKAGE: Final = regex(r"cannot find (?:module|package) ['\"`](?![./~])", re.IGNORECASE)
SYSTEM_PLACES: Final = (*SYSTEM, "/var")
CURL_FAILED: Final = "curl exited 6, which means that it could not resolve a host"
ON_ENTRY: Final = " on the plugin's entry in `plugins`: its process outlives its calls"
NO_KEYS: Final = "private keys lie there, and haft helps no tool to those"
NEVER: Final = "`sandbox.network` is `never`, and nothing opens it"
MOST_LINES: Final = 400
MOST_CANDIDATES: Final = 20
MOST_PARTS: Final = 12
MOST_PATHS: Final = 8
MOST_WORDS: Final = 100
LONGEST_LINE: Final = 4000
LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Ground:
    """What of the machine is needed to tell a denial of the sandbox from another mishap."""

    workspace: str
    home: str
    shown: tuple[str, ...] = ()
    """What is seen in hidden places."""
    repository: str | None = None
    """Where the workspace's repository lies, if outside of it."""
    path: str = ""
    """The host's PATH: what of it is in the workspace, no call has."""
    is_in_view: Callable[[str], bool] = lambda _path: True
    """Whether a call that nobody approved sees a path, were it there."""


def judge(
    output: str, confinement: Confinement, limits: Limits, ground: Ground, exit_code: int | None = None
) -> HaftError | None:
    """What stopped a call that failed; None where nothing of ours did. `exit_code` is given where it is curl's."""
    if not confinement.layers:
        return None
    lines = _last(output)
    names: set[str] = set()
    looked_at = 0
    for line in reversed(lines):
        found = _limit(line, limits)
        if found is None and looked_at < MOST_CANDIDATES and _SIGN.search(line):
            looked_at += 1
            names = names or set(protected_names(ground.workspace))
            found = _denial(line, confinement, ground, names)
        if found is not None:
            return found
    if confinement.network:
        return None
    if (missed := missed_network(lines)) is not None:
        return _no_network(missed, confinement)
    return _no_network(CURL_FAILED, confinement) if exit_code == CURL_UNRESOLVED else None


def swallowed(output: str, confinement: Confinement) -> HaftError | None:
    """The network failure that a call met and did not fail for, by its own words."""
    if not confinement.layers or confinement.network or (line := missed_network(_last(output))) is None:
        return None
    return _no_network(line, confinement)


def looked_for_credentials(output: str, confinement: Confinement, ground: Ground) -> list[tuple[str, str]]:
    """The files with credentials that a call looked for and could not see, each with what can be done."""
    seen = (ground.workspace, *confinement.readable, *confinement.writable, *ground.shown)
    paths = [path for path in looked_for(_last(output), ground.home) if is_below(path, confinement.hidden)]
    return [(path, _how_to_show(path, confinement)) for path in dict.fromkeys(paths) if not is_below(path, seen)]


def _how_to_show(path: str, confinement: Confinement) -> str:
    real = os.path.realpath(path)
    if real != path:
        return f"it is a link to {real}, and no grant opens a link: put the file itself there"
    if confinement.session:
        return f"to open it: grant = {{read = [{json.dumps(path)}]}}{ON_ENTRY}"
    return _shown_by(path)


def _last(output: str) -> list[str]:
    """The last lines of what was said, each of a bearable length."""
    return [
        without_progress(line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE // 2] + line[-LONGEST_LINE // 2 :])
        for line in output.splitlines()[-MOST_LINES:]
    ]


def waited_for_network(output: str) -> bool:
    """Whether a call that ran out of time said that it had no network. That it said nothing proves nothing."""
    return any(NO_NETWORK.search(line) for line in _last(output))


def _limit(line: str, limits: Limits) -> HaftError | None:
    if _TOO_LARGE.search(line) and limits.max_written_file_bytes:
        return LimitExceeded(
            "max_written_file_bytes", limits.max_written_file_bytes, "a file that it wrote grew too large"
        )
    if _TOO_MANY_OPEN.search(line):
        return LimitExceeded("max_open_files", limits.max_open_files, "one of its processes had too many files open")
    return None


def _denial(line: str, confinement: Confinement, ground: Ground, names: set[str]) -> HaftError | None:
    workspace = ground.workspace
    if _READ_ONLY.search(line):
        return _not_writable(line, _shortened(line, _READ_ONLY), confinement, ground, names)
    if not confinement.network and NO_NETWORK.search(line):
        return _no_network(line, confinement)
    if _BUSY.search(line) and (name := _protected_in(line, workspace, names)) and confinement.profile == "workspace":
        return _protected(name, _shortened(line, _BUSY), confinement, workspace)
    if _NO_REPOSITORY.search(line):
        return _repository_above(_shortened(line, _NO_REPOSITORY), confinement, ground)
    if _MISSING.search(line):
        return _hidden(line, confinement, ground) or _not_on_path(line, confinement, ground)
    return None


def _hidden(line: str, confinement: Confinement, ground: Ground) -> HaftError | None:
    if _NO_PACKAGE.search(line):
        return None  # A package that is not installed; the file that wanted it stands beside it.
    line = line.partition(" imported from ")[0]
    said = _shortened(line, _MISSING)
    seen = (ground.workspace, *confinement.readable, *ground.shown)
    granted = (*confinement.readable, *confinement.path, *confinement.writable, *OWN_TO_EACH)
    for path in _paths(line, ground.home):
        if not os.path.lexists(path):
            continue
        if confinement.unasked and confinement.hidden and not ground.is_in_view(path) and not is_below(path, granted):
            return _out_of_view(path, said)
        if not is_below(path, confinement.hidden):
            continue
        if not is_below(path, seen):
            return _unseen(path, path, said, confinement)
        # It is seen, and what it is to be run with is not.
        interpreter = _interpreter(path)
        if interpreter and is_below(interpreter, confinement.hidden) and not is_below(interpreter, seen):
            directory = os.path.dirname(interpreter)
            whole = os.path.dirname(directory) if os.path.basename(directory) == "bin" else directory
            return _unseen(interpreter, whole, said, confinement)
    return None


def _repository_above(said: str, confinement: Confinement, ground: Ground) -> HaftError | None:
    """A repository that the workspace is a part of, and that begins above it. Git only finds it as a whole."""
    place = os.path.dirname(ground.workspace)
    while place != "/" and not os.path.lexists(os.path.join(place, ".git")):
        place = os.path.dirname(place)
    if place == "/" or not confinement.hidden or is_below(place, (*confinement.readable, *confinement.writable)):
        return None
    if is_below(place, confinement.hidden):
        return _unseen(place, place, said, confinement)
    return _out_of_view(place, said) if confinement.unasked and not ground.is_in_view(place) else None


def _unseen(path: str, granted: str, said: str, confinement: Confinement) -> HaftError:
    if holds_private_keys(path) or holds_private_keys(granted):
        return SandboxDenied(f"`{path}` is hidden", said, NO_KEYS)
    how = (
        f"to open it: grant = {{read = [{json.dumps(granted)}]}}{ON_ENTRY}"
        if confinement.session
        else _shown_by(granted)
    )
    return SandboxDenied(f"`{path}` is hidden", said, how)


def _out_of_view(path: str, said: str) -> HaftError:
    denied = f"`{path}` is on this machine, and calls that pass without approval do not see it"
    if holds_private_keys(path):
        return SandboxDenied(denied, said, NO_KEYS)
    return SandboxDenied(denied, said, f"{_shown_by(path)}; or write a rule that allows the call")


def _shown_by(path: str) -> str:
    return _by_option(f"--read {shlex.quote(path)}")


def _interpreter(path: str) -> str | None:
    """What a script says that it is run with."""
    first = first_line(path)
    words = first.removeprefix("#!").split()
    return words[0] if first.startswith("#!/") and words else None


def _not_on_path(line: str, confinement: Confinement, ground: Ground) -> HaftError | None:
    """A program of an environment in the workspace, which the person has on PATH and no call has."""
    if confinement.neutral or not (found := _NO_COMMAND.search(line)):
        return None
    for entry in ground.path.split(os.pathsep):
        program = os.path.join(entry, found.group(1))
        if is_below(os.path.normpath(entry), (ground.workspace,)) and os.access(program, os.X_OK):
            inside = os.path.relpath(program, ground.workspace)
            denied = "directories of the workspace are not on its PATH"
            return SandboxDenied(denied, _shortened(line, _NO_COMMAND), f"call it as `{shlex.quote(inside)}`")
    return None


def _not_writable(line: str, said: str, confinement: Confinement, ground: Ground, names: set[str]) -> HaftError:
    workspace = ground.workspace
    if (confinement.profile == "workspace" or confinement.session) and (name := _protected_in(line, workspace, names)):
        return _protected(name, said, confinement, workspace)
    if confinement.session and confinement.profile == "read-only" and (place := _unopened(line, workspace)):
        return SandboxDenied(
            "its process only reads the workspace", said, _opens(confinement, "", f"write = [{json.dumps(place)}]")
        )
    places = [path for path in _paths(line, "") if not is_below(path, confinement.writable)] or _paths(line, "")
    if not places and confinement.profile != "read-only":
        return SandboxDenied(
            "what it wrote to is read-only", said, _opens(confinement, "--write PATH", "write = [PATH]")
        )
    if not places or is_below(places[-1], (workspace,)):
        if confinement.profile == "read-only":
            return SandboxDenied("it may only read", said, "call a tool that does not say of itself that it only reads")
        return _protected(os.path.relpath(places[-1], workspace), said, confinement, workspace)
    path = places[-1]
    denied = f"`{path}` lies outside of what it may write"
    if is_below(path, OWN_TO_EACH):
        return SandboxDenied(denied, said, f"{path[:5].rstrip('/')} is each call's own and cannot be opened")
    place = path if os.path.exists(path) else os.path.dirname(path)
    own = ("/var/tmp", ground.home, *([ground.repository] if ground.repository else ()))  # noqa: S108
    if os.path.isdir(place) and is_below(place, SYSTEM_PLACES) and not is_below(place, own):
        return SandboxDenied(
            denied, said, f"{place} belongs to the system, and no grant is suggested: write into the workspace"
        )
    if (
        place == "/"
        or is_below(ground.home, (place,))
        or not os.path.exists(place)
        or "/." in path.removeprefix(ground.repository or "")
    ):
        # These words may be the command's own: it could ask for a key to everything.
        hint = (
            _opens(confinement, "--write PATH", "write = [PATH]")
            if confinement.session
            else "to open it: `--write PATH`"
        )
        return SandboxDenied(denied, said, f"{hint}, once you know what it wants there")
    if ground.repository is not None and is_below(path, (ground.repository,)):
        place = ground.repository  # Its parts are written together.
    if os.path.exists(place) and not os.access(place, os.W_OK):
        return SandboxDenied(denied, said, "you have no right to write there yourself, so no grant would help")
    return SandboxDenied(
        denied, said, _opens(confinement, f"--write {shlex.quote(place)}", f"write = [{json.dumps(place)}]")
    )


def _unopened(line: str, workspace: str) -> str | None:
    """The directory of the workspace that must be granted for what a line names to be written; all of it where that is
    not said; None for what lies elsewhere."""
    named = _NAMED.findall(line) or _paths(line, "") or [""]
    path = os.path.normpath(os.path.join(workspace, named[-1]))
    if not is_below(path, (workspace,)):
        return None
    place = os.path.dirname(path)
    return os.path.relpath(place, workspace) if is_below(place, (workspace,)) and os.path.isdir(place) else "."


def _opens(confinement: Confinement, option: str, grant: str) -> str:
    """How the next call, or the process of all of them, would be let through."""
    if confinement.session:
        return f"to open it: grant = {{{grant}}}{ON_ENTRY}"
    return _by_option(option)


def _by_option(option: str) -> str:
    return f"to open it: `{option}`, or in a rule: `haft permissions add … {option}`"


def _no_network(line: str, confinement: Confinement) -> HaftError:
    how = NEVER if confinement.never_network else _opens(confinement, "--network", "network = true")
    return SandboxDenied("it has no network", line if line == CURL_FAILED else _shortened(line, sign_in(line)), how)


def _protected(inside: str, said: str, confinement: Confinement, workspace: str) -> HaftError:
    denied = f"`{inside}` is protected, since it would run or be obeyed on the host"
    option = f"--write {shlex.quote(os.path.join(workspace, inside))}"
    return SandboxDenied(denied, said, _opens(confinement, option, f"write = [{json.dumps(inside)}]"))


def _protected_in(line: str, workspace: str, names: set[str]) -> str | None:
    """What is protected and named in a line. What is held in place is busy to who would replace it."""
    inside = workspace.rstrip("/") + "/"
    for word in re.split(r"[\s'\"`:;,()‘’“”]+", line)[:MOST_WORDS]:
        absolute = word.startswith(("/", "~"))
        if absolute and not word.startswith(inside):
            continue
        parts = word.removeprefix(inside).split("/")[:MOST_PARTS]
        # A relative path may begin in a directory of the workspace.
        for begin in range(1 if absolute else len(parts)):
            for end in range(begin + 1, len(parts) + 1):
                name = "/".join(parts[begin:end])
                if name in names:
                    return name
    return None


def _paths(line: str, home: str) -> list[str]:
    found = []
    for word in _PATH.findall(line)[:MOST_PATHS]:
        path = home + word[1:] if word.startswith("~/") and home else word
        if path.startswith("/"):
            found.append(os.path.normpath(path.rstrip(".")))
    return found


def _shortened(line: str, sign: re.Pattern[str]) -> str:
    """The line, or what stands around the words that told."""
    words = line.strip()
    if len(words) <= LONGEST:
        return words
    found = sign.search(words)
    begin = max(0, (found.start() if found else 0) - LONGEST // 2)
    return f"{'…' if begin else ''}{words[begin : begin + LONGEST]}…"
