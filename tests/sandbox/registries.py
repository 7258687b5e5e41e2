"""Package registries for tests: tiny ones, on loopback, with one package each."""

import base64
import contextlib
import hashlib
import http.server
import io
import json
import tarfile
import threading
import zipfile

NAME = "tinypackage"
"""In both, version 1.0.0: what it says is `it works`."""


@contextlib.contextmanager
def serving(pages):
    """Serve `pages(base)`, a table of paths and their kind and bytes; yields the base address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            found = table.get(self.path.split("?")[0].rstrip("/") or "/")
            self.send_response(404 if found is None else 200)
            kind, data = found or ("text/plain", b"there is no such page")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        do_HEAD = do_GET

        def log_message(self, *words): ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        base = f"http://127.0.0.1:{server.server_address[1]}"
        table = pages(base)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield base
        finally:
            server.shutdown()
            thread.join()


def python_index():
    """As PEP 503 has it: the index is `/simple`."""
    wheel = f"{NAME}-1.0.0-py3-none-any.whl"
    data = _wheel()
    digest = hashlib.sha256(data).hexdigest()
    link = f'<!DOCTYPE html><html><body><a href="/files/{wheel}#sha256={digest}">{wheel}</a></body></html>'
    return serving(
        lambda base: {
            f"/simple/{NAME}": ("text/html", link.encode()),
            f"/files/{wheel}": ("application/octet-stream", data),
        }
    )


def _wheel() -> bytes:
    about = f"{NAME}-1.0.0.dist-info"
    files = {
        f"{NAME}.py": b"print('it works')\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0.0\n".encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in files.items()
    )
    files[f"{about}/RECORD"] = (record + f"{about}/RECORD,,\n").encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


def npm_registry():
    """One packument and its tarball."""
    about = {"name": NAME, "version": "1.0.0", "main": "index.js"}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in (
            ("package/package.json", json.dumps(about).encode()),
            ("package/index.js", b"console.log('it works')\n"),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    data = packed.getvalue()
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()

    def pages(base):
        tarball = f"/{NAME}/-/{NAME}-1.0.0.tgz"
        version = {**about, "dist": {"tarball": base + tarball, "integrity": integrity}}
        packument = {"name": NAME, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        return {
            f"/{NAME}": ("application/json", json.dumps(packument).encode()),
            tarball: ("application/octet-stream", data),
        }

    return serving(pages)
