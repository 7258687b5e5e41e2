"""Confines the egress process, which reads hostile bytes: it can start no program, write no file and read little."""

from __future__ import annotations

import contextlib
import encodings.idna  # noqa: F401  loaded now: later, its file may not be readable
import os
import resource
import sys

from haft.helper import kernel, landlock, seccomp

NOBODY = 65534
CAP_NET_BIND_SERVICE = 10
READABLE = (
    "/etc", "/usr", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store", "/run/systemd/resolve", "/run/resolvconf",
    "/run/NetworkManager", "/var/run/NetworkManager", "/dev/urandom", "/dev/null",
)  # fmt: skip
"""Where the resolver finds its configuration and libraries."""


def confine(kept: set[int]) -> str | None:
    """Confine this process; it keeps the descriptors `kept`. Returns what is missing on this machine, or None."""
    kernel.close_others(kept)
    kernel.leave_keyrings()
    _raise_open_files()
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    missing = []
    if abi := landlock.version():
        landlock.restrict_to_reading((*READABLE, own, sys.base_prefix, sys.prefix), abi=abi)
    else:
        missing.append("no Landlock")
    if os.geteuid() == 0:
        kernel.keep_capabilities_of_next_user()
        with contextlib.suppress(OSError):  # A container may have no other user.
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        kernel.drop_capabilities((CAP_NET_BIND_SERVICE,))
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0, "prctl(PR_SET_DUMPABLE)")
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1, "prctl(PR_SET_NO_NEW_PRIVS)")
    if (problem := seccomp.problem()) is None:
        seccomp.restrict(seccomp.egress_filter())
    else:
        missing.append(problem)
    return "; ".join(missing) or None


def _raise_open_files() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
