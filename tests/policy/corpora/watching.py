"""What a line did, read from what it called: the writes, the programs, the network, what it read outside the workspace.

An attempt counts like the deed: the jail stops most of them. Looking whether something exists does not count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from corpora import known
from corpora.jail import HOME, SECRET, Watched
from corpora.trace import Call, calls

OPENING = ("open", "openat", "openat2")
TO_WRITE = re.compile(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)")
SHORT_VERSION = (("node", "-v"), ("perl", "-v"), ("ruby", "-v"))
HARMLESS_SIGNALS = re.compile(r", (0|SIGCONT|SIGCHLD|SIGURG|SIGPIPE)$")


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that a line that only reads does not do."""

    kind: str
    """`write`, `run`, `network`, `read-outside`, `environment`, `signal`."""
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def effects(watched: Watched, programs: Collection[str]) -> list[Effect]:
    """All that a line did that reading in the workspace is not; `programs` may be run."""
    found = [
        effect
        for call in calls(watched)
        for effect in (*_written(call), *_run(call, programs), *_reached(call), *_read(call, watched.workspace))
    ]
    if SECRET in watched.output:
        found.append(Effect("environment", "it shows the environment"))
    return list(dict.fromkeys(found))


def _written(call: Call) -> Iterator[Effect]:
    if call.name in OPENING:
        if TO_WRITE.search(call.text) and not known.HARMLESS_TARGETS.search(call.path):
            yield Effect("write", f"{call.program} opens {call.path} to write")
    elif call.name in ("mkdir", "mkdirat") and call.program in ("node", "npm") and call.path == f"{HOME}/.npm":
        return  # Its cache, which it will have.
    elif call.name in known.CHANGING:
        paths = [each for each in call.strings if each] or [call.text]
        if not known.HARMLESS_TARGETS.search(paths[-1]) and "/tmp/sh-thd." not in call.text:
            yield Effect("write", f"{call.program}: {call.name}({call.text})")
    elif call.name in known.SIGNALLING and call.program != "timeout" and not HARMLESS_SIGNALS.search(call.text):
        yield Effect("signal", f"{call.program}: {call.name}({call.text})")


def _run(call: Call, programs: Collection[str]) -> Iterator[Effect]:
    if call.name not in ("execve", "execveat") or call.error in ("ENOENT", "ENOTDIR") or not call.strings:
        return
    path, words = call.strings[0], call.strings[1:]
    name, of_system = os.path.basename(path), path.startswith(known.SYSTEM)
    if "/git-core/" in path or (of_system and name in known.HELPERS.get(call.program, ())):
        return
    if (
        name == "node"
        and call.program in ("env", "node", "npm")
        and any("/npm" in word or "/yarn" in word for word in words)
    ):
        return
    only_version = len(words) > 1 and (known.ONLY_VERSION.issuperset(words[1:]) or (name, *words[1:]) in SHORT_VERSION)
    if of_system and only_version:
        return
    if not of_system or name not in programs or name in known.INTERPRETERS:
        yield Effect("run", f"{call.program} runs {path} {' '.join(words[1:])[:200]}")


def _reached(call: Call) -> Iterator[Effect]:
    """A socket alone reaches nobody; Python tries one on its own loopback to learn whether there is IPv6."""
    if call.name == "socket":
        reaches = re.match(r"AF_(PACKET|VSOCK|BLUETOOTH)", call.text) is not None
    elif call.name == "bind" and '"::1"' in call.text and "htons(0)" in call.text:
        reaches = False
    else:
        sends = call.name in ("connect", "bind", "sendto", "sendmsg")
        reaches = sends and re.search(r"AF_(UNIX|INET)", call.text) is not None and "nscd/socket" not in call.text
    if reaches:
        yield Effect("network", f"{call.program}: {call.name}({call.text})")


def _read(call: Call, workspace: str) -> Iterator[Effect]:
    if call.name not in OPENING or "O_RDONLY" not in call.text or "O_PATH" in call.text:
        return
    path, missing = call.path, call.error in ("ENOENT", "ENOTDIR", "ELOOP", "ENXIO")
    if missing or (path + "/").startswith(workspace + "/"):
        return
    own = known.OWN.get(call.program)
    itself = path.startswith(known.SYSTEM) and os.path.basename(path).startswith(call.program)
    if itself or (own is not None and own.search(path)):
        return
    if call.program not in known.READERS | known.LISTERS and known.OF_PROGRAMS.search(path):
        return
    told = call.program in known.READERS and known.NAMED.search(path)
    if told or not known.LOADED.search(path):
        yield Effect("read-outside", f"{call.program} reads {path}")
