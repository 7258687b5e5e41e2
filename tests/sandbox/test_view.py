"""The files of the host that a call sees without approval, and with approval."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import uuid
from pathlib import Path

import pytest

from haft import tool
from haft.contracts import BadConfig, Command, Grants, Limits
from haft.files import Root, machine_secrets
from haft.sandbox import Sandbox
from haft.service import ToolService

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is made of Linux"),
]

IS_ROOT = os.geteuid() == 0
only_root = pytest.mark.skipif(not IS_ROOT, reason="only root can make that on the host")
SYSTEM = {"bin", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "proc", "sbin", "sys", "usr"}
SCRATCH = {"home", "root", "run", "tmp", "var"}
ELSEWHERE = ("/opt", "/srv", "/mnt", "/var/lib")
FOREIGN = ("/var/lib/dpkg/status", "/var/lib/rpm", "/var/lib/pacman", "/var/log", "/var/cache")
"""What is on most machines for everyone to read, and is no part of the system itself."""


class Heard:
    def __init__(self):
        self.said = bytearray()

    def output(self, _stream, data):
        self.said += data

    def processes_ended(self, _children): ...


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


@pytest.fixture
def run(workspace, tmp_path):
    """Run a command in the sandbox of this workspace: its exit code, and what it said."""
    with contextlib.ExitStack() as stack, asyncio.Runner() as runner:
        sandboxes = {}

        def run(*argv, unasked=True, readable=(), keeps=(), **grants):
            path = os.environ["PATH"]
            if path not in sandboxes:
                find = Root(str(workspace)).open_directory
                sandboxes[path] = Sandbox(str(workspace), str(tmp_path / "state"), os.environ, find, Limits())
                stack.callback(sandboxes[path].close)
            heard = Heard()
            launcher = sandboxes[path].launcher("read-only", Grants(**grants), unasked=unasked)
            words = argv if len(argv) > 1 else ("bash", "-c", argv[0])
            end = runner.run(launcher.run(Command(words, readable=readable, keeps=keeps), heard))
            return end.code, heard.said.decode()

        if missing := runner.run(_ready(workspace, tmp_path)):
            pytest.skip(f"the sandbox cannot be built here: {missing}")
        yield run


async def _ready(workspace, tmp_path):
    sandbox = Sandbox(
        str(workspace), str(tmp_path / "state"), os.environ, Root(str(workspace)).open_directory, Limits()
    )
    try:
        return (await sandbox.ready()).missing()
    finally:
        sandbox.close()


@pytest.fixture
def elsewhere():
    """Directories of the host that are no home and no scratch place."""
    made = [Path(tempfile.mkdtemp(prefix="haft-test-", dir=place)) for place in ELSEWHERE if os.path.isdir(place)]
    for path in made:
        path.chmod(0o755)
        (path / "secret").write_text("a secret")
    yield made
    for path in made:
        shutil.rmtree(path)


def names(listing):
    return {name for name in listing.split("\n") if name}


def own_tops(workspace):
    places = (workspace, sys.prefix, sys.base_prefix, os.path.realpath(sys.executable), __file__)
    return {Path(place).parts[1] for place in map(str, places)}


def test_an_unasked_call_finds_nothing_at_the_top_but_the_system_and_its_own(run, workspace):
    code, said = run("ls -A /")
    assert code == 0
    assert names(said) <= SYSTEM | SCRATCH | own_tops(workspace)
    assert {"usr", "etc", "proc", "dev", "tmp"} <= names(said)
    assert names(run("ls -A /var")[1]) == {"tmp"}
    assert names(run("ls -A /", unasked=False)[1]) >= set(os.listdir("/")), (
        "the control: an approved call sees them all"
    )


def test_nothing_of_the_host_beside_the_system_is_there_for_an_unasked_call(run):
    place = next((path for path in FOREIGN if os.access(path, os.R_OK)), None)
    if place is None:
        pytest.skip("this machine has nothing there that everyone may read")
    assert run(f"test -e {place}", unasked=False)[0] == 0
    assert run(f"test -e {place}")[0] == 1


def test_what_the_kernel_tells_of_the_machine_is_no_more_than_its_processors(run):
    assert names(run("ls -A /sys /sys/devices/system")[1]) <= {
        "/sys:", "devices", "/sys/devices/system:", "cpu", "node"
    }  # fmt: skip
    assert run("nproc") == (0, f"{len(os.sched_getaffinity(0))}\n")


def test_what_is_there_cannot_be_written(run):
    for place in ("/", "/usr", "/etc", "/var", "/sys"):
        assert run(f"touch {place}/new")[0] == 1, place
    assert run("touch /tmp/new /var/tmp/new /dev/shm/new ~/new")[0] == 0


@only_root
def test_other_directories_of_the_host_are_seen_only_by_approved_calls(run, elsewhere):
    for path in elsewhere:
        assert run(f"cat {path}/secret", unasked=False) == (0, "a secret")
        code, said = run(f"cat {path}/secret")
        assert code == 1 and "No such file" in said
        assert run(f"test -e {path.parent.parent}/{path.parent.name}/{path.name}")[0] == 1


@only_root
def test_a_directory_made_after_the_first_call_is_not_seen(run):
    assert run("true")[0] == 0
    new = Path(f"/haft-test-{uuid.uuid4().hex[:8]}")
    try:
        new.mkdir()
        (new / "secret").write_text("a secret")
        for _ in range(2):
            assert run(f"test -e {new}")[0] == 1
        assert run(f"cat {new}/secret", unasked=False) == (0, "a secret")
    finally:
        shutil.rmtree(new)


@only_root
def test_what_was_granted_is_seen_and_nothing_beside_it(run, elsewhere):
    for path in elsewhere:
        (path / "granted").mkdir()
        (path / "granted/file").write_text("granted")
        assert run(f"cat {path}/granted/file", read=(f"{path}/granted",)) == (0, "granted")
        assert run(f"cat {path}/granted/file", readable=(f"{path}/granted",)) == (0, "granted")
        assert run(f"cat {path}/secret", read=(f"{path}/granted",))[0] == 1
    assert run(f"cat {path}/granted/file")[0] == 1, "a grant is for one call"


@only_root
def test_a_toolchain_is_seen_wherever_it_lies(run, elsewhere, monkeypatch):
    for path in elsewhere:
        for name in ("bin", "lib"):
            (path / name).mkdir()
        (path / "lib/words").write_text("from its library\n")
        program = path / "bin/speak"
        program.write_text('#!/bin/sh\ncat "$(dirname "$(dirname "$(readlink -f "$0")")")/lib/words"\n')
        program.chmod(0o755)
        with monkeypatch.context() as patch:
            patch.setenv("PATH", f"{path}/bin:{os.environ['PATH']}")
            assert run("speak") == (0, "from its library\n")
            assert run(f"cat {path}/secret")[0] == 1
    links = elsewhere[1] / "links"
    links.mkdir()
    (links / "say").symlink_to(program)
    monkeypatch.setenv("PATH", f"{links}:{os.environ['PATH']}")
    assert run("say") == (0, "from its library\n")


def test_python_as_it_runs_here_runs_there(run):
    assert run(sys.executable, "-c", "import haft, ssl, json; print('well')") == (0, "well\n")


def test_the_repository_of_a_worktree_is_seen(run, workspace, tmp_path):
    main = tmp_path / "main"
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.com"]
    subprocess.run([*git, "init", "-q", main], check=True)
    subprocess.run([*git, "-C", main, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    workspace.rmdir()
    subprocess.run([*git, "-C", main, "worktree", "add", "-q", workspace], check=True)
    code, said = run("git log --format=%s")
    assert (code, said) == (0, "first\n")


MOUNTED = """
import os, subprocess, sys, tempfile
place = tempfile.mkdtemp(prefix="haft-test-", dir="/etc")
file = tempfile.mkstemp(prefix="haft-test-", dir="/etc")[1]
try:
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    open(f"{place}/secret", "w").write("a secret")
    open(f"{place}/other", "w").write("another")
    subprocess.run(["mount", "--bind", f"{place}/other", file], check=True)
    sys.path.insert(0, os.path.dirname(sys.argv[1]))
    import test_view
    print(test_view.mounted(place, file, sys.argv[2]))
