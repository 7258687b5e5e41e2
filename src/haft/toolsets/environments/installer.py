"""The installer uv: finds the program, makes its environment variables, and turns its messages into words for
people."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from haft.contracts import PROXY_VARIABLES, EndedChild, Stream, ToolFailed
from haft.files import shown
from haft.sandbox import NETWORK_VARIABLES
from haft.toolsets.download_network import RefusedConnections

MOST_LINES: Final = 300
"""How many lines of output are shown for one environment."""
LONGEST_LINE: Final = 200
FRESH_SECONDS: Final = 600.0
"""How long the public index allows its answers to be cached."""
LAST_LINES: Final = 12
LAST_CHARACTERS: Final = 2_000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/\s@]+@")
_SAME_FOR_UV: Final = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_CERT": "SSL_CERT_FILE",
}
"""Environment variables of pip, each with the variable of uv that means the same."""
_OLDER: Final = {"UV_DEFAULT_INDEX": "UV_INDEX_URL", "UV_INDEX": "UV_EXTRA_INDEX_URL"}
_USED: Final = frozenset((*_SAME_FOR_UV, *_OLDER, *_OLDER.values(), *PROXY_VARIABLES))
"""The names of the environment variables with addresses that uv uses, in upper case."""
_PATIENCE: Final = ("UV_HTTP_RETRIES", "UV_HTTP_TIMEOUT")
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT")
_NO_WHEEL: Final = (
    "there is no wheel of it for this Python and machine: name a version that has one, or build it with "
    "`haft templates build DIR --allow-builds`, which runs code of its authors"
)
_WITHOUT_WHEEL: Final = re.compile(r"[Ww]heels are required for `([A-Za-z0-9._-]+)` because building from source")
_NO_ANSWER: Final = (
    "the package index does not answer: is this machine online? HTTPS_PROXY, SSL_CERT_FILE and UV_DEFAULT_INDEX in "
    "your environment are passed on"
)
_NETWORK: Final = r"dns error|error sending request|tcp connect|connection refused|Could not connect|Failed to fetch"
_HINTS: Final = (
    (r"not done after", "the next call tries again, with what was downloaded so far"),
    (r"no usable wheels|no wheels|distributions is disabled|no-build|only-binary", _NO_WHEEL),
    (r"not found in the package registry", "the index has no such package: check its name in requirements.txt"),
    (_NETWORK, _NO_ANSWER),
    (r"No solution found|unsatisfiable", "no versions satisfy all lines of requirements.txt"),
    (r"hash mismatch|hashes", "a hash in requirements.txt is missing, or does not match"),
)


def find_uv(env: Mapping[str, str]) -> str:
    """The absolute path of uv: the one installed with haft, else the first on PATH."""
    try:
        from uv import find_uv_bin

        return os.path.realpath(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv", path=env.get("PATH"))
    if found is None or not os.path.isabs(found):
        raise ToolFailed(
            "haft makes the environments of templates with uv, and uv was not found",
            hint="`pip install uv` in the environment of haft, or put `uv` on the PATH",
        )
    return os.path.realpath(found)


def installer_environment(env: Mapping[str, str], cache: str, *, passes_proxies: bool = False) -> dict[str, str]:
    """The environment variables for uv. uv ignores configuration files, because one could lie in the template.
    Variables for indexes and certificates are kept. They matter even if uv works offline, because its cache is sorted
    by index. Variables for pip are translated for uv. `passes_proxies`: variables for proxies are kept too. Where the
    sandbox decides by host, uv must not get them: the process that makes its connections uses the host's proxy."""
    passed = NETWORK_VARIABLES if passes_proxies else NETWORK_VARIABLES.difference(PROXY_VARIABLES)
    told = {
        **{name: value for name, value in env.items() if name.upper() in passed or name in _PATIENCE},
        "UV_CACHE_DIR": cache,
        "UV_LINK_MODE": "copy",
        "UV_NO_CONFIG": "1",
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "NO_COLOR": "1",
    }
    for theirs, ours in _SAME_FOR_UV.items():
        if theirs in env and ours not in env and _OLDER.get(ours, ours) not in env:
            told[ours] = env[theirs]
    return told


