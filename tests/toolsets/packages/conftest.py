"""A package registry on this machine that speaks as npm's and as PyPI's, and a place to install servers."""

import asyncio
import base64
import hashlib
import http.server
import io
import json
import os
import tarfile
import threading
import urllib.parse
import zipfile
from types import SimpleNamespace

import pytest

import npm_programs
from haft.config.config import load_config
from haft.contracts import Command
from haft.files import Root
from haft.sandbox.sandbox import Sandbox
from haft.sources.mcp import Provider
from haft.toolsets.providers.packages import PackagedServers

SAYS = """#!/usr/bin/env node
console.log(JSON.stringify({version: require("./package.json").version, args: process.argv.slice(2)}))
"""
"""The program of a package of npm, which prints its version and its arguments."""

NAME_AND_VERSION = """
import json, sys
from importlib.metadata import version

def main():
    print(json.dumps({"version": version("said-server"), "args": sys.argv[1:]}))
"""


class Registry:
    """Whoever asks for a file waits until `gate` is open; `reached` says that someone does."""

    def __init__(self):
        self.packages, self.wheels, self.asked, self.tokens = {}, {}, [], []
        self.is_closed = False
        self.gate, self.reached = threading.Event(), threading.Event()
        self.gate.set()
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                registry.answer(self)

            do_HEAD = do_GET

            def log_message(self, *words): ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def publish(self, name="said", version="1.0.0", files=None, at=None, **about):
        """A package of npm. `at`: where its file is said to be."""
        about = {"name": name, "version": version, "bin": "index.js", **about}
        files = {"package.json": json.dumps(about), "index.js": SAYS, **(files or {})}
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for path, words in files.items():
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size, entry.mode = len(words.encode()), 0o755
                archive.addfile(entry, io.BytesIO(words.encode()))
        data = packed.getvalue()
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        file = f"{name.replace('/', '-')}-{version}.tgz"
        url = f"{at or self.url}/files/{file}"
        scripts = {"hasInstallScript": True} if "scripts" in about else {}
        found = self.packages.setdefault(name, {"name": name, "versions": {}, "files": {}})
        found["dist-tags"] = {"latest": version}
        found["versions"][version] = {**about, **scripts, "dist": {"tarball": url, "integrity": integrity}}
        self.wheels[file] = data

    def publish_wheel(self, version="1.0", scripts="said-server = said_server:main"):
        """A package of PyPI."""
        info, packed = f"said_server-{version}.dist-info", io.BytesIO()
        with zipfile.ZipFile(packed, "w") as files:
            files.writestr("said_server.py", NAME_AND_VERSION)
            files.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: said-server\nVersion: {version}\n")
            files.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            files.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{scripts}\n")
            files.writestr(f"{info}/RECORD", "")
        self.wheels[f"said_server-{version}-py3-none-any.whl"] = packed.getvalue()

    def answer(self, request):
        path = urllib.parse.unquote(request.path)
        self.asked.append(f"{request.command} {path}")
        self.tokens.append(request.headers.get("Authorization"))
        body, kind = None, "application/json"
        if path.startswith("/files/"):
            self.reached.set()
            self.gate.wait(60)
            body, kind = self.wheels.get(path.removeprefix("/files/")), "application/octet-stream"
        elif path.startswith("/simple/"):
            name = path.split("/")[2].replace("-", "_")
            links = [f'<a href="/files/{one}">{one}</a>' for one in self.wheels if one.startswith(f"{name}-")]
            body, kind = "".join(links).encode() or None, "text/html"
        elif (found := self.packages.get(path[1:])) is not None:
            body = json.dumps(found).encode()
        try:
            request.send_response(200 if body is not None else 404)
            request.send_header("Content-Type", kind)
            request.send_header("Content-Length", str(len(body or b"{}")))
            request.end_headers()
            if request.command == "GET":
                request.wfile.write(body or b"{}")
        except OSError:
            pass  # Whoever asked is gone.

    def downloads(self):
        return [path for path in self.asked if path.startswith("GET /files/")]

    def close(self):
        self.gate.set()
        if self.is_closed:
            return
        self.is_closed = True
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def registry():
    made = Registry()
    yield made
    made.close()


class Place:
    """A home, a workspace and a state home of their own."""

    def __init__(self, top, registry):
        self.top, self.registry = top, registry
        self.home, self.workspace, self.state = top / "own", top / "workspace", top / "state"
        for folder in (self.home, self.workspace):
            folder.mkdir()
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{npm_programs.node().parent}{os.pathsep}{os.defpath}",
            "npm_config_registry": f"{registry.url}/",
            "UV_DEFAULT_INDEX": f"{registry.url}/simple",
            "API_TOKEN": "s3",
        }
        self.told = []

    @property
    def servers(self):
        config = load_config(str(self.workspace), self.env)
        return PackagedServers(config, str(self.state), self.env, str(self.workspace))

    def kept(self):
        """The installed versions, by command."""
        return {
            folder.name: {one.name for one in folder.iterdir() if one.is_dir()}
            for folder in (self.state / "servers").iterdir()
            if folder.is_dir()
        }

    def install(self, *words, upgrade=False):
        return asyncio.run(self.begin_install(*words, upgrade=upgrade))

    def begin_install(self, *words, upgrade=False):
        return self.servers.install(provider(*words), self.told.append, upgrade=upgrade)

    def run(self, server):
        """What an installed server prints, in a sandbox without network."""
        return asyncio.run(self._run(server))

    async def _run(self, server):
        said = []
        sink = SimpleNamespace(output=lambda _stream, data: said.append(data), processes_ended=lambda _ended: None)
        config = load_config(str(self.workspace), self.env)
        files = Root(str(self.workspace)).open_directory
        sandbox = Sandbox(str(self.workspace), str(self.state), self.env, files, config.limits)
        try:
            command = Command(server.argv, env=server.env, readable=server.readable)
            await sandbox.launcher("read-only").run(command, sink)
        finally:
            sandbox.close()
        return json.loads(b"".join(said))


def provider(command, *args):
    return Provider("said", "stdio", command=command, args=args)


@pytest.fixture
def place(tmp_path, registry):
    return Place(tmp_path, registry)
