"""Each act that the sandbox denies, one test for each, through the whole service and as the user who runs the tests.

Wherever it does no harm, the same command is run without a sandbox as well and must work there: so it is the sandbox
that stops it, and what the host has is looked at afterwards."""

import ctypes
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from haft.builtin.ripgrep import find_ripgrep
from haft.files import machine_secrets
from haft.service import ToolService

pytestmark = [
    pytest.mark.every_user(share=1),
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is made of Linux"),
]

IS_ROOT = os.geteuid() == 0
only_root = pytest.mark.skipif(not IS_ROOT, reason="only root could do that on the host")


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on this machine")


def state_of(place: Path) -> dict:
    """Everything that a command could have changed there."""
    found = {}
    for path in [place, *sorted(place.rglob("*"))]:
        facts = path.lstat()
        found[str(path)] = (
            facts.st_ino, facts.st_mode, facts.st_uid, facts.st_gid, facts.st_size, facts.st_nlink,
            facts.st_mtime_ns, facts.st_ctime_ns,
            path.read_bytes() if stat.S_ISREG(facts.st_mode) else None,
            os.listxattr(path, follow_symlinks=False),
        )  # fmt: skip
    return found


# ── outside the workspace ────────────────────────────────────────────────────────────────────────────────────────────

CHANGES = {
    "write a new file": "echo x > new",
    "append": "echo x >> file",
    "truncate": "truncate -s 0 file",
    "write in place": "dd if=/dev/zero of=file bs=1 count=1 conv=notrunc status=none",
    "chmod": "chmod 600 file",
    "chmod of a directory": "chmod 700 .",
    "chown": "chown $(id -u):$(id -g) file",
    "touch": "touch file",
    "touch back": "touch -d @1000000 file",
    "setfattr": "setfattr -n user.haft -v x file",
    "mknod": "mknod pipe p",
    "mkdir": "mkdir new",
    "rmdir": "rmdir directory",
    "rm": "rm -f file && ! [ -e file ]",
    "rename": "mv file other",
    "hard link": "ln file other",
    "symbolic link": "ln -s file other",
    "socket": "{python} -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'",
    "allocate": "fallocate -l 4096 new",
    "memory map": """{python} -c 'import mmap; f = open("file", "r+b"); mmap.mmap(f.fileno(), 0)[0:1] = b"x"'""",
}


@pytest.mark.parametrize("what", CHANGES)
def test_nothing_outside_the_workspace_is_changed(what, host):
    needs(CHANGES[what].split()[0].replace("{python}", sys.executable))
    place = host.place()
    command = f"cd {place} && " + CHANGES[what].replace("{python}", sys.executable)
    before = state_of(place)
    host.stopped(command, sees_outside=True)
    assert state_of(place) == before
    host.passes_bare(command)
    assert state_of(place) != before


def test_what_is_hidden_cannot_be_changed_either(host):
    place = host.place()
    before = state_of(host.outside)
    command = f"mkdir -p {place}/new; echo x > {place}/file; rm -rf {place} {host.outside}"
    host.behind(command)
    host.reading(command)
    assert state_of(host.outside) == before


@pytest.mark.parametrize("command", ["cd .. && touch out", "touch /proc/self/cwd/../out", "touch $PWD/../out"])
def test_no_way_out_leads_through_the_working_directory(command, host):
    host.behind(command)
    host.reading(command)
    assert not (host.base / "out").exists()
    host.passes_bare(command)
    (host.base / "out").unlink()


@pytest.mark.parametrize("command", ["echo x > way-out/new", "echo x > to-file", "rm way-out/file", "touch to-new"])
def test_no_way_out_leads_through_a_link_in_the_workspace(command, host):
    place, links = host.place(), host.workspace / "links"
    links.mkdir()
    for name, target in {"way-out": place, "to-file": place / "file", "to-new": place / "new"}.items():
        (links / name).symlink_to(target)
    before = state_of(place)
    try:
        host.stopped(f"cd links && {command}", sees_outside=True)
        assert state_of(place) == before
        host.passes_bare(f"cd links && {command}")
        assert state_of(place) != before
    finally:
        shutil.rmtree(links)


