"""Ways in which walls were beaten once, each by name."""

import asyncio
import os
import sys

import pytest

from haft.contracts import BadUsage, Grants, Limits
from haft.files import Root
from haft.sandbox import Sandbox
from haft.sandbox import sandbox as sandbox_module
from haft.sandbox.protected import protected_names
from haft.service import ToolService

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="walls need Linux"),
]

SWAP = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
until = time.time() + float(sys.argv[3])
one, two = (os.fsencode(name) for name in sys.argv[1:3])
print("ready", flush=True)
while time.time() < until:
    libc.renameat2(-100, one, -100, two, 2)
    time.sleep(0.0003)
"""


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


@pytest.fixture
def with_service(tmp_path, workspace):
    """Run something with a service whose every call is approved."""

    def with_service(go, **limits):
        async def yes(_request):
            return True

        async def main():
            settings = {f"limits.{name}": amount for name, amount in limits.items()}
            async with ToolService.open(
                workspace, approver=yes, home=tmp_path / "home", installed=False, settings=settings
            ) as service:
                return await go(service)

        return asyncio.run(main())

    return with_service


@pytest.fixture
def shell(with_service):
    """One command behind the walls, and its outcome."""

    def shell(command, *, limits=None, **options):
        async def go(service):
            return await service.call("shell", {"command": command}, **options)

        return with_service(go, **(limits or {}))

    return shell


async def heard(run, word):
    async for event in run:
        if word in event.text:
            return


def test_what_runs_haft_itself_is_not_written_though_it_lies_in_the_workspace(shell, workspace, monkeypatch):
    own = workspace / ".venv"
    (own / "lib").mkdir(parents=True)
    (own / "lib/code.py").write_text("pass")
    monkeypatch.setattr(sandbox_module, "OWN_PLACES", (str(own),))
    assert shell("echo evil >> .venv/lib/code.py").error.code == "walled"
    assert shell("mv .venv away").status == "error"
    assert (own / "lib/code.py").read_text() == "pass"


@pytest.mark.parametrize("grant", ["way", "dir/*", "way/**"])
def test_a_grant_does_not_follow_a_link_that_a_call_may_have_made(grant, shell, workspace, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (workspace / "dir").mkdir()
    (workspace / "way").symlink_to(outside)
    (workspace / "dir/way").symlink_to(outside)
    outcome = shell("echo x > way/new; true", grants={"write": [grant]})
    assert outcome.status == "error" and f"leads to {outside}" in outcome.error.message
    assert not (outside / "new").exists()


def test_a_granted_place_that_is_swapped_before_it_is_bound_is_not_shown(workspace, tmp_path):
    (tmp_path / "granted").mkdir()
    sandbox = Sandbox(str(workspace), str(tmp_path / "home"), os.environ, Root(str(workspace)).open_directory, Limits())
    paths = sandbox._granted_paths((str(tmp_path / "granted"),), "write")
    assert paths == [str(tmp_path / "granted")]
    for path in (str(tmp_path / "home"), str(tmp_path / "nothing"), "/proc/self", "/dev/shm", sandbox_module.OWN_CODE):
        os.makedirs(tmp_path / "home", exist_ok=True)
        with pytest.raises(BadUsage):
            sandbox._granted_paths((path,), "write")


@pytest.mark.parametrize("kind", ["-U", "-Ur", "-i", "-n", "-m", "-p", "-u", "-C"])
def test_a_call_makes_no_namespaces_of_its_own(kind, shell):
    outcome = shell(f"unshare {kind} true")
    assert outcome.status == "error" and "not permitted" in outcome.output


def test_threads_and_processes_are_made_all_the_same(shell):
    code = "import threading, subprocess; t = threading.Thread(target=print, args=('thread',)); t.start(); t.join(); "
    code += "subprocess.run(['echo', 'process'], check=True)"
    assert shell(f'{sys.executable} -u -c "{code}"').output.split() == ["thread", "process"]


def test_the_init_of_a_call_keeps_its_own_limits(shell):
    outcome = shell("prlimit --pid 1 --nofile=3:3 || echo refused; ulimit -n 100; ulimit -n")
    assert "refused" in outcome.output and outcome.output.split()[-1] == "100"


def test_a_protected_name_that_is_swapped_for_a_link_covers_nothing_else(with_service, workspace):
    (workspace / ".zed").mkdir()
    (workspace / ".zed/passwd").write_text("evil")
    (workspace / "link").symlink_to("/etc")
    (workspace / "swap.py").write_text(SWAP)

    async def go(service):
        # Two of the same workspace: the one that swaps began while the name was not there.
        (workspace / ".zed").rename(workspace / "other")
        swapping = service.call("shell", {"command": f"{sys.executable} swap.py other link 6"})
        await heard(swapping, "ready")
        (workspace / "other").rename(workspace / ".zed") if (workspace / "other").is_dir() else None
        swapping.cancel()
        await swapping
        names = [".zed", "link"] if (workspace / ".zed").exists() else ["other", "link"]
        again = service.call("shell", {"command": f"{sys.executable} swap.py {names[0]} {names[1]} 4"})
        outcomes = [await service.call("shell", {"command": "head -1 /etc/passwd"}) for _ in range(40)]
        again.cancel()
        await again
        return outcomes

    for outcome in with_service(go):
        assert "evil" not in outcome.output
        assert outcome.status == "done" or "walls" in outcome.error.message, outcome.error


def test_a_directory_that_is_swapped_under_one_call_ends_no_other(with_service, workspace):
    (workspace / "one").mkdir()
    (workspace / "two").mkdir()
    (workspace / "swap.py").write_text(SWAP)

    async def go(service):
        innocent = service.call("shell", {"command": "echo ready; sleep 2; echo whole"})
        await heard(innocent, "ready")
        swapping = service.call("shell", {"command": f"{sys.executable} swap.py one two 2"})
        await heard(swapping, "ready")
        for _ in range(20):
            outcome = await service.call("shell", {"command": "true"}, cwd="one")
            assert outcome.status == "done" or "replaced" in outcome.error.message, outcome.error
        return await innocent

    assert with_service(go).output == "ready\nwhole\n"


def test_files_without_a_name_count_as_written(shell):
    code = (
        "import os, time\n"
        "held = []\n"
        "for n in range(8):\n"
        "    f = open('x', 'w+b'); os.unlink('x'); os.posix_fallocate(f.fileno(), 0, 40_000_000); held.append(f)\n"
        "time.sleep(20)\n"
    )
    outcome = shell(f'{sys.executable} -c "{code}"', limits={"max_written_bytes": 100_000_000})
    assert (outcome.error.code, outcome.limits.hit) == ("limit-exceeded", "max_written_bytes"), outcome.error


def test_what_is_left_in_caches_counts_as_written(shell):
    outcome = shell("fallocate -l 300M ~/.cache/big; sleep 20", limits={"max_written_bytes": 100_000_000})
    assert (outcome.error.code, outcome.limits.hit) == ("limit-exceeded", "max_written_bytes"), outcome.error


def test_a_call_that_is_over_before_anyone_looks_is_still_held_to_its_limits(shell, workspace):
    outcome = shell("head -c 5000000 /dev/zero > big; sync big", limits={"max_written_bytes": 1_000_000})
    assert (outcome.error.code, outcome.limits.hit) == ("limit-exceeded", "max_written_bytes")


# Which files are protected.


def repository(place, *names):
    for name in names:
        (place / name).mkdir(parents=True)
        (place / name / "HEAD").touch()


def test_hooks_of_nested_submodules_are_protected(workspace):
    repository(workspace, ".git", ".git/modules/libs/foo", ".git/modules/libs/foo/modules/bar")
    names = protected_names(str(workspace))
    assert ".git/modules/libs/foo/hooks" in names
    assert ".git/modules/libs/foo/modules/bar/config" in names


def test_where_decoys_hide_a_submodule_all_are_closed(workspace):
    repository(workspace, ".git", ".git/modules/real")
    for number in range(600):
        (workspace / f".git/modules/{number}").mkdir()
    assert ".git/modules" in protected_names(str(workspace))


def test_hooks_that_the_configuration_puts_elsewhere_are_protected(workspace, shell):
    repository(workspace, ".git")
    (workspace / ".git/config").write_text("[core]\n\thooksPath = .husky/_\n")
    (workspace / ".husky/_").mkdir(parents=True)
    assert ".husky/_" in protected_names(str(workspace))
    assert shell("touch .husky/_/pre-commit").error.code == "walled"


def test_a_repository_behind_a_link_is_protected_too(workspace, shell):
    repository(workspace, "real")
    (workspace / "real/hooks").mkdir()
    (workspace / ".git").symlink_to("real")
    assert shell("touch .git/hooks/pre-commit").status == "error"
    assert not (workspace / "real/hooks/pre-commit").exists()


def test_a_pipe_as_configuration_is_not_waited_for(workspace, shell):
    repository(workspace, ".git")
    os.mkfifo(workspace / ".git/config")
    assert shell("echo fine").output == "fine\n"


def test_worktrees_say_where_their_repository_is_and_that_is_held(workspace):
    (workspace / ".git/worktrees/w").mkdir(parents=True)
    assert ".git/worktrees/w/commondir" in protected_names(str(workspace))


def test_a_grant_that_cannot_be_is_said(shell):
    for grants in ({"read": ["/nowhere/at/all"]}, {"path": ["relative"]}, {"write": ["/proc/self"]}):
        outcome = shell("true", grants=grants)
        assert outcome.status == "error" and "cannot be" in outcome.error.message, grants


def test_a_scratch_place_can_be_granted_as_a_whole(shell, tmp_path):
    place = tmp_path / "x"
    outcome = shell(f"touch {place}", grants=Grants(write=(str(tmp_path),)))
    assert outcome.status == "error"  # it holds the state home
    base = tmp_path / "free"
    base.mkdir()
    assert shell(f"touch {base}/new", grants=Grants(write=(str(base),))).status == "done"
    assert (base / "new").exists()