def with_credentials(env: Mapping[str, str]) -> list[str]:
    """The variables for indexes and proxies with a user or password in their address. Secrets in other parts of an
    address are not found."""
    return sorted(name for name, value in env.items() if name.upper() in _USED and _names_someone(value))


def without_credentials(env: Mapping[str, str]) -> dict[str, str]:
    """The environment variables without those that contain credentials, for steps that run code of packages."""
    return {
        name: value for name, value in env.items() if name.upper() not in NETWORK_VARIABLES or not _names_someone(value)
    }


def _names_someone(value: str) -> bool:
    return "@" in value and not os.path.isabs(value)


def readable_certificates(env: Mapping[str, str]) -> Iterator[str]:
    """The paths of existing certificate files that environment variables name."""
    for name in _CERTIFICATES:
        if os.path.isabs(path := env.get(name, "")) and os.path.exists(path):
            yield path


class Fresh:
    """Remembers whether uv asked the index for the same requirements a short while ago. If so, uv's cache has the
    answer, and uv works offline. This happens often, because many templates have the same requirements."""

    def __init__(self, ground: str, lines: Sequence[str]) -> None:
        self._folder = os.path.join(ground, "asked")
        self._path = os.path.join(self._folder, hashlib.sha256("\n".join(lines).encode()).hexdigest()[:24])

    def is_known(self) -> bool:
        return _age(self._path) < FRESH_SECONDS

    def note(self) -> None:
        """Save that uv asked the index just now."""
        with contextlib.suppress(OSError):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            for name in os.listdir(self._folder):
                if _age(path := os.path.join(self._folder, name)) >= FRESH_SECONDS:
                    os.unlink(path)
            with open(self._path, "w"):
                pass


def _age(path: str) -> float:
    try:
        return abs(time.time() - os.stat(path).st_mtime)
    except OSError:
        return float("inf")


class Heard:
    """The output of uv: passes each line on as it comes, and keeps the last lines."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told = told
        self._count = 0
        self._rest = b""
        self._last: deque[str] = deque(maxlen=LAST_LINES)

    def output(self, stream: Stream, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        self._rest = self._rest[-LAST_CHARACTERS:]
        for line in lines:
            self._hear(line)

    def processes_ended(self, children: Sequence[EndedChild]) -> None: ...

    def last(self) -> list[str]:
        """The last lines of the output, also a last line without a newline."""
        if self._rest:
            self._hear(self._rest)
            self._rest = b""
        return list(self._last)

    def _hear(self, line: bytes) -> None:
        words = shown(_COLOURS.sub("", line[:LAST_CHARACTERS].decode("utf-8", "replace")).expandtabs().rstrip())
        words = _CREDENTIALS.sub("", words)
        if not words.strip() or words.startswith("Using Python"):
            return  # A line of the second pattern names a temporary directory.
        self._last.append(words)
        self._count += 1
        if self._count <= MOST_LINES:
            self._told(words.strip()[:LONGEST_LINE])


def without_wheel(lines: Sequence[str]) -> list[str]:
    """The packages that uv would have to build, from its error message."""
    return list(dict.fromkeys(_WITHOUT_WHEEL.findall(" ".join(lines))))


def names_in(lines: Sequence[str]) -> list[str]:
    """The names of the packages in lines of requirements."""
    return [found[0] for line in lines if "://" not in line and (found := _NAME.match(line)) is not None]


def failed(name: str, lines: Sequence[str], otherwise: str, refused: RefusedConnections | None = None) -> ToolFailed:
    """The error for an environment that could not be made, with the last lines of output. `otherwise` says in words
    what went wrong."""
    words = "\n".join(lines)[-LAST_CHARACTERS:]
    if refused is not None and (sentence := refused.sentence()) is not None:
        listed = ", ".join(f'"{host}"' for host in refused.hosts)
        return ToolFailed(
            f"the environment of `{name}` could not be made: {sentence}, which none of your package indexes is or "
            f"serves its files from\n{words}".rstrip(),
            hint=f"if you trust it, add {listed} to the list `network` below `[sandbox]` in your own configuration",
        )
    said = " ".join((*lines, otherwise))
    hint = next((hint for pattern, hint in _HINTS if re.search(pattern, said, re.IGNORECASE)), None)
    return ToolFailed(f"the environment of `{name}` could not be made: {otherwise}\n{words}".rstrip(), hint=hint)
