"""Secret files of the machine that no tool may see if root runs haft, since file modes do not stop root.

The sandbox masks them for commands, and `Root` refuses those that are inside the workspace. If another user runs haft,
the kernel denies access to these files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

SECRETS: Final = (
    "/etc/NetworkManager/system-connections",
    "/etc/docker/key.json",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ipsec.secrets",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/mysql/debian.cnf",
    "/etc/pki/tls/private",
    "/etc/netplan",
    "/etc/ppp",
    "/etc/security/opasswd",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
    "/etc/sudoers.d",
    "/etc/wireguard",
    "/var/backups",
    "/swap.img",
    "/swapfile",
    "/var/crash",
    "/var/lib/cloud",
    "/var/lib/containerd",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/lib/mysql",
    "/var/lib/postgresql",
    "/var/lib/private",
    "/var/lib/sss",
    "/var/lib/systemd/coredump",
    "/var/spool/cron",
)
"""Files and directories that are masked if root runs haft; `secrets_of_root` adds the ssh keys of the machine."""


def secrets_of_root() -> Iterator[str]:
    """The secret files that root could read; empty for other users."""
    if os.geteuid() == 0:
        yield from (path for path in SECRETS if os.path.lexists(path) and not os.path.islink(path))
        try:
            names = os.listdir("/etc/ssh")
        except OSError:
            names = []
        yield from (f"/etc/ssh/{name}" for name in sorted(names) if name.endswith("_key"))
