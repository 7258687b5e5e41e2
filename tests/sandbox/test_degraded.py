"""Each layer of the sandbox taken away by the kernel's own means: calls say what they lack, and so does `haft
doctor`."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sampling import SELDOM
from warm import PROGRAM, Warm

sys.path.insert(0, str(Path(__file__).parent))
import tiny

pytestmark = [
    pytest.mark.every_user(share=SELDOM),
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is made of Linux"),
    pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="no filter is known for this machine"),
]

IS_ROOT = os.geteuid() == 0
WITHOUT = Path(__file__).with_name("without.py")
WRITES = "echo in > inside; echo out > /proc/self/comm"
"""Into the workspace, and to a file that everybody has outside of it and of what is shared for want of a sandbox."""


@dataclass
class Machine:
    """Where something is lacking: by name, or below the beginning of a command line that takes it away."""

    workspace: Path
    home: Path
    warm: Warm
    lacking: tuple[str, ...] = ()
    beneath: list[str] = field(default_factory=list)

    def without(self, *names: str) -> "Machine":
        return replace(self, lacking=names)

    def behind(self, script: str) -> "Machine":
        """Below a script that ends with `exec "$@"`."""
        return replace(self, beneath=["sh", "-c", script, "sh"])

    def run(self, *command: object, mode: str = "auto") -> subprocess.CompletedProcess:
        lacking = [sys.executable, str(WITHOUT), *self.lacking, "--"] if self.lacking else []
        return subprocess.run(
            [*self.beneath, *lacking, *map(str, command)], env=self._env(mode),
            cwd=self.workspace, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    def haft(self, *words: str, mode: str) -> subprocess.CompletedProcess:
        if self.beneath:
            return self.run(*PROGRAM, *words, mode=mode)
        code, out, err = self.warm.run(words, b"", self.workspace, self._env(mode), self.lacking)
        return subprocess.CompletedProcess(words, code, out.decode(), err.decode())

    def _env(self, mode: str) -> dict[str, str]:
        return {**os.environ, "HAFT_HOME": str(self.home), "HAFT_SANDBOX_MODE": mode}

    def doctor(self, mode: str = "auto") -> dict:
        done = self.haft("doctor", "--json", mode=mode)
        found = {check["check"]: check for check in json.loads(done.stdout)}
        assert done.returncode == (1 if any(check["state"] == "broken" for check in found.values()) else 0), done.stderr
        return found

    def shell(self, command: str, *options: str, mode: str = "auto") -> dict:
        done = self.haft("tools", "use", "shell", "--command", command, "--json", *options, mode=mode)
        assert done.stdout, done.stderr
        return {**json.loads(done.stdout), "said": done.stderr, "code": done.returncode}


@pytest.fixture
def machine(tmp_path, warm):
    (tmp_path / "workspace").mkdir()
    return Machine(tmp_path / "workspace", tmp_path / "home", warm)


@pytest.fixture(scope="module", autouse=True)
def _whole(tmp_path_factory, warm):
    """Nothing can be learnt from taking away what is not there."""
    base = tmp_path_factory.mktemp("whole")
    (base / "workspace").mkdir()
    state = Machine(base / "workspace", base / "home", warm).doctor()["sandbox"]
    if state["state"] != "ok":
        pytest.skip(f"this machine lacks something itself: {state['detail']}")


NOTHING_LACKS = {"namespaces": "ok", "landlock": "ok", "sandbox": "ok"}
NO_LANDLOCK = {"namespaces": "ok", "landlock": "warn", "sandbox": "warn"}
NO_NAMESPACES = {"namespaces": "warn", "landlock": "ok", "sandbox": "warn"}
NO_NETWORK = {"namespaces": "ok", "landlock": "ok", "sandbox": "warn"}
FULL, FIRST, SECOND, NONE = ["namespaces", "landlock", "seccomp"], ["namespaces", "seccomp"], ["landlock"], []

CASES = {
    "nothing": ((), NOTHING_LACKS, FULL, ""),
    "Landlock": (("landlock",), NO_LANDLOCK, FIRST, "no Landlock"),
    "Landlock, turned off": (("landlock-enabled",), NO_LANDLOCK, FIRST, "no Landlock"),
    "namespaces": (("namespaces",), NO_NAMESPACES, SECOND, "no namespaces: "),
    "user namespaces": (
        ("user-namespaces",),
        *((NOTHING_LACKS, FULL, "") if IS_ROOT else (NO_NAMESPACES, SECOND, "kernel.apparmor_restrict")),
    ),
    "mount namespaces": (("mount-namespaces",), NO_NAMESPACES, SECOND, "unshare (mounts)"),
    "pid namespaces": (("pid-namespaces",), NO_NAMESPACES, SECOND, "unshare (processes)"),
    "mounting": (("mounts",), NO_NAMESPACES, SECOND, "mount on /"),
    "attributes of mounts": (("mount-attributes",), NO_NAMESPACES, SECOND, "Linux 5.12"),
    "network namespaces": (("network-namespaces",), NO_NETWORK, FULL, "haft can deny a call only TCP"),
    "network namespaces and Landlock": (
        ("network-namespaces", "landlock"),
        NO_LANDLOCK,
        FIRST,
        "every call has the network",
    ),
    "everything": (
        ("namespaces", "landlock"),
        {"namespaces": "warn", "landlock": "warn", "sandbox": "warn"},
        NONE,
        "no namespaces: ",
    ),
}


@pytest.mark.parametrize("lacking", CASES)
def test_what_is_lacking_is_said_and_the_rest_holds(lacking, machine):
    names, states, layers, words = CASES[lacking]
    poor = machine.without(*names) if names else machine
    found = poor.doctor()
    assert {name: found[name]["state"] for name in states} == states, found
    assert found["processes"]["state"] == "ok"
    assert words in found["sandbox"]["detail"]
    if "network" in lacking:
        assert "network" not in found["namespaces"]["detail"]
    outcome = poor.shell(WRITES, "--approve")
    confinement = outcome["sandbox"]
    assert confinement["layers"] == layers
    assert confinement["profile"] == ("workspace" if layers else "none")
    if words:
        assert words in confinement["reason"]
        assert outcome["said"].count(words) == 1  # at start, once
    else:
        assert confinement["reason"] is None
    assert (machine.workspace / "inside").read_text() == "in\n"
    assert outcome["status"] == ("error" if layers else "done"), outcome
    assert outcome["limits"]["enforced"].keys() >= {"memory_bytes", "max_processes"}
    if os.path.exists("/proc/self/io"):
        assert outcome["limits"]["enforced"]["max_written_bytes"] != "nothing"


@pytest.mark.skipif(not IS_ROOT, reason="an ordinary user can write nowhere else")
@pytest.mark.parametrize("names", [("landlock",), ("namespaces",), ("mounts",), ("network-namespaces",)])
def test_each_layer_alone_stops_writes_outside_the_workspace(names, machine):
    place = Path(tempfile.mkdtemp(prefix="haft-test-", dir="/opt" if os.path.isdir("/opt") else "/srv"))
    try:
        (place / "file").write_text("as it was")
        tries = ("echo x > new", "mkdir new", "rm file", "echo x >> file", "mv file new", "ln file new", "mknod new p")
        command = f"cd {place} && ! {{ {' || '.join(tries)}; }}"
        assert machine.without(*names).shell(command, "--approve")["status"] == "done"
        assert [path.name for path in place.iterdir()] == ["file"]
        assert (place / "file").read_text() == "as it was"
        outcome = machine.without("namespaces", "landlock").shell(f"echo x > {place}/new", "--approve")
        assert outcome["status"] == "done" and (place / "new").exists()
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("names", [("namespaces",), ("network-namespaces",), ("landlock",)])
def test_tcp_is_kept_from_a_call_by_whatever_is_left(names, machine):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        command = f"exec 3<>/dev/tcp/127.0.0.1/{listener.getsockname()[1]}"
        assert machine.without(*names).shell(command, "--approve")["status"] == "error"
        with pytest.raises(TimeoutError):
            listener.accept()
        assert machine.without(*names).shell(command, "--approve", "--network")["status"] == "done"
        listener.accept()[0].close()


LAUNCH = """
import asyncio, os, sys
from haft.contracts import Command, Limits
from haft.files import Root
from haft.sandbox import Sandbox

