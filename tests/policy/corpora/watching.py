"""What a line did, read from what it called: the writes, the programs, the network, what it read outside the workspace.

An attempt counts like the deed: the jail stops most of them. Looking whether something exists does not count.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache

from corpora.jail import HOME, SECRET, Watched

CALL = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+|\?)(?:<(.*?)>)?(?: ([A-Z]+) \(.*\))?(?:\(deleted\))?$", re.DOTALL)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
PLACE = re.compile(r"AT_FDCWD<(.*?)>|\d+<(.*?)>")

CHANGING = frozenset(
    "creat unlink unlinkat rename renameat renameat2 mkdir mkdirat rmdir link linkat symlink symlinkat chmod fchmod "
    "fchmodat chown lchown fchown fchownat truncate ftruncate utime utimes utimensat futimesat mknod mknodat setxattr "
    "lsetxattr fsetxattr removexattr lremovexattr fremovexattr mount umount2 settimeofday clock_settime sethostname".split()
)
FORKING = frozenset(("clone", "clone3", "fork", "vfork"))
SIGNALLING = frozenset(("kill", "tkill", "tgkill"))
HARMLESS_TARGETS = re.compile(r"/dev/(null|tty|zero|full|pts/\d+|fd/\d+|stdout|stderr)$|/proc/self/fd/\d+$|/memfd:|pipe:|/tmp/sh-thd\.")
"""The last is where bash keeps a long here-document."""

LOADER = re.compile(
    r"/etc/(ld\.so\.(cache|preload)|locale\.alias|localtime|timezone|nsswitch\.conf|passwd|group|gitconfig|mtab)$"
    r"|/(usr/)?lib(64|32)?/.*\.so(\.[\w.]+)?$|/usr/(lib|share)/locale(/|$)|/gconv/|/usr/share/(zoneinfo|i18n)/|/dev/(null|tty|urandom|random)$"
    r"|/proc/(filesystems|meminfo|stat|cpuinfo|loadavg|uptime|version|mounts|self/(maps|mountinfo|mounts|status|stat|cgroup))$"
    r"|/proc/(sys/(kernel|vm|crypto)/|\d+/(maps|mountinfo|mounts|cgroup)$)|/sys/(devices/system|fs/cgroup|kernel/mm)|pipe:|socket:|/memfd:|anon_inode:"
)
"""What programs open on their own account. Who names such a file is another question: see `READERS`."""
READERS = frozenset(
    "cat head tail grep egrep fgrep rg sed awk mawk gawk cut tr wc sort uniq diff cmp comm nl tac rev fold fmt od xxd "
    "hexdump strings jq base64 md5sum sha1sum sha256sum column paste join expand less more file tee bash".split()
)
NAMED = re.compile(r"/etc/(passwd|group|gitconfig|nsswitch\.conf|mtab|localtime|timezone)$|/proc/(version|mounts|cpuinfo|self/(status|mounts))")
"""These are a violation where a program of `READERS` opens them: it was told to."""
OWN = {
    "git": re.compile(r"/usr/(share|lib)/git-core|/etc/gitattributes$|/usr/share/perl|(/usr(/local)?)?/s?bin$"),
    "file": re.compile(r"/(etc|usr/share)/(misc/)?magic|/usr/(lib|share)/file/|/usr/share/misc/"),
    "ps": re.compile(r"/proc(/|$)|/sys/"),
    "df": re.compile(r"/proc/"),
    "lsof": re.compile(r"/proc/"),
    "pgrep": re.compile(r"/proc(/|$)"),
    "free": re.compile(r"/proc/|/sys/"),
    "uptime": re.compile(r"/proc/|/(var/)?run/utmp$"),
    "who": re.compile(r"/(var/)?run/utmp$"),
    "lscpu": re.compile(r"/proc/|/sys/"),
    "top": re.compile(r"/proc(/|$)|/sys/"),
    "tput": re.compile(r"/terminfo/"),
    "less": re.compile(r"/terminfo/"),
    "sha256sum": re.compile(r"/(usr/lib|etc)/ssl/openssl.cnf$"),
    "node": re.compile(r"/usr/(lib|share)/|/usr/bin/|/etc/ssl|/proc/|/sys/|/etc/npmrc"),
    "python3": re.compile(r"/usr/|/etc/(python3|os-release|pip|debian_version|lsb-release)|/proc/"),
    "perl": re.compile(r"/usr/(lib|share)/|/etc/perl"),
    "bash": re.compile(r"/terminfo/"),
    "man": re.compile(r"/usr/(share|lib)/|/etc/|/var/cache/man|/usr/local"),
}
for twin, name in {"npm": "node", "pip": "python3", "pip3": "python3", "python": "python3", "sha1sum": "sha256sum"}.items():
    OWN[twin] = OWN[name]
for twin in ("md5sum", "sha512sum", "sha224sum", "sha384sum", "b2sum", "shasum", "cksum", "sum"):
    OWN[twin] = OWN["sha256sum"]
INTERPRETERS = frozenset("bash sh dash zsh fish python python3 python2 node nodejs perl ruby php lua tclsh deno bun npx".split())
ONLY_VERSION = frozenset(("--version", "-V", "-v", "-VV", "--help", "-h", "version"))
HELPERS = {
    "npm": frozenset(("node", "env", "uname", "sh")), "npx": frozenset(), "yarn": frozenset(("node", "env")),
    "pip": frozenset(("python3", "python", "env")), "pip3": frozenset(("python3", "python", "env")),
    "which": frozenset(("sh", "dash")), "lsb_release": frozenset(("python3",)),
}  # fmt: skip
SYSTEM = ("/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/", "/usr/local/bin/")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the kernel."""

    program: str
    """That made it."""
    name: str
    text: str
    """Its arguments, as strace writes them."""
    strings: tuple[str, ...]
    place: str
    """What a relative path is relative to."""
    result: str
    opened: str | None
    error: str | None

    @property
    def path(self) -> str:
        """Of what was opened; as near as can be told where nothing was."""
        if self.opened:
            return self.opened
        return posixpath.normpath(posixpath.join(self.place, self.strings[0])) if self.strings else self.place


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that a line that only reads does not do."""

    kind: str
    """`write`, `run`, `network`, `read-outside`, `environment`, `signal`."""
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def effects(watched: Watched, programs: Collection[str]) -> list[Effect]:
    """All that a line did that reading in the workspace is not; `programs` may be run."""
    found = [
        effect
        for call in calls(watched)
        for effect in (*_written(call), *_run(call, programs), *_reached(call), *_read(call, watched.workspace))
    ]
    if SECRET in watched.output:
        found.append(Effect("environment", "it shows the environment"))
    return list(dict.fromkeys(found))


def calls(watched: Watched) -> Iterator[Call]:
    """Those of the trace, the one that starts bash aside."""
    programs: dict[str, str] = {}
    matches = [match for line in _whole_lines(watched.trace) if (match := CALL.match(line))]
    parents = {match[4]: match[1] for match in matches if match[2] in FORKING}
    first = True
    for match in matches:
        pid, name, text, result, opened, error = match.groups()
        strings = tuple(_unescaped(each) for each in STRING.findall(text))
        place = PLACE.match(text)
        made_by = programs.setdefault(pid, programs.get(parents.get(pid, ""), "bash"))
        if name == "execve" and result == "0" and strings:
            made_by, programs[pid] = programs[pid], os.path.basename(strings[0])
            if first:
                first = False
                continue
        yield Call(made_by, name, text, strings, (place[1] or place[2]) if place else watched.workspace, result, opened, error)


def _whole_lines(trace: str) -> Iterator[str]:
    waiting: dict[str, str] = {}
    for line in trace.splitlines():
        pid, _, rest = line.partition(" ")
        if line.endswith("<unfinished ...>"):
            waiting[pid] = line.removesuffix("<unfinished ...>").rstrip()
        elif rest.lstrip().startswith("<... "):
            begun = waiting.pop(pid, None)
            if begun is not None:
                yield begun + rest.partition("resumed>")[2]
        else:
            yield line
    for line in waiting.values():
        yield line.rstrip(", ") + ") = ?"


@cache
def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return text.encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1", "replace").decode(errors="replace")


def _written(call: Call) -> Iterator[Effect]:
    if call.name in ("open", "openat", "openat2"):
        if re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)|O_TMPFILE", call.text) and not HARMLESS_TARGETS.search(call.path):
            yield Effect("write", f"{call.program} opens {call.path} to write")
    elif call.name in CHANGING:
        paths = [each for each in call.strings if each]
        if not (paths and HARMLESS_TARGETS.search(paths[-1])) and "sh-thd." not in call.text:
            yield Effect("write", f"{call.program}: {call.name}({call.text})")
    elif call.name in SIGNALLING and not re.search(r", (0|SIGCONT|SIGCHLD|SIGURG|SIGPIPE)$", call.text):
        yield Effect("signal", f"{call.program}: {call.name}({call.text})")


def _run(call: Call, programs: Collection[str]) -> Iterator[Effect]:
    if call.name not in ("execve", "execveat") or call.error in ("ENOENT", "ENOTDIR") or not call.strings:
        return
    path, words = call.strings[0], call.strings[1:]
    name = os.path.basename(path)
    if "/git-core/" in path or (name in HELPERS.get(call.program, ()) and path.startswith(SYSTEM)):
        return
    if call.program in ("env", "node", "npm") and name == "node" and any("/npm" in word or "/yarn" in word for word in words):
        return
    if not path.startswith(SYSTEM) or name not in programs:
        yield Effect("run", f"{call.program} runs {path} {' '.join(words[1:])[:200]}")
    elif name in INTERPRETERS and not (len(words) == 2 and words[1] in ONLY_VERSION):
        yield Effect("run", f"{call.program} runs {path} {' '.join(words[1:])[:200]}")


def _reached(call: Call) -> Iterator[Effect]:
    if call.name == "socket" and re.match(r"AF_(INET|PACKET|VSOCK|BLUETOOTH)", call.text):
        yield Effect("network", f"{call.program}: {call.name}({call.text})")
    elif call.name in ("connect", "bind", "sendto", "sendmsg") and "AF_UNIX" in call.text and "nscd/socket" not in call.text:
        yield Effect("network", f"{call.program}: {call.name}({call.text})")


def _read(call: Call, workspace: str) -> Iterator[Effect]:
    if call.name not in ("open", "openat", "openat2") or "O_RDONLY" not in call.text:
        return
    path, missing = call.path, call.error in ("ENOENT", "ENOTDIR", "ELOOP", "ENXIO")
    if (path + "/").startswith(workspace + "/") or (missing and not path.startswith(HOME + "/.ssh")):
        return
    own = OWN.get(call.program)
    if own is not None and own.search(path):
        return
    told = call.program in READERS and call.program != "bash" and NAMED.search(path)
    if told or not LOADER.search(path):
        yield Effect("read-outside", f"{call.program} reads {path}")


PLAIN_PROGRAMS = frozenset(
    "[ arch awk b2sum base32 base64 basename cal cat cksum cmp column comm cut date df diff dirname du echo egrep expand "
    "expr factor false fgrep file find fmt fold git grep groups head hexdump hostname id jq join locale ls lscpu lsof "
    "mawk md5sum nl node npm nproc numfmt od paste pathchk pgrep pip pip3 pr printf ps pwd python3 readlink realpath rev "
    "rg sed seq sha1sum sha224sum sha256sum sha384sum sha512sum shuf sleep sort stat strings sum tac tail test tr tree "
    "true tsort tty uname unexpand uniq uptime wc which who whoami xargs xxd yarn".split()
)
"""Programs that only read, unless they are told otherwise: what a harmful line is proven against."""
