"""The package as people get it: built, installed in clean environments by each common program, and used there."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import NamedTuple

import pytest

from sampling import IS_WHOLE, some

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements.lock"
PROGRAMS = Path(sys.executable).parent
pytestmark = pytest.mark.first
"""All of them one after another, by one process of a test run: each process that runs one builds the distributions."""

PART_OF_THE_TESTS = ("tests/contracts/test_secrets.py", "tests/test_lazy.py", "tests/test_values.py")


class Built(NamedTuple):
    wheel: Path
    sdist: Path


def run(*words, cwd=None, **more):
    """What it prints; a failure shows everything it said. The environment is that of the tests, so that the package
    index of this machine is known, less what pytest and the checkout add to it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON", "HAFT_"))}
    env |= {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", **{name: str(value) for name, value in more.items()}}
    done = subprocess.run([*map(str, words)], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def install(distribution, place):
    """A new environment with the distribution, and versions as locked; its `haft`."""
    run("uv", "venv", "-q", "--python", sys.executable, place)
    run("uv", "pip", "install", "-q", "--python", place / "bin" / "python", "-c", LOCK, distribution)
    return place / "bin" / "haft"


def set_up(checkout):
    """What `make setup` does, with the packages that the tour and a few tests need. Whoever runs `make test` runs
    `make setup` too."""
    run("uv", "venv", "-q", "--python", sys.executable, checkout / ".venv")
    own = [word for folder in (checkout, checkout / "cdd") for word in ("--editable", folder)]
    packages = ["-c", LOCK, *own, "uv", "pytest", "pytest-xdist", "hypothesis"]
    run("uv", "pip", "install", "-q", "--python", checkout / ".venv" / "bin" / "python", *packages)
    (checkout / ".venv" / ".installed").touch()


def use(haft, place):
    """List, use and undo, in a workspace of its own, with a program (and its first words) that was installed."""
    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    moved = {"HAFT_HOME": place / "home", "XDG_CONFIG_HOME": place / "config"}
    assert "write_file" in run(*haft, "tools", "list", cwd=workspace, **moved)
    command = "echo written > made.txt"
    run(*haft, "tools", "use", "shell", "--command", command, "--approve", cwd=workspace, **moved)
    assert (workspace / "made.txt").read_text() == "written\n"
    run(*haft, "undo", cwd=workspace, **moved)
    assert not [*workspace.iterdir()]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel and sdist; as `uv build` does, the wheel is made from the sdist, so that nothing is missing there."""
    place = tmp_path_factory.mktemp("dist")
    run("uv", "build", "-q", "--no-build-isolation", "--out-dir", place, ROOT)
    (wheel,), (sdist,) = place.glob("*.whl"), place.glob("*.tar.gz")
    return Built(wheel, sdist)


@pytest.fixture(scope="module")
def metadata(built):
    with zipfile.ZipFile(built.wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(path))


@pytest.mark.parametrize("kind", some(Built._fields, 1, "distributions"))
def test_an_installed_distribution_lists_uses_and_undoes(built, kind, outside_tmp):
    haft = install(getattr(built, kind), outside_tmp / "venv")
    use([haft], outside_tmp / "used")


def test_uv_runs_it_without_installing(built, outside_tmp):
    use(["uv", "tool", "run", "-q", "--from", built.wheel, "-c", LOCK, "haft"], outside_tmp / "used")


def test_pipx_installs_it(built, outside_tmp):
    places = {f"PIPX_{name}": outside_tmp / name.lower() for name in ("HOME", "BIN_DIR", "MAN_DIR", "COMPLETION_DIR")}
    run("pipx", "install", "-q", "--python", sys.executable, f"--pip-args=-c {LOCK}", built.wheel, **places)
    use([outside_tmp / "bin_dir" / "haft"], outside_tmp / "used")


def test_the_unpacked_sdist_runs_the_tour_and_tests(built, outside_tmp):
    with tarfile.open(built.sdist) as archive:
        archive.extractall(outside_tmp, filter="data")
    (checkout,) = outside_tmp.iterdir()
    if not IS_WHOLE:
        set_up(checkout)
    toured = run("make", f"PYTHON={sys.executable}", "tour", cwd=checkout, MAKEFLAGS="")
    assert "That was haft" in toured
    tested = run(".venv/bin/python", "-m", "pytest", "-q", *PART_OF_THE_TESTS, cwd=checkout)
    assert re.search(r"\d+ passed", tested) and "failed" not in tested


def test_links_and_pictures_lead_somewhere_on_the_page_of_an_index(metadata):
    text = metadata.get_payload()
    assert text.startswith("# haft")
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", text)
    assert len(links) > 20
    version = re.escape(metadata["Version"])
    for picture, target in links:
        host = r"raw\.githubusercontent\.com/[\w-]+/haft" if picture else r"github\.com/[\w-]+/haft/blob"
        found = re.fullmatch(rf"https://{host}/v{version}/([^#]+)(#.*)?", target)
        assert found and (ROOT / found[1]).exists(), target


def test_the_metadata_says_what_an_index_shows(metadata):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    urls = dict(each.split(", ", 1) for each in metadata.get_all("Project-URL"))
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= {*urls}
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {*project["classifiers"]} == {*metadata.get_all("Classifier")}


def test_nothing_of_this_machine_is_in_the_distributions(built):
    with zipfile.ZipFile(built.wheel) as archive:
        names = archive.namelist()
    assert "haft/py.typed" in names
    assert not [name for name in names if name.endswith(".pyc") or not name.startswith(("haft/", "haft-"))]
    with tarfile.open(built.sdist) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"Makefile", "requirements.lock", "scripts/tour.py", "CONTRIBUTING.md", ".ci/run"} <= inside
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:  # in a checkout; the files of the tests that run meanwhile do not count
        assert inside - {"PKG-INFO", *listed.stdout.split("\0")} == set()
