"""Where root runs the tests: those marked `every_user` once more, as an ordinary user made for the purpose."""

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest

from sampling import IS_WHOLE, MORE, SEED

REPOSITORY = Path(__file__).parents[2]
SYSTEM_PYTHON = "/usr/bin/python3"
FEWEST = 80


def _why_not() -> str | None:
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


@pytest.fixture
def public():
    """A directory that everybody can read, outside of root's own."""
    path = Path(tempfile.mkdtemp(prefix="haft-users-", dir="/var/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def user(public):
    name = f"haft{uuid.uuid4().hex[:8]}"
    subprocess.run(["useradd", "--home-dir", public / "home", "--create-home", name], check=True, capture_output=True)
    yield pwd.getpwnam(name)
    subprocess.run(["userdel", name], check=False, capture_output=True)


@pytest.mark.first
@pytest.mark.skipif(_why_not() is not None, reason=str(_why_not()))
def test_what_must_hold_for_every_user_holds_for_an_ordinary_one(public, user, eventually):
    venv, umask = public / "venv", os.umask(0o022)
    try:
        shutil.copytree(REPOSITORY / "tests", public / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(REPOSITORY / "pyproject.toml", public)
        subprocess.run([_uv(), "venv", "--quiet", "--python", SYSTEM_PYTHON, venv], check=True)
        # Compiled here: the user may not write beside the packages, and each of its processes would compile them anew.
        install = [_uv(), "pip", "install", "--quiet", "--link-mode", "copy", "--compile-bytecode"]
        installed = subprocess.run(
            [
                *install,
                "--python",
                venv / "bin" / "python",
                f"{REPOSITORY}[templates]",
                "pytest",
                "pytest-xdist",
                "hypothesis",
            ],
            capture_output=True,
            text=True,
        )
        if installed.returncode:
            pytest.skip(f"the packages could not be installed: {installed.stderr.strip().splitlines()[-1]}")
    finally:
        os.umask(umask)
    # Only the files that have such tests: others may want more of the repository than its tests.
    files = [path for path in sorted(public.glob("tests/**/test_*.py")) if "every_user" in path.read_text()]
    finished = subprocess.run(
        [venv / "bin" / "python", "-m", "pytest", "-m", "every_user", "-q", "-n", "2", "--dist", "worksteal",
         "-p", "no:cacheprovider", "--basetemp", f"{user.pw_dir}/tmp", *files],
        cwd=public,
        env={
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": user.pw_dir, "LANG": "C.UTF-8", "TMPDIR": user.pw_dir,
            "HAFT_FEWER": "1", "HAFT_TEST_SEED": SEED, **({"HAFT_MORE": str(MORE)} if IS_WHOLE else {}),
        },
        user=user.pw_uid, group=user.pw_gid, extra_groups=[], umask=0o022,
        capture_output=True, text=True,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout[-5000:] + finished.stderr[-2000:]
    passed = int(re.search(r"(\d+) passed", finished.stdout)[1])
    assert passed >= FEWEST
    eventually(lambda: not left_by(user), what="the end of every process of the user")


def left_by(user) -> list[str]:
    """The processes of a user, zombies aside."""
    listed = subprocess.run(["ps", "-u", user.pw_name, "-o", "stat=,pid=,args="], capture_output=True, text=True)
    return [line for line in listed.stdout.splitlines() if not line.startswith("Z")]
