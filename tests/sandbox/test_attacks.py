"""Ways in which sandboxes were beaten once, each by name."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

from haft.contracts import BadUsage, Command, Grants, Limits
from haft.files import Root
from haft.sandbox import Sandbox, helper_requests
from haft.sandbox.grant_resolver import OWN_CODE
from haft.sandbox.protected import protected_names
from haft.service import ToolService

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="sandbox need Linux"),
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
    """One command in the sandbox, and its outcome."""

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
    monkeypatch.setattr(helper_requests, "OWN_PLACES", (str(own),))
    assert shell("echo evil >> .venv/lib/code.py").error.code == "sandbox-denied"
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


def test_what_can_never_be_granted_is_refused(workspace, tmp_path):
    sandbox = Sandbox(str(workspace), str(tmp_path / "home"), os.environ, Root(str(workspace)).open_directory, Limits())
    os.makedirs(tmp_path / "home")
    for path in (tmp_path / "home", tmp_path / "nothing", "/proc/self", "/dev/shm", OWN_CODE, "/no/*"):
        with pytest.raises(BadUsage):
            sandbox._grant_resolver.paths((str(path),), "write")


def test_a_granted_place_that_another_call_swaps_for_a_link_opens_nothing_else(with_service, workspace, tmp_path):
    shared, victim = tmp_path / "shared", tmp_path / "victim"
    (shared / "sub").mkdir(parents=True)
    victim.mkdir()
    (shared / "link").symlink_to(victim)
    (workspace / "swap.py").write_text(SWAP)

    async def go(service):
        command = f"cd {shared} && {sys.executable} {workspace}/swap.py sub link 6"
        swapping = service.call("shell", {"command": command}, grants={"write": [str(shared)]})
        await heard(swapping, "ready")
        for _ in range(60):
            granted = {"write": [str(shared / "sub")]}
            await service.call("shell", {"command": f"touch {victim}/evil; true"}, grants=granted)
        swapping.cancel()
        await swapping

    with_service(go)
    assert not (victim / "evil").exists()


@pytest.mark.parametrize("grant", ["planted", "*"])
def test_a_link_that_a_call_planted_where_it_might_write_is_not_granted(grant, shell, tmp_path):
    shared, victim = tmp_path / "shared", tmp_path / "victim"
    shared.mkdir()
    victim.mkdir()
    assert shell(f"ln -s {victim} {shared}/planted", grants={"write": [str(shared)]}).status == "done"
    outcome = shell(f"touch {victim}/evil; true", grants={"write": [f"{shared}/{grant}"]})
    assert f"leads to {victim}" in outcome.error.message
    assert not (victim / "evil").exists()


def test_what_was_approved_is_what_is_granted(tmp_path, workspace):
    granted, victim = tmp_path / "granted", tmp_path / "victim"
    granted.mkdir()
    victim.mkdir()

    async def swaps(request):
        assert str(granted) in request.sandbox.writable
        granted.rename(tmp_path / "away")
        granted.mkdir()
        return True

    async def main():
        async with ToolService.open(workspace, approver=swaps, home=tmp_path / "home", installed=False) as service:
            return await service.call("shell", {"command": f"touch {granted}/x"}, grants={"write": [str(granted)]})

    outcome = asyncio.run(main())
    assert outcome.error.code == "conflict" and not (granted / "x").exists()


def test_a_directory_for_path_is_no_link_of_the_workspace(shell, workspace, tmp_path):
    (tmp_path / "secret").mkdir()
    (workspace / "tools").symlink_to(tmp_path / "secret")
    assert "leads to" in shell("true", grants={"path": [str(workspace / "tools")]}).error.message


def test_the_name_of_a_workspace_is_no_pattern(tmp_path):
    own, other = tmp_path / "w[1]", tmp_path / "w1"
    for place in (own, other):
        (place / ".git").mkdir(parents=True)
    sandbox = Sandbox(str(own), str(tmp_path / "home"), os.environ, Root(str(own)).open_directory, Limits())
    assert sandbox._grant_resolver.paths((".git",), "write") == [str(own / ".git")]
    assert sandbox._grant_resolver.paths((".g*",), "write") == [str(own / ".git")]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount on the host")
def test_a_mount_in_the_workspace_whose_parent_was_moved_opens_nothing_else(shell, with_service, workspace, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (workspace / "a/mounted").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", workspace / "a/mounted"], check=True)
    try:

        async def go(service):
            first = await service.call(
                "shell", {"command": "echo x > a/mounted/x && mv a b && mkdir a && ln -s / a/mounted"}
            )
            second = await service.call(
                "shell", {"command": "touch /opt/.haft-test-evil || touch /srv/.haft-test-evil"}
            )
            third = await service.call("shell", {"command": "echo fine > fine"})
            return first, second, third

        first, second, third = with_service(go)
        assert first.status == "done" and second.status == "error" and third.status == "done"
        assert not os.path.exists("/opt/.haft-test-evil") and not os.path.exists("/srv/.haft-test-evil")
    finally:
        subprocess.run(["umount", "-l", workspace / "b/mounted"], check=False)


def test_a_pipe_that_looks_like_a_script_is_not_waited_for(shell):
    outcome = shell('mkfifo p; echo "$PWD/p: not found" >&2; exit 1')
    assert outcome.error.code == "tool-failed"


@pytest.mark.parametrize("value", ["a\0b", "~a\0b", "a/" * 1500, "x" * 100_000])
def test_a_strange_place_for_hooks_breaks_no_later_call(value, shell, workspace):
    (workspace / ".git").mkdir()
    (workspace / ".git/config").write_text(f"[core]\n\thooksPath = {value}\n")
    assert shell("echo fine").output == "fine\n"


def test_hooks_are_found_as_git_finds_them(workspace):
    for value in (".hk ; comment", ".hk # c", '".hk"', ".h\\\nk", '.h"k"'):
        (workspace / ".git").mkdir(exist_ok=True)
        (workspace / ".git/config").write_text(f"[core]\n\thooksPath = {value}\n")
        assert ".hk" in protected_names(str(workspace)), value


def test_a_submodule_with_the_name_of_an_inside_is_protected(workspace):
    repository(workspace, ".git", ".git/modules/services/logs")
    assert ".git/modules/services/logs/hooks" in protected_names(str(workspace))


def test_a_workspace_that_is_made_anew_is_found_and_old_helpers_end(tmp_path):
    """In a place that is not hidden too, where no mount stands over it."""
    base = "/opt" if os.access("/opt", os.W_OK) else str(tmp_path)
    place = tempfile.mkdtemp(dir=base)
    workspace = os.path.join(place, "workspace")
    os.mkdir(workspace)
    sandbox = Sandbox(workspace, str(tmp_path / "home"), os.environ, Root(workspace).open_directory, Limits())

    class Sink:
        def output(self, _stream, _data): ...
        def processes_ended(self, _children): ...

    async def go():
        for n in range(4):
            end = await sandbox.launcher("workspace").run(Command(["touch", f"made-{n}"]), Sink())
            assert end.code == 0 and os.listdir(workspace) == [f"made-{n}"]
            shutil.rmtree(workspace)
            os.mkdir(workspace)
        assert sandbox._retired == []
        sandbox.close()

    try:
        asyncio.run(go())
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_a_workspace_that_is_made_anew_does_not_get_the_inode_number_by_which_the_old_one_is_known(tmp_path):
    base = "/opt" if os.access("/opt", os.W_OK) else str(tmp_path)
    place = tempfile.mkdtemp(dir=base)
    workspace = os.path.join(place, "workspace")
    os.mkdir(workspace)
    sandbox = Sandbox(workspace, str(tmp_path / "home"), os.environ, Root(workspace).open_directory, Limits())

    class Sink:
        def output(self, _stream, _data): ...
        def ended(self, _children): ...

    def make_anew(number, tries=1000):
        """With the same number, if the file system gives it again: it gives the smallest that is free."""
        for turn in range(tries):
            os.mkdir(workspace)
            if os.stat(workspace).st_ino == number:
                return
            os.rename(workspace, os.path.join(place, f"{number}-{turn}"))
        os.mkdir(workspace)

    async def go():
        for n in range(2):
            end = await sandbox.launcher("workspace").run(Command(["touch", f"made-{n}"]), Sink())
            assert end.code == 0 and os.listdir(workspace) == [f"made-{n}"]
            number = os.stat(workspace).st_ino
            shutil.rmtree(workspace)
            make_anew(number)
        sandbox.close()

    try:
        asyncio.run(go())
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_an_innocent_call_is_not_blamed_for_what_others_write(with_service):
    async def go(service):
        writers = [service.call("shell", {"command": f"fallocate -l 70M {n}; sleep 1"}) for n in range(2)]
        innocent = service.call("shell", {"command": "sleep 2"})
        for writer in writers:
            await writer
        return await innocent

    assert with_service(go, max_written_bytes=100_000_000).status == "done"


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
    assert {"refused", "100"} <= set(outcome.output.split())


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
        assert outcome.status == "done" or "sandbox" in outcome.error.message, outcome.error


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
    # More than other tests remove at the same time: haft looks into the caches if the file system has grown.
    outcome = shell("fallocate -l 900M ~/.cache/big; sleep 20", limits={"max_written_bytes": 100_000_000})
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
    assert shell("touch .husky/_/pre-commit").error.code == "sandbox-denied"


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
