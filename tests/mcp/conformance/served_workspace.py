"""A workspace with the fixtures, and `haft serve mcp` in it: over stdio as a command, over HTTP as a process.

The person's own configuration names the fixtures and allows their calls: the suite is about the protocol, and answers
no approvals.
"""

import contextlib
import json
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

from haft.contracts import Principal
from haft.service import Tokens

HERE = Path(__file__).parent
PATIENCE = 60
LISTENS = re.compile(rb"haft serves MCP at (http://[^\s]+)")


class ServedWorkspace:
    """The workspace, its state home, and the person's configuration."""

    def __init__(self, base: Path, *, fixtures: bool = True, more: str = "") -> None:
        self.path = base / "workspace"
        self.path.mkdir(parents=True)
        self.home = base / "state"
        own = base / "config" / "haft" / "haft.toml"
        own.parent.mkdir(parents=True)
        own.write_text(_configuration(fixtures=fixtures) + more)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("HAFT_", "_HAFT"))}
        self.env |= {"HAFT_HOME": str(self.home), "HOME": str(base), "XDG_CONFIG_HOME": str(base / "config")}
        self._has_fixtures = fixtures
        if fixtures:
            self.env["PYTHONPATH"] = os.pathsep.join([str(HERE), str(_installed(base / "site"))])
        self.command = [sys.executable, "-m", "haft", "serve", "mcp"]

    def haft(self, *words: str) -> str:
        """What a command of haft prints. It must succeed."""
        done = subprocess.run(
            [sys.executable, "-m", "haft", *words],
            cwd=self.path,
            env=self.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"haft {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def runs(self) -> list[dict]:
        """All runs, the oldest first."""
        found = json.loads(self.haft("log", "--limit", "10000", "--json"))
        return sorted(found, key=lambda run: run["startedAt"])

    @contextlib.contextmanager
    def served(self, *options: str):
        """`haft serve mcp --http` as a process: its port and the token of a client."""
        if self._has_fixtures:
            # Otherwise the server behind is described in the background, while the suite may already ask for it.
            self.haft("providers", "restart", "fixture")
        # Not by the command: this process may be a client of haft, whose commands may not make tokens.
        _, token = Tokens(self.home).add(f"client-{time.monotonic_ns()}", Principal("person"))
        process = subprocess.Popen(
            [*self.command, "--http", "127.0.0.1:0", *options],
            cwd=self.path,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            url = _address(process)
            yield url, token
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.communicate()


def _address(process: subprocess.Popen) -> str:
    seen, end = b"", time.monotonic() + PATIENCE
    while (found := LISTENS.search(seen)) is None:
        assert time.monotonic() < end and process.poll() is None, seen.decode()
        if select.select([process.stderr], [], [], 0.2)[0]:
            seen += os.read(process.stderr.fileno(), 65536)
    return found[1].decode()


def _installed(site: Path) -> Path:
    """A directory in which `fixture_tools` is an installed package that offers tools."""
    metadata = site / "fixture_tools-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: fixture-tools\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[haft.tools]\nfixtures = fixture_tools:TOOLS\n")
    return site


def _configuration(*, fixtures: bool) -> str:
    if not fixtures:
        return ""
    return f"""
plugins = ["python:{HERE}/task_tools.py", "bash:{HERE}/schema_tools.bash", "bash:{HERE}/header_tools.bash"]

[plugin_policy]
allow_bash_tools = true

[[permissions]]
tool = "*"
action = "allow"

[providers.fixture]
command = "{sys.executable}"
args = ["{HERE}/fixture_server.py"]
"""
