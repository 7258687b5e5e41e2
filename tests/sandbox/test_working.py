"""Programs that must work in the sandbox, without or with a grant.

Through the whole service, as whoever runs the tests; `test_ordinary_user` runs it once more as an ordinary user.
"""

import asyncio
import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from haft.service import ToolService
from sampling import SELDOM

sys.path.insert(0, str(Path(__file__).parent))
import registries

pytestmark = [
    pytest.mark.every_user(share=SELDOM),
    pytest.mark.skipif(sys.platform != "linux", reason="sandbox need Linux"),
]

PYTHON = sys.executable


async def yes(_request) -> bool:
    return True


@pytest.fixture
def person(tmp_path, monkeypatch):
    """Someone with a home of their own."""
    home = tmp_path / "person"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ann Example\n\temail = ann@example.org\n"
        "[init]\n\tdefaultBranch = trunk\n[core]\n\teditor = x\n"
    )
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def workspace(tmp_path):
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def opened(tmp_path):
    """Opens services, all with the same state home."""

    @contextlib.asynccontextmanager
    async def opened(workspace, **options):
        async with ToolService.open(
            workspace, approver=yes, home=tmp_path / "home", installed=False, **options
        ) as service:
            yield Calls(service)

    return opened


class Calls:
    def __init__(self, service):
        self.service = service

    def shell(self, command, grants=None, cwd=None, **env):
        arguments = {"command": command, "env": env, **({} if cwd is None else {"cwd": cwd})}
        return self.service.call("shell", arguments, grants=grants)

    async def works(self, command, *words, **more):
        outcome = await self.shell(command, *words, **more)
        assert outcome.status == "done", f"{command}: {outcome.error}\n{outcome.output}"
        return outcome.output

    async def is_confined(self, command, *words, **more):
        outcome = await self.shell(command, *words, **more)
        assert (outcome.status, outcome.error.code) == ("error", "sandbox-denied"), f"{outcome.error}\n{outcome.output}"
        return outcome.error


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 90))


def python(code):
    quoted = textwrap.dedent(code).strip().replace("'", "'\\''")
    return f"{PYTHON} -S -c '{quoted}'"


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


# git.


def git(workspace, *words):
    return subprocess.run(["git", *words], cwd=workspace, check=True, capture_output=True, text=True).stdout


def test_a_repository_is_worked_in(person, workspace, opened):
    git(workspace, "init", "-q")
    (workspace / "a").write_text("one\n")
    git(workspace, "add", "a")
    git(workspace, "commit", "-qm", "first")

    async def scenario():
        async with opened(workspace) as calls:
            await calls.works("echo two >> a && git commit -qam second")
            await calls.works(
                "git branch topic && git switch -q topic && echo b > b && git add b && git commit -qm third"
            )
            await calls.works("git switch -q trunk && echo c > c && git add c && git commit -qm fourth")
            await calls.works("git merge -q --no-edit topic")
            await calls.works("echo three >> a && git stash -q && git stash pop -q")
            await calls.works("git checkout -q -- a && git tag v1 && git rev-parse HEAD")
            await calls.works("git switch -q -c other && git rebase -q topic && git switch -q trunk")
            await calls.works("git gc -q && git fsck && git worktree list")
            assert await calls.works("git status --short") == ""

    run(scenario())
    log = git(workspace, "log", "--format=%an <%ae> %s", "trunk").splitlines()
    assert log[-1] == "Ann Example <ann@example.org> first"
    assert {"Ann Example <ann@example.org> second", "Ann Example <ann@example.org> fourth"} < set(log)
    assert (workspace / "b").exists() and (workspace / "c").exists()
    assert git(workspace, "status", "--short") == ""


def test_a_repository_is_made_and_then_protected(person, workspace, opened):
    async def scenario():
        async with opened(workspace) as calls:
            await calls.works("git init -q && echo a > a && git add a && git commit -qm first && git branch -q topic")
            assert await calls.works("git branch --show-current") == "trunk\n"
            await calls.is_confined("git config core.fsmonitor ./evil")

    run(scenario())
    assert "evil" not in (workspace / ".git" / "config").read_text()
    assert git(workspace, "log", "--format=%an").split("\n")[0] == "Ann Example"


