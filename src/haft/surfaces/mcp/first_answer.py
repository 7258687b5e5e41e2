"""The first answer of `haft serve mcp`, before the `mcp` package is imported.

Clients begin with `server/discover` or `initialize`, and people notice how long the answer takes. Importing the package
takes a second of processor time. So the package's own answers are kept in the state home: the next start with the same
versions and options answers from there, and imports the package afterwards. The answers depend on nothing else: the
tools that a configuration names are listed by a later request. `command_line` says for which command lines this module
may answer before they are parsed.

This module imports little, and the entry point of haft imports it before anything else. From here on, stdin and stdout
belong to the protocol: other code that reads stdin finds nothing, and other output goes to stderr.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from haft.version import __version__

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
SECONDS_BEFORE_IMPORTS: Final = 0.2
"""How long the imports wait for the first request. Imports beside it would delay its answer."""
AT_A_TERMINAL: Final = (
    b"haft serves MCP on stdin and stdout: an agent starts this command, and talks to it. Ctrl-D or Ctrl-C ends it.\n"
)
MOST_BYTES: Final = 1 << 20
"""How much is read before the server takes over. A flood of messages would delay the imports."""
_AT_ONCE: Final = 1 << 16
_CLIENT_KEYS: Final = frozenset({"name", "version", "title", "description", "websiteUrl"})
_CAPABILITIES: Final = frozenset({"roots", "sampling", "elicitation", "experimental", "extensions"})
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Id = tuple[str, str | int]
"""The id of a request, with the name of its type: `1` and `"1"` are two ids."""


class Begun(NamedTuple):
    """What the client sent so far, and which of its requests are answered."""

    stdin: int
    stdout: int
    data: bytes
    answered: frozenset[Id]


class FirstAnswers:
    """Reads stdin and answers from the kept answers, until the server takes over."""

    def __init__(self, stdin: int, stdout: int, kept: Mapping[str, Any] | None) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._kept = kept
        self._data = bytearray()
        self._seen = 0
        """How much of the data has been looked at."""
        self._answered: set[Id] = set()
        self._wake, self._woken = os.pipe()
        self._thread = threading.Thread(target=self._go_on, name="first answers", daemon=True)

    def begin(self) -> None:
        """Answer the first request if it comes at once, and go on in a thread."""
        if self._kept is not None and _is_ready(self._stdin, SECONDS_BEFORE_IMPORTS):
            self._read()
        self._thread.start()

    def hand_over(self) -> Begun:
        """Stop reading."""
        os.write(self._woken, b".")
        self._thread.join()
        os.close(self._wake)
        os.close(self._woken)
        return Begun(self._stdin, self._stdout, bytes(self._data), frozenset(self._answered))

    def _go_on(self) -> None:
        poll = select.poll()
        poll.register(self._stdin, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while len(self._data) < MOST_BYTES and not any(ready == self._wake for ready, _event in poll.poll()):
            self._read()

    def _read(self) -> None:
        data = os.read(self._stdin, _AT_ONCE)
        if not data:
            os._exit(0)  # The client is gone, and nothing has been started.
        at = len(self._data)
        self._data += data
        while (end := self._data.find(b"\n", max(at, self._seen))) >= 0:
            line = bytes(self._data[self._seen : end])
            self._seen = end + 1
            self._answer(line)

    def _answer(self, line: bytes) -> None:
        request = _request(line)
        result = None if request is None or self._kept is None else kept_result(self._kept, request)
        if request is None or result is None:
            return
        answer = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}, ensure_ascii=False)
        left = answer.encode() + b"\n"
        while left:
            try:
                left = left[os.write(self._stdout, left) :]
            except OSError:
                os._exit(0)  # The client is gone.
        self._answered.add(id_of(request["id"]))


def _is_ready(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def id_of(given: str | int) -> Id:
    """The id of a request, as it is compared."""
    return type(given).__name__, given


def _request(line: bytes) -> dict[str, Any] | None:
    """The request in a line; None if the line is anything else."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or type(message.get("id")) not in (str, int):
        return None
    return message if isinstance(message.get("params"), dict) else None


