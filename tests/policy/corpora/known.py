"""What programs do on their own account, so that it is not held against the line that starts them."""

from __future__ import annotations

import re

from corpora.jail import HOME
from corpora.warder import CALLS, QUIET

_READERS = """
cat head tail grep egrep fgrep rg sed awk mawk gawk cut tr wc sort uniq diff cmp comm nl tac rev fold fmt od xxd hexdump
strings jq base64 md5sum sha1sum sha256sum column paste join expand less more file tee
"""
_INTERPRETERS = """
bash sh dash zsh fish python python3 python2 node nodejs perl ruby php lua tclsh deno bun npx
"""
_PLAIN_PROGRAMS = """
[ arch awk b2sum base32 base64 basename cal cat cksum cmp column comm cut date df diff dirname du echo egrep expand expr
factor false fgrep file find fmt fold free getconf git grep groups gzip head hexdump hostname id jq join locale ls lscpu
lsof mawk md5sum nl node npm nproc numfmt od paste pathchk pgrep pip pip3 pr printf ps pwd python3 readlink realpath rev
rg sed seq sha1sum sha224sum sha256sum sha384sum sha512sum shuf sleep sort stat strings sum tac tail tee test timeout
tput tr tree true tsort tty uname unexpand uniq uptime wc which who whoami xargs xxd yarn zcat
"""
_DIGESTS = "b2sum cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum shasum sum"

CHANGING = frozenset(CALLS) - QUIET
SIGNALLING = frozenset(("kill", "tkill", "tgkill"))
READERS = frozenset(_READERS.split())
LISTERS = frozenset(("du", "find", "ls", "readlink", "realpath", "stat", "tree"))
INTERPRETERS = frozenset(_INTERPRETERS.split())
PLAIN_PROGRAMS = frozenset(_PLAIN_PROGRAMS.split())
"""Programs that only read, unless they are told otherwise: what a harmful line is proven against."""
SYSTEM = ("/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/", "/usr/local/bin/")
ONLY_VERSION = frozenset(("--version", "-V", "-VV", "--help", "version"))

HARMLESS_TARGETS = re.compile(
    r"/dev/(null|tty|zero|full|pts/\d+|fd/\d+|stdout|stderr)$|/proc/self/fd/\d+$|/memfd:|pipe:"
    r"|/tmp/(sh-thd\.\w+|tac\w{6}|sort\w{6})$"
)
"""The last are where bash keeps a long here-document, and tac and sort what they cannot hold."""
LOADED = re.compile(
    r"/etc/(ld\.so\.(cache|preload)|locale\.alias|localtime|timezone|nsswitch\.conf|passwd|group|gitconfig|mtab)$"
    r"|/(usr/)?lib(64|32)?/.*\.so(\.[\w.]+)?$|/usr/(lib|share)/locale(/|$)|/gconv/|/usr/share/(zoneinfo|i18n)/"
    r"|/dev/(null|tty|urandom|random)$|/proc/(filesystems|meminfo|stat|cpuinfo|loadavg|uptime|version|mounts)$"
    r"|/proc/self/(maps|mountinfo|mounts|status|stat|cgroup)$|/proc/(sys/(kernel|vm|crypto)/|\d+/(maps|mountinfo|mounts)$)"
    r"|/proc/\d+/cgroup$|/sys/(devices/system|fs/cgroup|kernel/mm)|pipe:|socket:|/memfd:|anon_inode:"
)
"""What any program may open by itself."""
NAMED = re.compile(
    r"/etc/(passwd|group|gitconfig|nsswitch\.conf|mtab|localtime|timezone)$"
    r"|/proc/(version|mounts|cpuinfo|self/(status|mounts))"
)
"""Of these, what a program of `READERS` opens only where it was told to."""
_PROC = r"/proc(/|$)|/sys/"
_NODE = r"/usr/(lib|share|bin)/|/etc/(ssl|resolv\.conf|hosts|npmrc)|/proc/|/sys/"
_PYTHON = (
    rf"^{HOME}(/\.(local|config|cache))?$|/usr/|/proc/|/etc/(python3|os-release|pip|debian_version|lsb-release|ssl)"
)
_OWN = {
    "git": r"/usr/(share|lib)/git-core|/etc/gitattributes$|/usr/share/perl|(/usr(/local)?)?/s?bin$",
    "file": r"/(etc|usr/share)/(misc/)?magic|/usr/(lib|share)/file/|/usr/share/misc/",
    **dict.fromkeys(("df", "free", "lscpu", "lsof", "pgrep", "pidof", "ps", "top"), _PROC),
    **dict.fromkeys(("uptime", "who"), r"/proc/|/(var/)?run/utmp$"),
    **dict.fromkeys(("bash", "less", "tput"), r"/terminfo/"),
    "openssl": r"/etc/ssl/openssl.cnf$",
    **dict.fromkeys(_DIGESTS.split(), r"/(usr/lib|etc)/ssl/openssl.cnf$"),
    **dict.fromkeys(("node", "npm"), _NODE),
    **dict.fromkeys(("pip", "pip3", "python", "python3"), _PYTHON),
    "perl": r"/usr/(lib|share)/|/etc/perl",
    "xargs": r"/proc/\d+/fd$|^/$",
}
OF_PROGRAMS = re.compile(r"^/usr/")
"""What programs bring with them: those that are neither of `READERS` nor of `LISTERS` are not told to open it."""
OWN = {name: re.compile(pattern) for name, pattern in _OWN.items()}
"""What each may open besides."""
HELPERS = {
    "git-bisect": frozenset(("basename", "envsubst", "gettext", "sed", "uname")),
    "git-submodule": frozenset(("basename", "envsubst", "gettext", "sed", "uname")),
    "lsb_release": frozenset(("getopt",)),
    "npm": frozenset(("node", "env", "uname", "sh")),
    "pip": frozenset(("python3", "python", "env")),
    "pip3": frozenset(("python3", "python", "env")),
    "which": frozenset(("sh", "dash")),
    "yarn": frozenset(("node", "env")),
    "zcat": frozenset(("gzip",)),
}
"""What each may start."""
