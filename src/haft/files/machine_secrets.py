"""Files of the machine that no tool is shown where root runs haft: no file mode keeps root from them.

The sandbox masks them for commands, and `Root` refuses them where the workspace holds some. Other users are kept from
them by the kernel.
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
"""Masked for root, whom no file mode stops. The host's ssh keys are added."""


def secrets_of_root() -> Iterator[str]:
    """What root could read anywhere."""
    if os.geteuid() == 0:
        yield from (path for path in SECRETS if os.path.lexists(path) and not os.path.islink(path))
        try:
            names = os.listdir("/etc/ssh")
        except OSError:
            names = []
        yield from (f"/etc/ssh/{name}" for name in sorted(names) if name.endswith("_key"))