def test_the_configuration_of_a_repository_is_written_where_granted(person, workspace, opened):
    git(workspace, "init", "-q")

    async def scenario():
        async with opened(workspace) as calls:
            await calls.works("git config user.name Ann")
            refused = await calls.is_confined("git config core.pager evil")
            assert ".git/config" in refused.hint
            await calls.works("git config core.pager less", {"write": [".git/config"]})
            assert await calls.works("git config core.pager") == "less\n"
            await calls.is_confined("git config core.pager evil")
            refused = await calls.is_confined("echo evil > .git/hooks/pre-commit")
            assert ".git/hooks" in refused.hint
            await calls.works("echo true > .git/hooks/pre-commit", {"write": [".git/hooks"]})

    run(scenario())
    assert git(workspace, "config", "user.name") == "Ann\n"
    assert git(workspace, "config", "core.pager") == "less\n"


def test_only_the_author_is_taken_from_the_persons_own_configuration(person, workspace, opened):
    async def scenario():
        async with opened(workspace) as calls:
            known = await calls.works("cat ~/.gitconfig; echo; git config --global --list || true")
            assert "Ann Example" in known
            assert "editor" not in known

    run(scenario())


# Packages, from a registry on the host's loopback.


def _pip() -> str | None:
    for candidate in (PYTHON, "/usr/bin/python3"):
        if candidate == PYTHON:
            found = importlib.util.find_spec("pip") is not None
        else:
            found = (
                os.access(candidate, os.X_OK)
                and not subprocess.run(
                    [candidate, "-m", "pip", "--version"], capture_output=True, check=False
                ).returncode
            )
        if found:
            return f"{candidate} -m pip"
    return None


def _uv() -> str | None:
    beside = os.path.join(os.path.dirname(sys.executable), "uv")
    return beside if os.access(beside, os.X_OK) else shutil.which("uv")


def install_python_package(workspace, opened, command, **env):
    async def scenario(base):
        async with opened(workspace) as calls:
            env.update(PIP_INDEX_URL=f"{base}/simple", UV_DEFAULT_INDEX=f"{base}/simple")
            refused = await calls.is_confined(command, **env)
            assert "network" in refused.hint
            assert not (workspace / "deps").exists() or not list((workspace / "deps").glob("*.py"))
            await calls.works(command, {"network": True}, **env)
            shown = await calls.works(f"PYTHONPATH=deps {PYTHON} -c 'import {registries.NAME}'")
            assert shown == "it works\n"

    with registries.python_index() as base:
        run(scenario(base))


@pytest.mark.skipif(_pip() is None, reason="pip is not on this machine")
def test_pip_installs_with_network_only(workspace, opened):
    command = f"{_pip()} install --target deps {registries.NAME}"
    install_python_package(workspace, opened, command, PIP_RETRIES="1", PIP_DISABLE_PIP_VERSION_CHECK="1")


@pytest.mark.skipif(_uv() is None, reason="uv is not on this machine")
def test_uv_installs_with_network_only(workspace, opened):
    command = f"{_uv()} pip install --python {PYTHON} --target deps {registries.NAME}"
    install_python_package(workspace, opened, command, UV_HTTP_RETRIES="0")


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on this machine")
def test_npm_installs_with_network_only(workspace, opened):
    (workspace / "package.json").write_text('{"name": "here", "version": "1.0.0"}')

    async def scenario(base):
        async with opened(workspace) as calls:
            env = {"npm_config_registry": base, "npm_config_fetch_retries": "0", "npm_config_audit": "false"}
            command = f"npm install --no-fund --no-update-notifier {registries.NAME}"
            refused = await calls.is_confined(command, **env)
            assert "network" in refused.hint
            await calls.works(command, {"network": True}, **env)
            assert await calls.works(f"node -e 'require(\"{registries.NAME}\")'") == "it works\n"

    with registries.npm_registry() as base:
        run(scenario(base))
    assert (workspace / "node_modules" / registries.NAME / "index.js").exists()


