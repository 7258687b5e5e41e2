"""What the quick commands load: listing tools must stay cheaper than the libraries that calling them needs."""

import os
import subprocess
import sys

import pytest

HEAVY = ("pydantic", "rich", "jsonschema_rs", "asyncio", "sqlite3", "subprocess", "orjson", "importlib.metadata")


@pytest.mark.parametrize(
    "words",
    [["tools", "list"], ["tools", "list", "--json"], ["tools", "show", "shell"], ["--help"], ["tools", "--help"]],
)
def test_quick_commands_load_nothing_heavy(words):
    program = (
        "import sys\nfrom haft.surfaces.cli.main import run\n"
        f"run({words!r})\nprint([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == "[]"


def test_configured_mcp_servers_are_listed_without_loading_what_calls_them(tmp_path):
    own = tmp_path / "config" / "haft" / "haft.toml"
    own.parent.mkdir(parents=True)
    mark = tmp_path / "started"
    for number in range(10):
        with own.open("a") as file:
            file.write(f'[providers.server{number}]\ncommand = "touch"\nargs = ["{mark}"]\n')
    program = (
        "import sys\nfrom haft.surfaces.cli.main import run\nrun(['tools', 'list', '--all'])\n"
        f"print([name for name in {(*HEAVY, 'mcp', 'shutil')!r} if name in sys.modules], file=sys.stderr)"
    )
    env = os.environ | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HAFT_HOME": str(tmp_path / "state")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=env)
    assert "mcp__server9" in done.stdout and done.stderr.splitlines()[-1] == "[]"
    assert not mark.exists()


def test_the_face_is_small_lazy_and_complete():
    program = (
        "import sys\nimport haft\n"
        "assert not [n for n in sys.modules if n.startswith('haft.') and n != 'haft.version']\n"
        "assert len(haft.__all__) <= 28\n"
        "for name in haft.__all__: assert getattr(haft, name) is not None, name\n"
        "assert set(haft.__all__) <= set(dir(haft))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_entry_point_group_is_the_one_that_is_read():
    from haft.sources.python.discover import GROUP
    from haft.toolsets.entry_points import INSTALLED_GROUP

    assert INSTALLED_GROUP == GROUP


def test_tools_of_installed_packages_are_found_by_looking_at_their_files(haft, tmp_path):
    site = tmp_path / "site"
    package = site / "shouting-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[haft.tools]\nshout = shouting:shout\nlost = shouting:nothing\n")
    (site / "shouting.py").write_text('def shout(text: str) -> str:\n    """Say it loud."""\n    return text.upper()\n')
    listed = haft("tools", "list", PYTHONPATH=str(site))
    assert "shout           python   Say it loud." in listed.out
    assert "1 more cannot be called" in listed.err
    everything = haft("tools", "list", "--all", "--json", PYTHONPATH=str(site)).json
    assert [one["state"] for one in everything if one["kind"] == "python"] == ["broken", "ready"]
    assert haft("doctor", PYTHONPATH=str(site)).code == 1
    said = haft("tools", "use", "shout", "--text", "hi", "--approve", "--only", "output", PYTHONPATH=str(site))
    assert said.out == "HI"