def test_a_link_made_by_the_command_itself_leads_no_further(host):
    place = host.place()
    before = state_of(place)
    host.stopped(f"ln -sfn {place} made-here && echo x > made-here/new", sees_outside=True)
    assert state_of(place) == before
    (host.workspace / "made-here").unlink()


def test_a_file_outside_cannot_be_linked_into_the_workspace(host):
    place = host.place()
    host.stopped(f"ln {place}/file hard", sees_outside=True)
    assert (place / "file").stat().st_nlink == 1
    assert not (host.workspace / "hard").exists()


@only_root
def test_a_file_cannot_be_opened_by_its_handle(host, python):
    (host.person / "by-handle").write_text("s-by-handle")
    code = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
mount = os.open({str(host.workspace)!r}, os.O_RDONLY)
handle = ctypes.create_string_buffer(bytes.fromhex({handle_of(host.person / "by-handle").hex()!r}))
place = libc.open_by_handle_at(mount, handle, os.O_RDONLY)
sys.exit(os.strerror(ctypes.get_errno())) if place < 0 else print(os.read(place, 100))
"""
    assert "s-by-handle" not in host.stopped(python(code))
    assert "s-by-handle" in host.passes_bare(python(code))


def handle_of(path: Path) -> bytes:
    libc = ctypes.CDLL(None, use_errno=True)
    handle = ctypes.create_string_buffer((128).to_bytes(4, sys.byteorder), 8 + 128)
    if libc.name_to_handle_at(-100, os.fsencode(path), handle, ctypes.byref(ctypes.c_int()), 0):
        pytest.skip("this file system has no handles")
    return handle.raw[: 8 + int.from_bytes(handle.raw[:4], sys.byteorder)]


# ── what is protected in the workspace ───────────────────────────────────────────────────────────────────────────────

PROTECTED = (
    ".git/hooks/pre-commit",
    ".git/config",
    "haft.toml",
    ".mcp.json",
    ".vscode/settings.json",
    ".envrc",
    ".bashrc",
    ".claude/settings.json",
    ".git/modules/sub/hooks/pre-push",
)
WAYS = {
    "write": "echo x > {file}",
    "append": "echo x >> {file}",
    "chmod": "chmod 755 {file}",
    "remove": "rm -f {file}; ! [ -e {file} ]",
    "rename over": "echo x > other && mv -f other {file}",
    "rename away": "mv {file} other",
    "link over": "echo x > other && ln -f other {file}",
    "hard link and write": "ln {file} other && echo x > other",
    "symbolic link over": "ln -sf /dev/null {file}",
    "exchange": "echo x > other && {exchange} other {file}",
}
EXCHANGE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2):
    sys.exit(os.strerror(ctypes.get_errno()))
"""