def test_network_is_there_for_the_calls_that_were_granted_it_and_for_no_other(workspace, opened):
    fetch = python("""
        import sys, urllib.request
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        print(opener.open(sys.argv[1] + "/simple/tinypackage", timeout=20).status)
    """)

    async def scenario(base):
        async with opened(workspace) as calls:
            for _ in range(3):
                assert await calls.works(f"{fetch} {base}", {"network": True}) == "200\n"
                outcome = await calls.shell(f"{fetch} {base}")
                assert outcome.status == "error" and "200" not in outcome.output
            together = [calls.shell(f"{fetch} {base}", {"network": True} if n % 2 else None) for n in range(8)]
            statuses = [(await each).status for each in together]
            assert statuses == ["error", "done"] * 4

    with registries.python_index() as base:
        run(scenario(base))


# Caches and toolchains.


def test_a_cache_is_found_again_by_the_next_call_and_by_no_other_workspace(person, tmp_path, workspace, opened):
    other = tmp_path / "other"
    other.mkdir()
    build = "cd ~/.cache && if [ -e build/object ]; then echo cached; else mkdir build; echo o > build/object; fi"

    async def scenario():
        async with opened(workspace) as calls:
            assert await calls.works(build) == ""
            assert await calls.works(build) == "cached\n"
            await calls.works("echo left > ~/elsewhere; cat ~/elsewhere")
            assert await calls.works("ls -A ~ | grep elsewhere || echo gone") == "gone\n"
        async with opened(workspace) as calls:
            assert await calls.works(build) == "cached\n"
        async with opened(other) as calls:
            assert await calls.works(build) == ""

    run(scenario())
    assert not (person / ".cache").exists()
    assert sorted(path.name for path in person.iterdir()) == [".gitconfig"]


def test_toolchains_of_a_home_run_and_what_lies_beside_them_is_not_seen(person, workspace, opened, monkeypatch):
    program(person / ".cargo/bin/crate", "echo crate")
    (person / ".cargo/credentials.toml").write_text("secret")
    program(person / ".local/share/uv/tools/made/bin/made", 'cat "$(dirname "$(readlink -f "$0")")/../data"')
    (person / ".local/share/uv/tools/made/data").write_text("data\n")
    (person / ".local/share/keyring").write_text("secret")
    (person / ".local/bin").mkdir()
    (person / ".local/bin/made").symlink_to("../share/uv/tools/made/bin/made")
    program(person / ".nvm/versions/node/v1/bin/nodule", 'cat "$(dirname "$0")/../lib/module"')
    (person / ".nvm/versions/node/v1/lib").mkdir()
    (person / ".nvm/versions/node/v1/lib/module").write_text("module\n")
    program(person / "own/bin/odd", "echo odd")
    (person / "own/secret").write_text("secret")
    (person / ".ssh").mkdir()
    (person / ".ssh/id").write_text("secret")
    added = [person / name for name in (".cargo/bin", ".local/bin", ".nvm/versions/node/v1/bin", "own/bin")]
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, added), os.environ["PATH"]]))

    async def scenario():
        async with opened(workspace) as calls:
            assert await calls.works("crate; made; nodule; odd") == "crate\ndata\nmodule\nodd\n"
            for secret in (".cargo/credentials.toml", ".local/share/keyring", "own/secret", ".ssh/id"):
                refused = await calls.is_confined(f"cat ~/{secret}")
                assert ("private keys" if ".ssh" in secret else "read") in refused.hint
            assert "secret" not in await calls.works("grep -r secret ~ || true")
            for place in (".cargo/bin", ".local/bin", ".nvm"):
                assert (await calls.shell(f"echo evil > ~/{place}/evil")).status == "error"

    run(scenario())
    assert not list(person.rglob("evil"))


# Grants, each closed and then open.