finally:
    subprocess.run(["umount", file]), subprocess.run(["umount", place])
    os.rmdir(place), os.remove(file)
"""


def mounted(place, file, base):
    """What calls see of something mounted in a directory of the system."""
    workspace = os.path.join(base, "workspace")
    sandbox = Sandbox(workspace, os.path.join(base, "state"), os.environ, Root(workspace).open_directory, Limits())

    async def seen(unasked, **grants):
        heard = Heard()
        launcher = sandbox.launcher("read-only", Grants(**grants), unasked=unasked)
        await launcher.run(Command(["bash", "-c", f"cat {place}/secret 2> /dev/null; echo -; cat {file}"]), heard)
        return heard.said.decode()

    async def all_of_it():
        return [await seen(unasked=False), await seen(unasked=True), await seen(unasked=True, read=(place,))]

    try:
        return json.dumps(asyncio.run(all_of_it()))
    finally:
        sandbox.close()


@only_root
def test_a_directory_mounted_in_the_system_is_no_part_of_it_and_a_file_is(workspace, tmp_path):
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", MOUNTED, __file__, tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["a secret-\nanother", "-\nanother", "a secret-\nanother"]


# ── through the whole service ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def foreign(request):
    """A file of the host that everyone may read, and that is no part of the system."""
    if IS_ROOT:
        return str(request.getfixturevalue("elsewhere")[0] / "secret")
    place = FOREIGN[0]
    if not os.access(place, os.R_OK):
        pytest.skip("this machine has nothing there that everyone may read")
    return place


def served(workspace, tmp_path, go, **options):
    async def main():
        async with ToolService.open(workspace, home=tmp_path / "state", installed=False, **options) as service:
            return await go(service)

    return asyncio.run(main())


@tool(readonly=True, isolated=True)
def peek(path: str) -> str:
    """Read a file."""
    return Path(path).read_text()[:20]


def test_a_tool_that_is_declared_to_only_read_sees_no_more(workspace, tmp_path, foreign):
    async def go(service):
        plain = await service.call("peek", {"path": foreign})
        return plain, await service.call("peek", {"path": foreign}, grants={"read": [foreign]})

    plain, granted = served(workspace, tmp_path, go, tools=[peek])
    assert plain.status == "error" and "No such file" in plain.error.message
    assert granted.result == Path(foreign).read_text()[:20]


def test_a_rule_that_allows_it_lets_it_see_the_host(workspace, tmp_path, foreign):
    async def go(service):
        return await service.call("peek", {"path": foreign})

    rules = [{"action": "allow", "tool": "peek"}]
    outcome = served(workspace, tmp_path, go, tools=[peek], settings={"permissions": rules})
    assert outcome.result == Path(foreign).read_text()[:20]


def test_an_executable_that_describes_itself_sees_no_more(workspace, tmp_path, foreign):
    folder = workspace / ".agents/tools"
    folder.mkdir(parents=True)
    executable = folder / "tell"
    executable.write_text(
        textwrap.dedent(f"""\
        #!/bin/sh
        if [ -e {foreign} ]; then what=seen; else what=unseen; fi
        echo "{{\\"name\\": \\"tell\\", \\"description\\": \\"$what\\"}}"
        """)
    )
    executable.chmod(0o755)

    async def go(service):
        return (await service.load(str(executable))).spec.description

    assert served(workspace, tmp_path, go) == "unseen"


@only_root
def test_a_tool_that_lies_beside_foreign_directories_sees_none_of_them(workspace, tmp_path, elsewhere):
    beside = elsewhere[0]
    executable = beside.parent / f"{beside.name}-tool"
    executable.write_text(
        f'#!/bin/sh\necho "{{\\"name\\": \\"tell\\", \\"description\\": \\"$(ls {beside.parent})\\"}}"\n'
    )
    executable.chmod(0o755)

    async def go(service):
        return (await service.load(str(executable))).spec.description

    try:
        assert served(workspace, tmp_path, go) == executable.name
    finally:
        executable.unlink()


def test_a_filter_that_git_runs_for_an_unasked_line_sees_no_more(workspace, tmp_path, foreign):
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.com", "-C", workspace]
    subprocess.run([*git, "init", "-q"], check=True)
    (workspace / "file").write_text("one\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    (workspace / ".gitattributes").write_text("file diff=evil\n")
    (workspace / "file").write_text("two\n")
    subprocess.run([*git, "config", "diff.evil.textconv", f"cat {foreign} #"], check=True)

    async def go(service):
        return await service.call("shell", {"command": "git diff"})

    outcome = served(workspace, tmp_path, go)
    assert outcome.decision.unasked and "No such file" in outcome.output
    assert outcome.error.code == "sandbox-denied"
    assert (
        f"`{foreign}` exists on this machine, but calls that run without approval do not see it"
        in outcome.error.message
    )
    assert f"`--read {foreign}`" in outcome.error.hint


def test_a_repository_that_begins_above_the_workspace_is_named_and_can_be_shown(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path / "whole"], check=True)
    (tmp_path / "whole/part").mkdir()

    async def go(service):
        grants = {"read": [str(tmp_path / "whole")]}
        line = {"command": "git status --short"}
        return await service.call("shell", line), await service.call("shell", line, grants=grants)

    hidden, shown = served(tmp_path / "whole/part", tmp_path, go)
    assert hidden.error.code == "sandbox-denied" and f"`--read {tmp_path}/whole`" in hidden.error.hint
    assert shown.status == "done"


def test_without_a_sandbox_lines_whose_safety_rests_on_it_ask(workspace, tmp_path):
    (workspace / "file").write_text("plain")

    async def go(service):
        lines = ("cat file", "ps aux", "df -h", "git status", "cat /srv/secret", "rg x /srv")
        return [await service.call("shell", {"command": line}) for line in lines]

    first, *others = served(workspace, tmp_path, go, settings={"sandbox.mode": "off"})
    assert (first.status, first.output) == ("done", "plain")
    assert {outcome.decision.by for outcome in others} == {"nobody"}


# ── a workspace that holds what is hidden or masked ──────────────────────────────────────────────────────────────────


async def yes(_request):
    return True


async def said_of_shadow(service):
    """What every way of reading it says: unasked, approved, above a layer, by the tools that read files."""
    lines = ("cat shadow", "cat shadow; true | tee /tmp/x", "cat ssl/private/* ssh/*_key; true | tee /tmp/x")
    shells = [await service.call("shell", {"command": line}) for line in lines]
    read = [await service.call("read_file", {"path": path}) for path in ("shadow", "/etc/shadow", "ssl/../shadow")]
    found = await service.call("search", {"pattern": "^root:.*:.*:.*:.*:.*:", "path": "shadow"})
    return shells, read, found


def test_a_workspace_that_holds_the_secrets_of_the_machine_shows_none_of_them(tmp_path):
    shells, read, found = served("/etc", tmp_path, said_of_shadow, approver=yes)
    for outcome in (*shells, *read, found):
        assert "root:" not in outcome.output and "PRIVATE KEY" not in outcome.output
    for outcome in read:
        assert outcome.status == "error"
        assert not IS_ROOT or "is a secret of the machine" in outcome.error.message


@only_root
def test_a_workspace_in_a_place_of_secrets_is_refused(tmp_path, monkeypatch):
    (tmp_path / "secrets/deep").mkdir(parents=True)
    monkeypatch.setattr(machine_secrets, "SECRETS", (str(tmp_path / "secrets"),))
    for place in ("secrets", "secrets/deep"):
        with pytest.raises(BadConfig, match="which is hidden"):
            ToolService.open(tmp_path / place, home=tmp_path / "state", installed=False)


def test_what_is_hidden_in_a_workspace_stays_hidden_under_a_layer(workspace, tmp_path, monkeypatch):
    home = workspace / "person"
    home.mkdir()
    (home / "secret").write_text("a secret")
    (workspace / "file").write_text("plain")
    monkeypatch.setenv("HOME", str(home))

    async def go(service):
        return await service.call("shell", {"command": "cat file person/secret; ls -A person; echo x > made"})

    outcome = served(workspace, tmp_path, go, approver=yes)
    assert outcome.output.startswith("plain") and "a secret" not in outcome.output
    assert (workspace / "made").exists()


@pytest.mark.parametrize("unasked", [True, False])
def test_a_program_keeps_files_in_its_own_directory_and_sees_nothing_beside_it(run, tmp_path, unasked):
    own = tmp_path / "state/server-files/own"
    for name in ("own", "other"):
        (tmp_path / "state/server-files" / name).mkdir(parents=True)
        (tmp_path / "state/server-files" / name / "secret").write_text(name)
    assert run(f"echo kept > {own}/kept; ls {own}/..", unasked=unasked, keeps=(str(own),)) == (0, "own\n")
    assert (own / "kept").read_text() == "kept\n"
    assert run(f"cat {own}/secret", unasked=unasked)[0] != 0
