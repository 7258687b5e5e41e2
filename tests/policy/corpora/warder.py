"""The inside of the jail: builds it around itself, then runs one line after another and writes down what each calls.

Started by `jail.py` in namespaces of its own (user, mount, process, network). Everything is read-only but the
workspace, /tmp and the home directory in it, all of which live in memory; a line has no capability and little of
everything. Where a line may have changed something, the next one gets all of it anew.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 16384, 1 << 18
SYS_MOUNT_SETATTR, AT_RECURSIVE, AT_FDCWD, MOUNT_ATTR_RDONLY = 442, 0x8000, -100, 1
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 24, 38, 1, 36
_CALLS = """
clone clone3 fork vfork execve execveat connect sendto sendmsg socket bind open openat openat2 creat unlink unlinkat
rename renameat renameat2 mkdir mkdirat rmdir link linkat symlink symlinkat chmod fchmod fchmodat fchmodat2 chown lchown
fchown fchownat truncate ftruncate utime utimes utimensat futimesat mknod mknodat setxattr lsetxattr fsetxattr
setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr mount umount2 kill tkill tgkill chdir fchdir
settimeofday clock_settime sethostname
"""
CALLS = _CALLS.split()
"""Those that an architecture or strace does not know are left out: aarch64 has none that `…at` can stand for."""
QUIET = frozenset(CALLS[: CALLS.index("creat")]) | {"kill", "tkill", "tgkill", "chdir", "fchdir"}
"""Those that change no file by themselves."""
SECRETS = {".ssh/id_rsa": "a secret key\n", ".netrc": "machine secret\n", ".bashrc": "# start-up\n"}
OUTPUT_KEPT = 20_000


def _fail(what: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    if LIBC.mount(*encoded, ctypes.c_ulong(flags), None if data is None else data.encode()):
        _fail(f"cannot mount {target}")


def _build(workspace: str) -> None:
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    with contextlib.suppress(OSError):  # Where parts of it are covered a new one is refused: the old one will do.
        _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY, 0, 0, 0)
    if LIBC.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, ctypes.byref(attributes), 32):
        _fail("cannot make everything read-only")
    _mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=256m,mode=1777")
    if not os.path.isdir(workspace):
        os.makedirs(workspace)
    if not workspace.startswith("/tmp/"):
        _mount("tmpfs", workspace, "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=755")
    if LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        _fail("cannot take in orphans")


class Template:
    """The workspace as it was, in memory, to be made anew."""

    def __init__(self, place: str) -> None:
        self.entries = []
        for directory, folders, files in os.walk(place):
            for name in folders + files:
                path = os.path.join(directory, name)
                found = os.lstat(path)
                if stat.S_ISLNK(found.st_mode):
                    content = os.readlink(path)
                elif stat.S_ISREG(found.st_mode):
                    with open(path, "rb") as file:
                        content = file.read()
                else:
                    content = None
                self.entries.append((os.path.relpath(path, place), found.st_mode, found.st_mtime_ns, content))

    def make(self, place: str) -> None:
        for name in os.listdir(place):
            _erase(os.path.join(place, name))
        for name, mode, mtime, content in self.entries:
            path = os.path.join(place, name)
            if content is None:
                os.mkdir(path)
            elif isinstance(content, str):
                os.symlink(content, path)
            else:
                with open(path, "wb") as file:
                    file.write(content)
                os.chmod(path, stat.S_IMODE(mode))
                os.utime(path, ns=(mtime, mtime))


def _erase(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        os.unlink(path)


def _make_home(home: str) -> None:
    for name in os.listdir("/tmp"):
        path = os.path.join("/tmp", name)
        if path not in KEPT:
            _erase(path)
    for name, text in SECRETS.items():
        os.makedirs(os.path.dirname(os.path.join(home, name)), exist_ok=True)
        with open(os.path.join(home, name), "w") as file:
            file.write(text)


def _fewer_rights() -> None:
    for kind, most in (
        (resource.RLIMIT_CPU, 4),
        (resource.RLIMIT_FSIZE, 16 << 20),
        (resource.RLIMIT_NPROC, 200),
        (resource.RLIMIT_DATA, 1 << 30),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    for capability in range(64):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    empty = (ctypes.c_uint32 * 6)()
    LIBC.capset(ctypes.byref((ctypes.c_uint32 * 2)(0x20080522, 0)), ctypes.byref(empty))


def _end_all() -> None:
    """What is left of the line; the warder is the first process of its namespace, so all others are the line's."""
    with contextlib.suppress(OSError):
        os.kill(-1, signal.SIGKILL)
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def run(order: dict, workspace: str) -> dict:
    made = os.memfd_create("trace")
    trace = fcntl.fcntl(made, fcntl.F_DUPFD, 700)
    os.close(made)
    output = os.fdopen(os.memfd_create("output"), "w+b")
    arguments = ["strace", "-f", "-qq", "-y", "-s", "300", "-e", "signal=none", "--seccomp-bpf"]
    arguments += ["-e", f"trace={','.join('?' + name for name in CALLS)}", "-o", f"/proc/self/fd/{trace}", "--"]
    process = subprocess.Popen(
        [*arguments, "bash", "-c", order["command"]],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=workspace,
        env=order["env"],
        pass_fds=(trace,),  # Of a number that no line speaks of.
        preexec_fn=_fewer_rights,
        start_new_session=True,
    )
    late = False
    try:
        code = process.wait(order["timeout"])
    except subprocess.TimeoutExpired:
        late, code = True, None
    _end_all()
    output.seek(0)
    said = output.read(OUTPUT_KEPT).decode(errors="replace")
    output.close()
    with os.fdopen(trace, "rb") as file:
        file.seek(0)
        calls = file.read(4_000_000).decode(errors="replace")
    return {"code": code, "late": late, "output": said, "trace": calls}


def main() -> None:
    global KEPT
    workspace, home = sys.argv[1:3]
    template = Template(workspace)
    _build(workspace)
    KEPT = {os.path.join("/tmp", workspace.split("/")[2])} if workspace.startswith("/tmp/") else set()
    fresh = False
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if not fresh:
            _make_home(home)
            template.make(workspace)
        try:
            found = run(order, workspace)
        except (OSError, ValueError, subprocess.SubprocessError) as problem:
            found = {"code": None, "late": False, "output": f"cannot be run: {problem}", "trace": "", "unrun": True}
        fresh = not _changed(found["trace"])
        print(json.dumps(found), flush=True)


CHANGING = tuple(f" {name}(" for name in CALLS if name not in QUIET)


def _changed(trace: str) -> bool:
    return any(mark in trace for mark in ("O_WRONLY", "O_RDWR", "O_CREAT", *CHANGING))


KEPT: set[str] = set()
if __name__ == "__main__":
    main()
