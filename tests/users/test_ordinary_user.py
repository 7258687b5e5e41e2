"""Where root runs the tests: those marked `every_user` once more, as an ordinary user made for the purpose."""

import os
import re
import shutil
import subprocess

import pytest

from ordinary_user import REPOSITORY, made_user, make_environment, public_directory, why_not
from sampling import IS_WHOLE, MORE, SEED

FEWEST = 80
PARALLEL = ("-n", "2", "--dist", "worksteal") if IS_WHOLE else ()
"""A sample is run by one process: a second one would collect all the tests again, while other tests need the
processors."""


@pytest.fixture
def public():
    with public_directory() as path:
        yield path


@pytest.fixture
def user(public):
    with made_user(public) as found:
        yield found


@pytest.mark.first
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_what_must_hold_for_every_user_holds_for_an_ordinary_one(public, user, eventually):
    venv, umask = public / "venv", os.umask(0o022)
    try:
        shutil.copytree(REPOSITORY / "tests", public / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(REPOSITORY / "pyproject.toml", public)
    finally:
        os.umask(umask)
    if (problem := make_environment(venv, "pytest", "pytest-xdist", "hypothesis")) is not None:
        pytest.skip(problem)
    # Only the files that have such tests: others may want more of the repository than its tests.
    files = [path for path in sorted(public.glob("tests/**/test_*.py")) if "every_user" in path.read_text()]
    finished = subprocess.run(
        [venv / "bin" / "python", "-m", "pytest", "-m", "every_user", "-q", *PARALLEL,
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