@pytest.fixture
def stocked(host):
    """Put what is protected into the workspace, as often as asked."""

    def stock() -> Path:
        clear()
        for name in (*PROTECTED, ".git/HEAD"):
            (host.workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (host.workspace / name).write_text("")
        return host.workspace

    def clear() -> None:
        for entry in host.workspace.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    yield stock
    clear()


def held(workspace: Path) -> list:
    """What counts about the protected files: that they are there, and what they are."""
    found = []
    for name in PROTECTED:
        path = workspace / name
        facts = path.lstat() if os.path.lexists(path) else None
        found.append(facts and (name, facts.st_ino, facts.st_mode, facts.st_nlink, path.read_bytes()))
    return found


@pytest.mark.parametrize("way", WAYS)
def test_a_protected_file_is_held(way, host, stocked, python):
    workspace = stocked()
    before = held(workspace)
    for name in PROTECTED:
        outcome = host.behind("rm -f other; " + WAYS[way].format(file=name, exchange=python(EXCHANGE)))
        if way == "chmod" and name == ".git/config":
            continue  # Judged by what it says, which no mode changes.
        assert outcome.error is not None, (name, outcome.output)
        if not outcome.exit_code:
            assert (outcome.error.code, outcome.changes.state) == ("sandbox-denied", "held")
    after = held(workspace)
    if way == "chmod":
        before, after = ([facts for facts in found if facts[0] != ".git/config"] for found in (before, after))
    assert after == before
    for name in PROTECTED[:2]:
        workspace = stocked()
        before = held(workspace)
        host.passes_bare(WAYS[way].format(file=name, exchange=python(EXCHANGE)))
        assert held(workspace) != before


@pytest.mark.parametrize("parent", [".git", ".vscode", ".git/hooks", ".claude", ".git/modules", ".git/modules/sub"])
@pytest.mark.parametrize("way", ["mv {} away", "rm -rf {}; ! [ -e {} ]"])
def test_the_directory_of_a_protected_file_stays_where_it_is(parent, way, host, stocked):
    command = way.replace("{}", parent)
    workspace = stocked()
    before = held(workspace)
    assert host.behind(command).exit_code
    assert held(workspace) == before
    host.passes_bare(command)
    assert not (workspace / parent).exists()


def test_nothing_is_added_to_a_protected_directory(host, stocked):
    workspace = stocked()
    assert host.behind("echo x > .git/hooks/post-checkout").exit_code
    assert not (workspace / ".git" / "hooks" / "post-checkout").exists()
    host.passes_bare("echo x > .git/hooks/post-checkout")


@pytest.mark.parametrize(
    "command",
    [
        "umount .git/config && echo x > .git/config",
        "umount -l .git/hooks && echo x > .git/hooks/new",
        "mount --bind other .git/hooks",
        "mount -o remount,bind,rw .git/hooks && echo x > .git/hooks/new",
        "unshare -m umount -l .git/hooks && echo x > .git/hooks/new",
        "unshare -Um sh -c 'umount -l .git/hooks && echo x > .git/hooks/new'",
    ],
)
def test_what_protects_a_file_cannot_be_taken_off(command, host, stocked):
    workspace = stocked()
    before = held(workspace)
    assert host.behind(f"mkdir -p other; {command}").exit_code
    assert held(workspace) == before


def test_what_only_reads_changes_nothing_in_the_workspace(host, stocked):
    workspace = stocked()
    (workspace / "file").write_text("as it was")
    before = state_of(workspace)
    for command in CHANGES.values():
        host.reading(command.replace("{python}", sys.executable))
    assert state_of(workspace) == before


# ── the clock ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_clock_cannot_be_set_by_date(host):
    assert "not permitted" in host.stopped('LC_ALL=C date -s "@$(date +%s)"')


def test_the_clock_cannot_be_set_by_a_system_call(host, python):
    code = "import time; time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME))"
    assert "PermissionError" in host.stopped(python(code))


# ── the network ──────────────────────────────────────────────────────────────────────────────────────────────────────

CLIENTS = {
    "curl": "curl -s -m 2 http://127.0.0.1:{port}/",
    "wget": "wget -q -T 2 -t 1 -O - http://127.0.0.1:{port}/",
    "nc": "nc -w 2 127.0.0.1 {port} </dev/null",
    "ssh": "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=2 -p {port} 127.0.0.1 true",
    "bash": "exec 3<>/dev/tcp/127.0.0.1/{port}",
    "python3": "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)'",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reaches_nothing_by_tcp(client, host, listen):
    needs(client)
    listener = listen(socket.AF_INET, ("127.0.0.1", 0))
    command = CLIENTS[client].format(port=listener.address[1])
    host.stopped(command)
    assert not listener.heard()
    host.bare(command)
    assert listener.heard(5)


UDP = """
import socket, sys
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(sys.argv[1])))
"""


@pytest.mark.parametrize("client", ["python", "bash"])
def test_nothing_is_reached_by_udp(client, host, listen, python):
    listener = listen(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)
    port = listener.address[1]
    command = python(UDP, port) if client == "python" else f"echo x > /dev/udp/127.0.0.1/{port}"
    host.behind(command)  # That it arrives nowhere, no sender learns.
    host.reading(command)
    assert not listener.heard()
    host.passes_bare(command)
    assert listener.heard(5)


def test_getent_finds_no_host(host):
    needs("getent")
    host.stopped("getent hosts example.com")
    host.stopped("getent ahostsv4 example.com")


def test_there_is_no_network_but_its_own(host, python):
    code = "import socket; print(*(name for _, name in socket.if_nameindex() if name not in ('lo', 'sit0', 'tunl0')))"
    assert host.behind(python(code)).output.strip() == ""
    assert host.behind("cat /proc/net/route").output.count("\n") <= 1
    send = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))"
    assert "unreachable" in host.stopped(python(send))