def test_a_directory_of_programs_is_granted(person, workspace, opened):
    program(person / "programs/special", "echo special")

    async def scenario():
        async with opened(workspace) as calls:
            assert (await calls.shell("special")).exit_code == 127
            assert await calls.works("special", {"path": ["~/programs"]}) == "special\n"
            assert await calls.works("special", {"path": [str(person / "programs")]}) == "special\n"
            assert (await calls.shell("special")).exit_code == 127

    run(scenario())


def test_a_file_and_a_directory_are_granted_for_reading(person, workspace, opened):
    (person / "notes").mkdir()
    (person / "notes/one").write_text("one\n")

    async def scenario():
        async with opened(workspace) as calls:
            assert "notes/one" in (await calls.is_confined("cat ~/notes/one")).hint
            assert await calls.works("cat ~/notes/one", {"read": ["~/notes/one"]}) == "one\n"
            assert await calls.works("cat ~/notes/one", {"read": ["~/notes/**"]}) == "one\n"
            assert await calls.works(f"cat {person}/notes/*", {"read": [str(person / "notes")]}) == "one\n"
            assert (await calls.shell("echo two > ~/notes/one", {"read": ["~/notes"]})).status == "error"
            await calls.is_confined("cat ~/notes/one")

    run(scenario())
    assert (person / "notes/one").read_text() == "one\n"


def test_a_file_and_a_directory_outside_are_granted_for_writing(person, workspace, opened):
    (person / "drop").mkdir()
    (person / "drop/log").write_text("one\n")

    async def scenario():
        async with opened(workspace) as calls:
            await calls.is_confined("echo two >> ~/drop/log")
            await calls.works("echo two >> ~/drop/log", {"write": ["~/drop/log"]})
            await calls.works(
                "echo new > ~/drop/new && mkdir ~/drop/deep && touch ~/drop/deep/x", {"write": ["~/drop"]}
            )
            outcome = await calls.shell("echo new > ~/other", {"write": ["~/drop"]})
            assert outcome.status == "done"  # in a home that is private and goes away
            await calls.is_confined("cat ~/drop/new")

    run(scenario())
    assert (person / "drop/log").read_text() == "one\ntwo\n"
    assert (person / "drop/deep/x").exists()
    assert not (person / "other").exists()


def test_a_variable_is_granted(workspace, opened, monkeypatch):
    monkeypatch.setenv("FEATURE_FLAG", "on")

    async def scenario():
        async with opened(workspace) as calls:
            assert await calls.works("echo [$FEATURE_FLAG]") == "[]\n"
            assert await calls.works("echo [$FEATURE_FLAG]", {"env": ["FEATURE_FLAG"]}) == "[on]\n"
            assert await calls.works("echo [$FEATURE_FLAG]") == "[]\n"

    run(scenario())


# Processes.

PROCESSES = {
    "jobs and pipes": ("sleep 0.1 & seq 3 | (tac; wait) & wait; echo end", "3\n2\n1\nend\n"),
    "process substitution": ("diff <(echo a) <(echo a) && cat <<< here", "here\n"),
    "a session of its own": ("setsid -w sh -c 'echo apart'", "apart\n"),
    "a child that kills its sibling": ("sleep 60 & kill $! ; wait $!; echo $?", "143\n"),
    "its own /proc": ("test $(ls -d /proc/[0-9]* | wc -l) -lt 8 && cat /proc/self/comm", "cat\n"),
    "named pipes and locks": ("mkfifo p; echo x > p & cat p; flock . echo held", "x\nheld\n"),
    "/dev/shm": ("echo kept > /dev/shm/x && cat /dev/shm/x", "kept\n"),
    "devices": ("cat /dev/zero | head -c 4 | wc -c; head -c 4 /dev/urandom | wc -c; echo > /dev/null", "4\n4\n"),
    "here and there in /tmp": ("cd $(mktemp -d) && echo x > a && cat a && test $PWD != /", "x\n"),
    "multiprocessing": (
        python("""
            import multiprocessing, multiprocessing.shared_memory
            context = multiprocessing.get_context("fork")
            memory = multiprocessing.shared_memory.SharedMemory(create=True, size=10)
            lock = context.Lock()
            with context.Pool(3) as pool:
                print(sum(pool.map(abs, range(-10, 0))))
            memory.close()
            memory.unlink()
        """),
        "55\n",
    ),
    "a server and a client on loopback": (
        python("""
            import socket, threading
            for host in ("127.0.0.1", "/tmp/socket", "here"):
                family = socket.AF_INET if "." in host else socket.AF_UNIX
                server = socket.socket(family)
                server.bind((host, 0) if family == socket.AF_INET else host)
                server.listen()
                client = socket.socket(family)
                client.connect(server.getsockname())
                server.accept()[0].sendall(host.encode())
                print(client.recv(99).decode())
        """),
        "127.0.0.1\n/tmp/socket\nhere\n",
    ),
    "a terminal": (
        python("""
            import os, pty
            status = pty.spawn(["sh", "-c", "test -t 0 && test -t 1 && tty | grep -c /dev/pts"])
            print(os.waitstatus_to_exitcode(status))
        """),
        "1\r\n0\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", PROCESSES)
def test_programs_find_what_they_expect(what, workspace, opened):
    command, shown = PROCESSES[what]

    async def scenario():
        async with opened(workspace) as calls:
            assert await calls.works(command) == shown

    run(scenario())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGSEGV])