class Sink:
    def output(self, _stream, data): ...
    def processes_ended(self, _children): ...

async def main(home, *programs):
    here = os.getcwd()
    sandbox = Sandbox(here, home, os.environ, Root(here).open_directory, Limits())
    for unasked in (False, True):
        launcher = sandbox.launcher("read-only", unasked=unasked)
        print(*[(await launcher.run(Command([each]), Sink())).code for each in programs])
    print((await sandbox.ready()).layers)
    sandbox.close()

asyncio.run(main(*sys.argv[1:]))
"""


def test_without_namespaces_a_call_that_nobody_approved_still_gets_no_sockets_and_traces_nothing(machine):
    calls = {"connect": ("socket", 1, 1), "limit": ("prlimit64", 1, 7), "trace": ("ptrace", 0)}
    for name, call in calls.items():
        tiny.write(machine.workspace / name, tiny.program(tiny.of_width(tiny.WIDTHS[0]), *call))
    poor = machine.without("namespaces")
    done = poor.run(sys.executable, "-c", LAUNCH, machine.home, *(f"./{name}" for name in calls))
    approved, unasked, layers = done.stdout.splitlines()
    assert layers == "('landlock',)", done.stderr
    assert approved.split()[:2] == ["253", str(errno.EPERM)]
    assert unasked.split() == [str(errno.EAFNOSUPPORT), str(errno.EPERM), str(errno.EPERM)]


def test_where_it_cannot_be_found_out_whether_filters_hold_no_call_traces_and_doctor_says_so(machine):
    found = machine.without("tracing").doctor()["seccomp"]
    assert found["state"] == "ok" and "no call may trace" in found["detail"]


@pytest.mark.parametrize(
    "names", [("landlock",), ("namespaces",), ("network-namespaces",), ("mounts",), ("namespaces", "landlock")]
)
def test_where_a_sandbox_is_required_nothing_runs_and_nobody_is_asked(names, machine):
    poor = machine.without(*names)
    for approve in ((), ("--approve",)):  # Were anyone asked, there would be nobody to answer.
        outcome = poor.shell(WRITES, *approve, mode="required")
        assert (outcome["code"], outcome["status"], outcome["error"]["code"]) == (2, "error", "bad-config")
        assert "`sandbox.mode` is `required`" in outcome["error"]["message"]
        assert outcome["exitCode"] is None
    assert not (machine.workspace / "inside").exists()
    found = poor.doctor(mode="required")
    assert found["sandbox"]["state"] == "broken"
    assert "no call that starts processes will run" in found["sandbox"]["detail"]
    lacking = {name for name in ("namespaces", "landlock") if found[name]["state"] == "broken"}
    assert lacking == {*names} & {"namespaces", "landlock"} | ({"namespaces"} if "mounts" in names else set())


def test_where_a_sandbox_is_required_and_can_be_had_calls_run(machine):
    assert machine.shell("true", "--approve", mode="required")["status"] == "done"
    assert machine.doctor(mode="required")["sandbox"]["state"] == "ok"


def test_where_the_sandbox_is_off_there_is_none(machine):
    outcome = machine.shell(WRITES, "--approve", mode="off")
    assert outcome["status"] == "done"
    assert (outcome["sandbox"]["profile"], outcome["sandbox"]["layers"]) == ("none", [])
    assert outcome["sandbox"]["reason"] == "`sandbox.mode` is `off`"
    found = machine.doctor(mode="off")
    assert found["sandbox"]["state"] == "warn" and "`off`" in found["sandbox"]["detail"]
    assert "namespaces" not in found and "landlock" not in found


# ── lacking for other reasons than a filter ──────────────────────────────────────────────────────────────────────────


def nested(machine: Machine, script: str) -> Machine:
    for program in ("unshare", "setpriv"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on this machine")
    found = machine.behind(script)
    if (tried := found.run("true")).returncode:
        pytest.skip(f"it cannot be made so here: {tried.stderr}")
    return found


def test_user_namespaces_used_up(machine):
    script = """exec unshare -U --map-user=1000 --keep-caps sh -c '
        echo 0 > /proc/sys/user/max_user_namespaces || exit 1
        exec setpriv --inh-caps=-all --ambient-caps=-all "$@"' sh "$@"
    """
    machine.workspace.parent.chmod(0o755)
    poor = nested(machine, script)
    found = poor.doctor()
    assert found["namespaces"]["state"] == found["sandbox"]["state"] == "warn"
    assert "`user.max_user_namespaces` is used up or 0" in found["namespaces"]["detail"]
    confinement = poor.shell("true", "--approve")["sandbox"]
    assert confinement["layers"] == SECOND and "max_user_namespaces" in confinement["reason"]


def test_a_proc_that_a_container_covered(machine):
    script = """exec unshare -Urm sh -c '
        mount --bind /dev/null /proc/version || exit 1
        exec unshare -U --map-user=1000 --map-group=1000 "$@"' sh "$@"
    """
    (machine.workspace / ".envrc").write_text("as it was")
    poor = nested(machine, script)
    found = poor.doctor()
    assert (found["namespaces"]["state"], found["sandbox"]["state"]) == ("ok", "warn")
    assert "no private /proc" in found["sandbox"]["detail"]
    assert found["limits"]["state"] == "warn" and "cpu_seconds" in found["limits"]["hint"]
    outcome = poor.shell("ls -A /proc; echo x > .envrc; echo x > inside", "--approve")
    assert outcome["sandbox"]["layers"] == FULL and "no private /proc" in outcome["sandbox"]["reason"]
    assert outcome["status"] == "done", outcome
    assert "Read-only file system" in outcome["output"] and outcome["output"].count("\n") == 1
    assert (machine.workspace / ".envrc").read_text() == "as it was"
    assert (machine.workspace / "inside").exists()


def test_nothing_lacks_where_a_container_made_its_user_root(machine):
    inside = nested(machine, 'exec unshare -Ur "$@"')
    assert inside.doctor()["sandbox"]["state"] == "ok"
    outcome = inside.shell("id -u; echo x > /dev/null && head -c 1 /dev/zero | wc -c; echo x > inside", "--approve")
    assert (outcome["status"], outcome["output"]) == ("done", "0\n1\n"), outcome
    assert outcome["sandbox"]["layers"] == FULL and outcome["sandbox"]["reason"] is None


# ── tools of the embedding program ───────────────────────────────────────────────────────────────────────────────────

EMBEDDING = """
import asyncio, json, sys
from haft import tool
from haft.service import ToolService
from looking import look