def test_sockets_of_families_that_no_namespace_holds_cannot_be_had(host, python):
    code = """
import socket
for family in (38, 40, 31, 39, 42):  # ALG, VSOCK, BLUETOOTH, NFC, QIPCRTR
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            socket.socket(family, kind).close()
            print("got", family)
        except OSError:
            pass
"""
    if "got" not in host.passes_bare(python(code)):
        pytest.skip("this kernel has none of them")
    assert host.behind(python(code)).output == ""
    assert host.behind(python(code), network=True).output == ""


def test_there_is_no_ring_that_could_open_sockets_unseen(host, python):
    code = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(425, 2, ctypes.create_string_buffer(120)) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
"""
    host.stopped(python(code))


# ── sockets of the host ──────────────────────────────────────────────────────────────────────────────────────────────

TALK = """
import socket, sys
kind = socket.SOCK_STREAM if sys.argv[2] == "stream" else socket.SOCK_DGRAM
end = socket.socket(socket.AF_UNIX, kind)
end.settimeout(2)
end.connect(sys.argv[1].replace("@", chr(0)))
if kind == socket.SOCK_DGRAM:
    end.send(b"x")
"""
KINDS = {"stream": socket.SOCK_STREAM, "datagram": socket.SOCK_DGRAM}


def place_for_socket(where: str, host) -> str:
    name = f"haft-{uuid.uuid4().hex[:12]}"
    if where == "abstract":
        return f"@{name}"
    place = {"outside": host.outside, "workspace": host.workspace}.get(where, Path(where))
    if not os.access(place, os.W_OK):
        pytest.skip(f"{place} cannot be written")
    if len(str(place / name)) > 100:
        pytest.skip(f"{place} is too long a path for a socket")
    return str(place / name)


@pytest.mark.parametrize("network", [False, True], ids=["no network", "network"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["/run", "/tmp", "/var/tmp", "/dev/shm", "outside", "workspace", "abstract"])
def test_a_socket_of_the_host_is_out_of_reach(where, kind, network, host, listen, python):
    address = place_for_socket(where, host)
    listener = listen(socket.AF_UNIX, address.replace("@", "\0"), KINDS[kind])
    command = python(TALK, address, kind)
    try:
        # Twice: the first call's place was made before there was the socket, the second's after.
        for _ in range(2):
            assert host.behind(command, sees_outside=where == "outside", network=network).exit_code
        assert not listener.heard()
        host.passes_bare(command)
        assert listener.heard(5)
    finally:
        if where != "abstract":
            Path(address).unlink()


def test_a_socket_that_was_bound_anew_is_out_of_reach(host, listen, python):
    path = Path(place_for_socket("workspace", host))
    for _ in range(3):
        listener = listen(socket.AF_UNIX, str(path))
        assert host.behind(python(TALK, path, "stream")).exit_code
        assert not listener.heard()
        listener.close()
        path.unlink()


def test_the_places_of_sockets_are_empty(host):
    for place in ("/run", "/tmp", "/var/tmp", "/dev/shm"):
        assert host.behind(f"[ -d {place} ] && find {place} -type s -o -type p").output == "", place


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────────────────────────

SECRET = "s-what-only-the-person-knows"
READERS = {
    "by path": "cat {path}",
    "by home": "cat ~/.ssh/id_haft",
    "by a link in the workspace": "cat link-to-secret",
    "by a link to its directory": "cat link-to-home/.ssh/id_haft",
    "by its own root": "cat /proc/self/root{path}",
    "by the root of the init": "cat /proc/1/root{path}",
    "by everyone's root": "cat /proc/[0-9]*/root{path} | grep .",
    "by everyone's directory": "cat /proc/[0-9]*/cwd/../person/.ssh/id_haft | grep .",
    "by its own directory": "cat /proc/self/cwd/../person/.ssh/id_haft",
    "by descriptors": "cat /proc/[0-9]*/fd/[3-9]/.ssh/id_haft /proc/[0-9]*/fd/*/../person/.ssh/id_haft | grep .",
}


@pytest.mark.parametrize("way", READERS)
def test_a_secret_in_home_cannot_be_read(way, host):
    path = host.person / ".ssh" / "id_haft"
    path.parent.mkdir(exist_ok=True)
    path.write_text(SECRET)
    links = {host.workspace / "link-to-secret": path, host.workspace / "link-to-home": host.person}
    for link, target in links.items():
        link.symlink_to(target)
    command = READERS[way].format(path=path)
    try:
        assert SECRET not in host.stopped(command)
        if "descriptors" not in way and "init" not in way:
            assert SECRET in host.bare(command).output
    finally:
        for link in links:
            link.unlink()


def test_what_is_written_in_the_private_home_stays_there(host):
    assert host.behind("echo x > ~/mine && cat ~/mine").output == "x\n"
    assert not (host.person / "mine").exists()


def test_the_state_of_haft_itself_can_be_neither_read_nor_changed(host):
    mine = host.state / "auto"
    host.stopped(f"cat {mine}/haft.db")
    host.stopped(f"ls -A {mine} | grep .")
    host.passes_bare(f"cat {mine}/haft.db")
    recorded = (mine / "audit" / "record.log").read_bytes()
    host.behind(f"rm -rf {host.state}; echo x > {mine}/haft.db")
    assert recorded
    assert (mine / "audit" / "record.log").read_bytes().startswith(recorded)
    assert (mine / "haft.db").read_bytes().startswith(b"SQLite format 3")


@only_root
def test_a_secret_of_the_system_stays_masked_when_it_is_replaced(host, monkeypatch):
    path = host.outside / "shadow"
    path.write_text(SECRET)
    monkeypatch.setattr(machine_secrets, "SECRETS", (str(path),))
    with ToolService.open_sync(
        host.workspace, approver=lambda _request: True, home=host.base / "other", installed=False
    ) as service:
        for _ in range(3):
            said = service.call("shell", {"command": f"cat {path}"}).wait()
            assert (said.status, said.output) == ("done", "")
            (host.outside / "shadow+").write_text(SECRET)
            (host.outside / "shadow+").rename(path)  # As `passwd` does it.
    assert SECRET in host.behind(f"cat {path}").output


@only_root
def test_the_systems_passwords_cannot_be_read_by_root(host):
    if not os.path.exists("/etc/shadow"):
        pytest.skip("there are none")
    assert host.behind("cat /etc/shadow").output == ""
    assert host.passes_bare("cat /etc/shadow") != ""


def test_keys_of_the_host_cannot_be_read(host, python):
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(os.uname().machine)
    if numbers is None:
        pytest.skip("the numbers of the system calls are not known here")
    add, keyctl = numbers
    key = libc.syscall(add, b"user", f"haft-{uuid.uuid4().hex}".encode(), b"s-kept-by-the-kernel", 20, -4)
    if key < 0:
        pytest.skip(f"no key can be kept here: {os.strerror(ctypes.get_errno())}")
    code = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
rings = [-4, -5]
try:
    rings += [int(line.split()[0], 16) for line in open("/proc/keys") if "_uid" in line]
except OSError:
    pass
for ring in rings:
    libc.syscall({keyctl}, 8, ring, -3)  # into the session's, and so into possession
words = ctypes.create_string_buffer(100)
if libc.syscall({keyctl}, 11, {key}, words, 100) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print(words.value.decode())
"""
    try:
        assert "s-kept-by-the-kernel" not in host.stopped(python(code))
        assert "s-kept-by-the-kernel" in host.passes_bare(python(code))
    finally:
        libc.syscall(keyctl, 9, key, -4)