def test_a_command_that_signals_itself_ends_by_that_signal(number, workspace, opened):
    async def scenario():
        async with opened(workspace) as calls:
            outcome = await calls.shell(f"kill -{number.name[3:]} $$; sleep 30")
            assert (outcome.status, outcome.error.code) == ("error", "tool-failed")
            assert f"signal {int(number)} ({number.name})" in outcome.error.message
            assert outcome.exit_code == 128 + number

    run(scenario())


def test_eight_threads_at_once_have_each_their_own_places(workspace, opened):
    async def scenario():
        async with opened(workspace) as calls:
            command = "echo {0} > /tmp/x; echo {0} > ~/x; echo {0} > /dev/shm/x; sleep 0.3; cat /tmp/x ~/x /dev/shm/x"
            runs = [calls.service.call("shell", {"command": command.format(n)}, thread=f"T-{n}") for n in range(8)]
            for n, each in enumerate(runs):
                assert (await each).output == f"{n}\n" * 3

    run(scenario())


# Places.


@pytest.mark.parametrize("name", ["with space", "ünïcödé ✓", "new\nline", "'quote\"", "back\\slash", "-dash", "$HOME"])
def test_a_workspace_may_have_any_name(name, tmp_path, opened):
    workspace = tmp_path / name
    (workspace / "sub").mkdir(parents=True)

    async def scenario():
        async with opened(workspace) as calls:
            await calls.works("echo x > a && mkdir b && mv a b/ && cd b && pwd -P > where")
            await calls.works("test -e ../b/a && touch here", cwd="sub")
            assert (await calls.shell("touch ../../out")).status == "error" or not (tmp_path / "out").exists()

    run(scenario())
    assert (workspace / "b" / "where").read_text() == f"{workspace}/b\n"
    assert (workspace / "sub" / "here").exists()
    assert not (tmp_path / "out").exists()


def test_a_workspace_may_lie_in_tmp(opened):
    with tempfile.TemporaryDirectory(dir="/tmp") as path:

        async def scenario():
            async with opened(path) as calls:
                await calls.works(f"echo x > a; echo y > {path}-b; cat a {path}-b")

        run(scenario())
        assert os.listdir(path) == ["a"]
    assert not os.path.exists(f"{path}-b")


def test_a_workspace_may_lie_in_a_home(person, opened):
    (person / "projects/one").mkdir(parents=True)
    (person / "projects/two").mkdir()
    (person / "projects/two/secret").write_text("secret")

    async def scenario():
        async with opened(person / "projects/one") as calls:
            await calls.works("echo x > ~/projects/one/a")
            assert await calls.works("ls ~/projects") == "one\n"
            await calls.is_confined("cat ~/projects/two/secret")

    run(scenario())
    assert (person / "projects/one/a").exists()


