"""Runs the world once for each kind of user, and gives its results to the tests.

All processes of a test run share the results: the first that wants them makes the world, and the others wait.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from checks import chosen

from ordinary_user import made_user, make_environment, public_directory, why_not

HERE = Path(__file__).parent
MISSING = 77
"""The exit code of a world that this machine cannot have."""
SECONDS = 900
PACKAGES = ("aiohttp", "paramiko", "pip")


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """The results in the world of a kind of user."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    known = {}

    def world(kind):
        if kind not in known:
            path = shared / f"world-{kind}.json"
            with open(shared / f"world-{kind}.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not path.exists():
                    path.write_text(json.dumps(_made(kind)))
                known[kind] = json.loads(path.read_text())
        if "missing" in known[kind]:
            pytest.skip(known[kind]["missing"])
        if "problem" in known[kind]:
            pytest.fail(known[kind]["problem"])
        return known[kind]

    return world


def _made(kind):
    if kind == "root" or os.geteuid() != 0:
        with public_directory() as place:
            return _results(kind, place, sys.executable, HERE, dict(os.environ), {})
    if (problem := why_not()) is not None:
        return {"missing": problem}
    with public_directory() as public, made_user(public) as user:
        if (problem := make_environment(public / "venv", *PACKAGES)) is not None:
            return {"missing": problem}
        shutil.copytree(HERE, public / "network", ignore=shutil.ignore_patterns("__pycache__"))
        place = public / "world"
        place.mkdir()
        os.chown(place, user.pw_uid, user.pw_gid)
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": user.pw_dir, "LANG": "C.UTF-8", "TMPDIR": user.pw_dir}
        options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "umask": 0o022}
        return _results(kind, place, public / "venv" / "bin" / "python", public / "network", env, options)


def _results(kind, place, python, folder, env, options):
    (place / "checks.json").write_text(json.dumps([check.to_json() for check in chosen(kind)]))
    with tempfile.TemporaryFile("w+") as said:
        try:
            finished = subprocess.run(
                [python, folder / "world.py", place], stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd="/",
                env=env, timeout=SECONDS, **options,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            finished = -1
        said.seek(0)
        words = said.read()[-3000:]
    if finished == MISSING:
        return {"missing": words.strip()}
    if finished:
        return {"problem": f"the world ended with {finished}:\n{words}"}
    results = {}
    for path in place.glob("results*.json"):
        results |= json.loads(path.read_text())
    facts = json.loads((place / "facts.json").read_text())
    seen = [json.loads(line) for line in (place / "seen.jsonl").read_text().splitlines()]
    return {"results": results, "seen": seen, **facts}


@pytest.fixture
def result(world):
    """What came of a check."""

    def result(kind, check):
        found = world(kind)["results"][check.name]
        if "missing" in found:
            pytest.skip(found["missing"])
        assert "failed" not in found, found["failed"]
        return found

    return result