asked = []

async def approve(request):
    asked.append(request.tool)
    return True

async def main():
    looker = tool(isolated=True, readonly=True)(look)
    async with ToolService.open(".", tools=[looker], approver=approve, home=sys.argv[1], installed=False) as service:
        outcome = await service.call("look", {})
    print(json.dumps([asked, outcome.status, outcome.result, outcome.to_json()["sandbox"]]))

asyncio.run(main())
"""


@pytest.mark.parametrize("names", [(), ("landlock",), ("namespaces",), ("namespaces", "landlock")])
def test_what_is_said_only_to_read_passes_unasked_where_the_sandbox_holds_it_to_that(names, machine):
    lib = machine.home.parent / "lib"
    lib.mkdir()
    (lib / "looking.py").write_text("def look() -> int:\n    return 7\n")
    (lib / "embedding.py").write_text(EMBEDDING)
    poor = machine.without(*names) if names else machine
    done = poor.run(sys.executable, lib / "embedding.py", machine.home)
    assert done.returncode == 0, done.stderr
    asked, status, result, sandbox = json.loads(done.stdout)
    held = "namespaces" not in names
    assert (status, result) == ("done", 7), done.stdout
    assert asked == ([] if held else ["look"])
    assert sandbox["profile"] == ("none" if len(names) == 2 else "read-only")
    assert ("namespaces" in sandbox["layers"]) == held


def test_what_is_used_up_for_now_does_not_open_the_sandbox(machine):
    """Someone may have used up all namespaces to have the next call run without them."""
    poor = machine.without("more-user-namespaces")
    outcome = poor.shell("touch ran", "--approve")
    assert outcome["status"] == "error" and "at the moment" in outcome["error"]["message"]
    assert not (machine.workspace / "ran").exists()
    found = poor.doctor()["sandbox"]
    assert found["state"] == "broken" and "at the moment" in found["detail"]