# ── processes ────────────────────────────────────────────────────────────────────────────────────────────────────────

ATTACH = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
libc.ptrace.restype = ctypes.c_long
if libc.ptrace(16, int(sys.argv[1]), 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.waitpid(int(sys.argv[1]), 0x40000000)
libc.ptrace(17, int(sys.argv[1]), 0, 0)
"""


def test_the_hosts_processes_are_not_seen(host, sleeper):
    assert "sleep 600" not in host.behind("ps axww").output
    assert "sleep 600" in host.passes_bare("ps axww")
    listed = host.behind("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls -d /proc/[0-9]*").output
    assert "sleep 600" not in listed
    assert f"/proc/{sleeper.pid}\n" not in listed


def test_the_hosts_processes_cannot_be_signalled(host, sleeper):
    host.stopped(f"kill -KILL {sleeper.pid}")
    # To everyone it can see: never without a sandbox, so look before whether there is one.
    host.behind("[ $(ls -d /proc/[0-9]* | wc -l) -lt 20 ] && kill -KILL -1")
    assert sleeper.poll() is None
    host.passes_bare(f"kill -TERM {sleeper.pid}")
    assert sleeper.wait(5) == -signal.SIGTERM


@pytest.mark.parametrize("tracer", ["ptrace", "strace", "gdb"])
def test_the_hosts_processes_cannot_be_traced(tracer, host, sleeper, python):
    commands = {
        "ptrace": python(ATTACH, sleeper.pid),
        "strace": f"timeout 1 strace -p {sleeper.pid} 2>&1 | grep 'Process.*attached'",
        "gdb": f"gdb -nx -batch -p {sleeper.pid} -ex 'info registers' 2>&1 | grep -E '^(rip|pc) '",
    }
    if tracer != "ptrace":
        needs(tracer)
    host.stopped(commands[tracer])
    if IS_ROOT:
        host.passes_bare(commands[tracer])


@pytest.mark.parametrize("what", ["environ", "mem", "maps", "auxv", "io", "stack", "syscall", "personality"])
def test_nothing_is_read_of_the_init(what, host):
    if not os.path.exists(f"/proc/self/{what}"):
        pytest.skip(f"this kernel has no /proc/PID/{what}")
    said = host.stopped(f"LC_ALL=C head -c 1 /proc/1/{what}")
    assert "denied" in said or "not permitted" in said


@pytest.mark.parametrize("what", ["fd/0", "fd/3", "fdinfo/0", "cwd/.", "root/.", "exe", "task/1/fd/0", "ns/net"])
def test_nothing_is_reached_through_the_init(what, host):
    host.stopped(f"stat -L /proc/1/{what}")


def test_the_init_cannot_be_traced(host, python):
    assert "not permitted" in host.stopped(python(ATTACH, 1))


def test_the_init_cannot_be_entered(host):
    needs("nsenter")
    host.stopped("nsenter -t 1 -m -p true")


def test_the_init_is_deaf_to_signals(host):
    command = "for n in $(seq 1 64); do kill -$n 1 2>/dev/null; done; sleep 0.1; echo alive"
    assert host.behind(command).output == "alive\n"


def test_the_hosts_environment_is_nowhere_to_be_read(host, sleeper):
    found = host.behind("env; cat /proc/[0-9]*/environ").output
    assert "PATH=" in found
    assert "e-mark-of" not in found
    assert "e-mark-of-the-sleeper" in host.passes_bare(f"cat /proc/{sleeper.pid}/environ")
    host.stopped(f"cat /proc/{sleeper.pid}/environ")


def test_there_are_no_descriptors_but_the_three_streams(host, python):
    code = """
import os
for number in range(3, 1024):
    try:
        os.fstat(number)
        print(number, os.readlink(f"/proc/self/fd/{number}"))
    except OSError:
        pass
"""
    with open(host.outside / "held open", "w") as kept:
        os.set_inheritable(kept.fileno(), True)
        assert host.behind(python(code)).output == ""
        assert host.reading(python(code)) == (0, "")


# ── privileges ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_command_has_few_capabilities_or_none(host):
    expected = f"{0xDB if IS_ROOT else 0:016x}"
    for said in (host.behind("cat /proc/self/status").output, host.reading("cat /proc/self/status")[1]):
        has = dict(line.split(":\t") for line in said.splitlines() if ":\t" in line)
        assert has["CapEff"] == has["CapPrm"] == has["CapBnd"] == expected
        assert int(has["CapInh"], 16) == int(has["CapAmb"], 16) == 0
        assert has["NoNewPrivs"] == "1"
        assert has["Seccomp"] == "2"


@only_root
def test_no_capability_is_inherited_from_the_host(host):
    needs("setpriv")
    command = [
        "setpriv", "--inh-caps=+sys_admin,+sys_time", "--ambient-caps=+sys_time", sys.executable, "-m",
        "haft.surfaces.cli.main", "-w", host.workspace, "tools", "use", "shell", "--approve", "--json",
        "--only", "output", "--command", "grep -E 'Cap(Eff|Prm|Inh|Amb)' /proc/self/status",
    ]  # fmt: skip
    env = {**os.environ, "HAFT_HOME": str(host.base / "inheriting")}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    said = done.stdout.strip().strip('"').replace("\\n", "\n").replace("\\t", "\t")
    found = {name: int(value, 16) for name, value in (line.split(":\t") for line in said.split("\n") if line)}
    assert found == {"CapInh": 0, "CapPrm": 0xDB, "CapEff": 0xDB, "CapAmb": 0}


@only_root
def test_a_setuid_program_gains_nothing(host):
    program = host.workspace / "other-user"
    shutil.copy("/usr/bin/id", program)
    os.chown(program, 65534, 65534)
    program.chmod(0o6755)
    assert host.behind("./other-user -u; ./other-user -g").output == "0\n0\n"
    assert host.passes_bare("./other-user -u; ./other-user -g") == "65534\n65534\n"
    program.unlink()


@pytest.mark.skipif(IS_ROOT, reason="root needs no program for it")
def test_the_systems_setuid_programs_gain_nothing(host):
    needs("passwd")
    told = host.bare("passwd -S").output.split()
    if len(told) < 7:
        pytest.skip("`passwd` is not setuid here")
    assert len(host.behind("passwd -S").output.split()) < 7  # The rest stands in /etc/shadow.


def mounts(host) -> dict[str, tuple[list[str], str]]:
    """By place, the uppermost mount there: its options, and where it comes from."""
    lines = [line.split() for line in host.behind("cat /proc/self/mountinfo").output.splitlines()]
    assert len(lines) > 5
    return {words[4]: (words[5].split(","), words[words.index("-") + 2]) for words in lines}


def test_no_mount_honours_setuid_programs_or_devices(host):
    for place, (options, source) in mounts(host).items():
        assert "nosuid" in options, place
        if not place.startswith("/dev/"):
            assert "nodev" in options or (source == "haft" and "ro" in options), place


def test_everything_but_workspace_and_scratch_is_read_only(host):
    scratch = ("/tmp", "/var/tmp", "/run", "/dev/shm", "/dev/pts", "/home", "/root", str(host.person))
    own = (*scratch, str(host.workspace))
    found = [place for place, (options, _source) in mounts(host).items() if "rw" in options]
    assert str(host.workspace) in found
    assert [place for place in found if not place.startswith(own)] == []


MOUNTS = {"tmpfs": "mount -t tmpfs none {place}/directory", "bind": "mount --bind {place} {place}/directory"}


@pytest.mark.parametrize("what", MOUNTS)
def test_nothing_can_be_mounted(what, host):
    place = host.place()
    command = MOUNTS[what].format(place=place)
    host.stopped(command, sees_outside=True)
    host.stopped(f"mkdir -p /tmp/directory; {MOUNTS[what].format(place='/tmp')}")
    if IS_ROOT:
        host.passes_bare(f"unshare -m {command}")


@pytest.mark.parametrize(
    "command",
    [
        "umount /tmp",
        "umount -l /proc",
        "umount -l /dev/shm",
        "mount -o remount,bind,rw /",
        "mount -o remount,rw /proc",
        "unshare -m true",
        "unshare -p -f true",
        "unshare -n true",
        "unshare -Um mount -t tmpfs none /tmp",
        "unshare -Um umount -l /tmp",
        "unshare -Um mount -o remount,bind,rw /",
        "unshare -Urm true",
        "chroot / true",
        "pivot_root . .",
        "swapon /dev/null",
        "hostname $(hostname)x",
    ],
)
def test_no_mount_or_namespace_is_changed(command, host):
    needs(command.split()[0])
    host.stopped(command)


NEWER = {
    "open_tree": "428, -100, b'/', 0x80001",
    "fsopen": "430, b'tmpfs', 0",
    "mount_setattr": "442, -100, b'/', 0x8000, b'\\0' * 8 + b'\\1' + b'\\0' * 23, 32",
    "pivot_root": f"{155 if os.uname().machine == 'x86_64' else 41}, b'.', b'.'",
}


@pytest.mark.parametrize("call", NEWER)
def test_other_ways_to_mount_are_closed_too(call, host, python):
    code = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall({NEWER[call]}) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
"""
    assert "not permitted" in host.stopped(python(code))


# ── the machine ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_there_are_no_raw_devices(host):
    assert (
        host.behind("find /dev -type b; ls /dev/mem /dev/kmsg /dev/kvm /dev/fuse /dev/vsock 2>/dev/null").output == ""
    )
    host.stopped("ls /dev/sda /dev/vda /dev/nvme0n1")


@pytest.mark.parametrize("where", ["", "/tmp/", "/dev/shm/"])
def test_no_device_can_be_made(where, host):
    for words in ("b 8 0", "c 1 3"):
        host.stopped(f"mknod {where}device {words}")
    assert not (host.workspace / "device").exists()
    if IS_ROOT and not where:
        host.passes_bare("mknod device c 1 3 && rm device")


def test_the_devices_that_are_there_cannot_be_changed(host):
    before = os.stat("/dev/null")
    for command in ("touch /dev/null", "chmod 666 /dev/zero", "rm -f /dev/urandom", "touch /dev/new"):
        host.stopped(command)
    after = os.stat("/dev/null")
    assert (before.st_mode, before.st_ctime_ns) == (after.st_mode, after.st_ctime_ns)
    assert host.behind("echo x > /dev/null && head -c 1 /dev/urandom | wc -c").output == "1\n"


KERNEL = {
    "core_pattern": "/proc/sys/kernel/core_pattern",
    "modprobe": "/proc/sys/kernel/modprobe",
    "swappiness": "/proc/sys/vm/swappiness",
    "ksm": "/sys/kernel/mm/ksm/run",
}


@pytest.mark.parametrize("what", KERNEL)
def test_the_kernel_cannot_be_told_anything(what, host):
    path = KERNEL[what]
    if not os.path.exists(path):
        pytest.skip("this kernel has no such setting")
    host.stopped(f"words=$(cat {path}); echo $words > {path}")
    if IS_ROOT:
        host.passes_bare(f"words=$(cat {path}); echo $words > {path}")


def test_the_kernel_cannot_be_asked_by_sysrq(host):
    host.stopped("echo h > /proc/sysrq-trigger")


def test_no_cgroup_can_be_made_or_joined(host):
    places = [os.path.dirname(str(path)) for path in Path("/sys/fs/cgroup").glob("**/cgroup.procs")][:3]
    if not places:
        pytest.skip("no cgroups here")
    for place in places:
        host.stopped(f"mkdir {place}/haft-test-{os.getpid()}")
        host.stopped(f"echo $$ > {place}/cgroup.procs")
        assert not os.path.exists(f"{place}/haft-test-{os.getpid()}")


def test_no_module_can_be_loaded(host, python):
    number = {"x86_64": 313, "aarch64": 273}.get(os.uname().machine)
    if number is None:
        pytest.skip("the number of the system call is not known here")
    code = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall({number}, os.open("/dev/null", os.O_RDONLY), b"", 0) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
"""
    said = host.stopped(python(code))
    assert "not permitted" in said or "not implemented" in said


@pytest.mark.parametrize("name", [".ignore", ".rgignore", ".gitignore", ".git/info/exclude"])
def test_ripgrep_prints_no_line_of_a_file_that_an_ignore_file_leads_to(host, name):
    place = host.workspace / uuid.uuid4().hex[:8]
    (place / ".git" / "info").mkdir(parents=True)
    (place / "a.txt").write_text("needle\n")
    secret = host.place() / "secret"
    secret.write_text("a-mark-of-the-secret{\n")
    (place / name).symlink_to(secret)
    search = f"cd {place} && {find_ripgrep()} needle"
    assert (
        "a-mark-of-the-secret"
        in host.reading(search.replace("&&", "&& env -u RIPGREP_CONFIG_PATH"), sees_outside=True)[1]
    )
    for neutral in (False, True):
        assert host.reading(search, sees_outside=True, neutral=neutral) == (0, "a.txt:needle\n")
