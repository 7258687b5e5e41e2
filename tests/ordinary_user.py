"""An ordinary user that root makes for tests, with a Python that this user may read."""

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
SYSTEM_PYTHON = "/usr/bin/python3"


def why_not() -> str | None:
    """Why no such user can be made here."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "the tests already run as an ordinary user"
    if shutil.which("useradd") is None or shutil.which("userdel") is None:
        return "useradd is not on this machine"
    if not os.access(SYSTEM_PYTHON, os.X_OK):
        return f"{SYSTEM_PYTHON} is not on this machine: an ordinary user may not read root's Python"
    version = subprocess.run(
        [SYSTEM_PYTHON, "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True, text=True
    )
    if version.stdout.strip() != "True":
        return f"{SYSTEM_PYTHON} is older than 3.11"
    if _uv() is None:
        return "uv is not on this machine"
    return None


def _uv() -> str | None:
    beside = os.path.join(os.path.dirname(sys.executable), "uv")
    return beside if os.access(beside, os.X_OK) else shutil.which("uv")


@contextlib.contextmanager
def public_directory():
    """A directory that everybody can read, outside of root's own."""
    path = Path(tempfile.mkdtemp(prefix="haft-users-", dir="/var/tmp"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def made_user(public: Path):
    """A user whose home is in a public directory."""
    name = f"haft{uuid.uuid4().hex[:8]}"
    subprocess.run(["useradd", "--home-dir", public / "home", "--create-home", name], check=True, capture_output=True)
    try:
        yield pwd.getpwnam(name)
    finally:
        subprocess.run(["userdel", name], check=False, capture_output=True)


def make_environment(venv: Path, *packages: str) -> str | None:
    """Install haft and packages for everybody. Returns the problem if they cannot be installed."""
    umask = os.umask(0o022)
    try:
        subprocess.run([_uv(), "venv", "--quiet", "--python", SYSTEM_PYTHON, venv], check=True)
        # Compiled here: the user may not write beside the packages, and each of its processes would compile them anew.
        install = [_uv(), "pip", "install", "--quiet", "--link-mode", "copy", "--compile-bytecode"]
        installed = subprocess.run(
            [*install, "--python", venv / "bin" / "python", f"{REPOSITORY}[templates]", *packages],
            capture_output=True,
            text=True,
        )
    finally:
        os.umask(umask)
    return f"the packages could not be installed: {installed.stderr.strip()[-300:]}" if installed.returncode else None