def test_a_workspace_may_be_reached_by_a_link(tmp_path, workspace, opened):
    link = tmp_path / "link"
    link.symlink_to(workspace)

    async def scenario():
        async with opened(link) as calls:
            assert await calls.works("pwd -P; echo x > a") == f"{workspace}\n"

    run(scenario())
    assert (workspace / "a").exists()


def test_a_workspace_may_be_a_home(person, opened):
    (person / "notes").write_text("mine\n")

    async def scenario():
        async with opened(person) as calls:
            assert await calls.works("cat ~/notes; echo x > ~/a") == "mine\n"

    run(scenario())
    assert (person / "a").read_text() == "x\n"


def test_a_workspace_that_is_made_anew_is_the_new_one(tmp_path, workspace, opened):
    async def scenario():
        async with opened(workspace) as calls:
            await calls.works("echo old > a")
            shutil.rmtree(workspace)
            workspace.mkdir()
            (workspace / "b").write_text("new\n")
            outcome = await calls.shell("cat b; echo more > c")
            if outcome.status == "done":
                assert outcome.output == "new\n"
                assert (workspace / "c").exists()
            else:
                assert "workspace" in outcome.error.message, outcome.error

    run(scenario())


def test_a_host_may_run_from_a_hidden_place(tmp_path, person, workspace):
    """Python itself, and the module of an isolated tool, lie in a home that is hidden."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", person / "deep/venv"], check=True)
    (person / "deep/app.py").write_text(
        textwrap.dedent("""
            import asyncio, sys
            from haft import ToolService, tool

            @tool(isolated=True)
            def where() -> str:
                return sys.prefix

            async def main():
                options = {"tools": [where], "approver": lambda request: True, "installed": False}
                async with ToolService.open(sys.argv[1], home=sys.argv[2], **options) as s:
                    print((await s.call("shell", {"command": f"{sys.executable} -c 'print(6 * 7)'"})).output, end="")
                    outcome = await s.call("where")
                    print(outcome.result, outcome.error)

            if __name__ == "__main__":
                asyncio.run(main())
        """)
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [person / "deep/venv/bin/python", person / "deep/app.py", workspace, tmp_path / "state"],
        env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == f"42\n{person}/deep/venv None\n", done.stderr


# The helper's own life.


def helpers(depth):
    """The waiter (1) or the zygote (2) of this process."""
    found = [os.getpid()]
    for _ in range(depth):
        below = []
        for parent in found:
            for task in os.listdir(f"/proc/{parent}/task"):
                below += Path(f"/proc/{parent}/task/{task}/children").read_text().split()
        found = [int(pid) for pid in below if b"haft.helper.zygote" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return found


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("depth", [1, 2])
def test_a_helper_that_is_killed_between_calls_is_replaced(depth, workspace, opened, eventually):
    async def scenario():
        async with opened(workspace) as calls:
            for _ in range(2):
                assert await calls.works("echo here") == "here\n"
                both = [*helpers(1), *helpers(2)]
                os.kill(both[depth - 1], signal.SIGKILL)
                eventually(lambda both=both: not any(map(lives, both)))
                assert await calls.works("echo again") == "again\n"

    run(scenario())


@pytest.mark.parametrize("depth", [1, 2])
def test_a_helper_that_is_killed_takes_its_calls_with_it(depth, workspace, opened, mark, left_of, eventually):
    async def scenario():
        async with opened(workspace) as calls:
            runs = [calls.shell("echo ready; sleep 600", MARK=mark) for _ in range(3)]

            async def has_begun(each):
                async for event in each:
                    if event.type == "stdout":
                        return

            await asyncio.gather(*map(has_begun, runs))
            both = [*helpers(1), *helpers(2)]
            os.kill(both[depth - 1], signal.SIGKILL)
            for each in runs:
                outcome = await each
                assert (outcome.status, outcome.error.code) == ("error", "tool-failed")
            eventually(lambda: not left_of(mark))
            eventually(lambda: not any(map(lives, both)))
            assert await calls.works("echo again") == "again\n"

    run(scenario())