def kept_result(kept: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The kept answer to a request; None if the `mcp` package has to answer, as it has to for every mistake."""
    params = request["params"]
    if request.get("method") == "server/discover":
        meta = params.get("_meta")
        fits = (
            isinstance(meta, dict)
            and meta.get(VERSION_KEY) in kept["discover"]["supportedVersions"]
            and _is_meta(meta)
            and _are_capabilities(meta.get(CAPABILITIES_KEY))
            and (CLIENT_KEY not in meta or _is_client(meta[CLIENT_KEY]))
        )
        return dict(kept["discover"]) if fits else None
    if request.get("method") == "initialize":
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str) or not _is_meta(params.get("_meta", {})):
            return None
        if not _is_client(params.get("clientInfo")) or not _are_capabilities(params.get("capabilities")):
            return None
        version = wanted if wanted in kept["handshakes"] else kept["handshakes"][-1]
        return {**kept["initialize"], "protocolVersion": version}
    return None


# The package refuses a request with a value of a wrong type. These functions know only plain values. For all others,
# the package answers.


def _is_meta(meta: Any) -> bool:
    return isinstance(meta, dict) and type(meta.get("progressToken", 0)) in (int, str)


def _is_client(client: Any) -> bool:
    """Whether this is the description of a client, and has only texts."""
    if not isinstance(client, dict) or not {"name", "version"} <= client.keys() <= _CLIENT_KEYS:
        return False
    return all(isinstance(value, str) for value in client.values())


def _are_capabilities(capabilities: Any) -> bool:
    """Whether these are well-known capabilities of a client, and have only values of the right types."""
    if not isinstance(capabilities, dict) or not capabilities.keys() <= _CAPABILITIES:
        return False
    if not all(isinstance(capability, dict) for capability in capabilities.values()):
        return False
    return all(
        type(value) is (bool if name == "roots" else dict)
        for name, capability in capabilities.items()
        for value in capability.values()
    )


# The kept answers.


def key_of(words: Sequence[str]) -> list[Any]:
    """What kept answers depend on: versions, haft's own files, and the options that the instructions mention."""
    return [__version__, sys.hexversion, _packages(), _own_files(), _options(words)]


def _options(words: Sequence[str]) -> str:
    lazy = "-lazy" if "--lazy" in words else ""
    before = ["", *words]
    is_read_only = any(
        word == "--profile=read-only" or (word == "read-only" and before[at] == "--profile")
        for at, word in enumerate(words)
    )
    return lazy + ("-read-only" if is_read_only else "")


def _packages() -> list[str]:
    """The installed versions of the `mcp` package and its types. `importlib.metadata` would take longer."""
    for place in sys.path:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        if "mcp_types" in names:
            return sorted(
                name for name in names if name.startswith(("mcp-", "mcp_types-")) and name.endswith(".dist-info")
            )
    return []


def _own_files() -> int:
    """When the code of this surface last changed."""
    with os.scandir(os.path.dirname(os.path.abspath(__file__))) as entries:
        return max(entry.stat().st_mtime_ns for entry in entries if entry.name.endswith(".py"))


def kept_path(home: str, key: Sequence[Any]) -> str:
    """The file with the kept answers for a key."""
    return os.path.join(home, "mcp", f"first-answer{key[-1]}.json")


def load_kept(home: str, key: Sequence[Any]) -> dict[str, Any] | None:
    """The kept answers for a key; None if there are none."""
    try:
        with open(kept_path(home, key), "rb") as file:
            kept = json.load(file)
        is_whole = (
            kept["key"] == json.loads(json.dumps(key)) and {"discover", "initialize", "handshakes"} <= kept.keys()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return kept if is_whole else None


def save_kept(home: str, key: Sequence[Any], answers: Mapping[str, Any]) -> None:
    """Keep answers. If that fails, the next start is slower, and nothing else happens."""
    path = kept_path(home, key)
    draft = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(draft, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            json.dump({"key": list(key), **answers}, file, ensure_ascii=False)
        os.replace(draft, path)
    except OSError:
        return


def begin(words: Sequence[str]) -> FirstAnswers:
    """Take stdin and stdout for the protocol, and answer as soon as possible. Until the server takes over, a signal and
    the end of stdin end this process at once: nothing has been started."""
    from haft.service import default_home

    for number in _SIGNALS:
        signal.signal(number, lambda number, _frame: os._exit(128 + number))
    stdin, stdout = claim_streams()
    if os.isatty(stdin) and not {"-q", "--quiet"} & {*words}:
        os.write(2, AT_A_TERMINAL)
    first = FirstAnswers(stdin, stdout, load_kept(default_home(os.environ), key_of(words)))
    first.begin()
    return first


def claim_streams() -> tuple[int, int]:
    """Keep stdin and stdout for the protocol, under other numbers. Other code finds an empty stdin, and its output goes
    to stderr."""
    stdin, stdout = _copy_of(0), _copy_of(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # There is no stderr.
        os.dup2(nothing, 1)
    os.close(nothing)
    return stdin, stdout


def _copy_of(descriptor: int) -> int:
    try:
        return os.dup(descriptor)
    except OSError:  # The process was started without it.
        return os.open(os.devnull, os.O_RDWR)
