"""The kernel features that can confine a call on this machine, as the helper found out by trying them."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

from haft.contracts import PROCESS_LIMITS
from haft.values import dataclass, field

TCP_SINCE, SCOPES_SINCE = 4, 6


@dataclass(frozen=True, slots=True)
class Abilities:
    """The kernel features that one helper found on this machine."""

    namespaces: bool
    """Whether there are namespaces for users, mounts, processes and IPC: the confinement rests on these."""
    problem: str | None
    """Why there are no namespaces; None if there are."""
    network: bool = False
    """Whether haft can run a call without network."""
    packet_rules: bool = False
    """Whether connections to any port can be decided by host. Without this, a connection to a host that was not granted
    can wait for a person only on the ports 22, 80 and 443."""
    proc: bool = False
    landlock: int = 0
    """The version of Landlock; 0: none."""
    seccomp: bool = False
    """Whether filters can refuse the system calls that reach past namespaces."""
    seccomp_problem: str | None = None
    """Why system calls cannot be filtered; None if they can."""
    tracing: bool = False
    """Whether the filters also hold for a traced process. If not, no call may trace its processes."""
    cgroups: Mapping[str, int] = field(default_factory=dict)
    """For each controller, the cgroup version that has it."""
    io: bool = False
    """Whether the kernel counts the bytes that a process writes."""
    users: bool = False
    """Whether the helper needed a user namespace; root needs none."""
    supervised: bool = True
    """Whether there is a helper at all."""

    @classmethod
    def from_hello(cls, words: Mapping[str, Any]) -> Abilities:
        return cls(
            namespaces=bool(words["namespaces"]),
            problem=_explain_problem(words),
            network=bool(words.get("network")),
            packet_rules=bool(words.get("packet_rules")),
            proc=bool(words.get("proc")),
            landlock=words["landlock"],
            seccomp=words.get("seccomp_problem", "") is None,
            seccomp_problem=words.get("seccomp_problem"),
            tracing=bool(words.get("tracing")),
            cgroups=dict(words.get("cgroups") or {}),
            io=bool(words.get("accounts_io")),
            users=bool(words.get("user_namespace")),
        )

    @property
    def layers(self) -> tuple[str, ...]:
        found = {"namespaces": self.namespaces, "landlock": bool(self.landlock), "seccomp": self.seccomp}
        return tuple(name for name, there in found.items() if there and (name != "seccomp" or self.namespaces))

    def missing(self) -> list[str]:
        """One sentence for each protection that this machine lacks."""
        found = []
        if not self.namespaces:
            found.append(f"no namespaces: {self.problem}")
        if not self.landlock:
            found.append("no Landlock, the second layer: this kernel does not have it, or it is turned off")
        elif self.landlock < SCOPES_SINCE:
            found.append(f"Landlock {self.landlock} is old: a call with network can reach abstract sockets of the host")
        if self.namespaces and not self.seccomp:
            why = self.seccomp_problem
            found.append(f"no seccomp filters: {why}; calls can reach kernel keyrings, rare sockets and host sockets")
        if self.namespaces and not self.network:
            effect = "haft can deny a call only TCP" if self.landlock >= TCP_SINCE else "every call has the network"
            found.append(f"no network namespaces: {effect}")
        if self.namespaces and not self.proc:
            found.append("no private /proc: calls have no /proc at all, and only rlimits bound them")
        return found

    def enforced(self) -> dict[str, str]:
        """For each limit on processes, the mechanism that enforces it on this machine, or `nothing`."""
        if not self.supervised:
            return dict.fromkeys(PROCESS_LIMITS, "nothing")
        watching = "watching" if self.proc or not self.namespaces else "nothing"
        found = dict.fromkeys(PROCESS_LIMITS, watching)
        found["max_written_file_bytes"] = found["max_open_files"] = "rlimit"
        if not self.io:
            found["max_written_bytes"] = "nothing"
        if "memory" in self.cgroups:
            found["memory_bytes"] = f"cgroup-v{self.cgroups['memory']}"
        if "pids" in self.cgroups:
            found["max_processes"] = f"cgroup-v{self.cgroups['pids']} and {watching}"
        return found


NOT_LINUX = Abilities(namespaces=False, problem="this is not Linux", supervised=False)


def _explain_problem(words: Mapping[str, Any]) -> str | None:
    problem = words.get("problem")
    if problem is None:
        return None if words["namespaces"] else "they were not requested"
    said = str(problem)
    number = words.get("errno")
    if "unshare" in said and number in (errno.EPERM, errno.EACCES):
        return f"{said}; a container, seccomp or `kernel.apparmor_restrict_unprivileged_userns` forbids them"
    if "unshare" in said and number in (errno.ENOSPC, errno.EUSERS):
        return f"{said}; `user.max_user_namespaces` is used up or 0"
    if number == errno.ENOSYS:
        return f"{said}; they need Linux 5.12 or newer"
    return said
