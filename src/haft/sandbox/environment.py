"""The environment variables of a tool: built from a short list, never inherited.

haft checks the values of two variables only. It keeps an entry of PATH if the entry is absolute, outside the workspace,
and not writable for everyone. It keeps a locale only if programs with this locale read text as UTF-8 or as plain bytes,
because haft analyses command lines in the same way.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from typing import Final

from haft.contracts import ALWAYS_PASSED as ALWAYS_PASSED
from haft.contracts import NETWORK_VARIABLES as NETWORK_VARIABLES
from haft.contracts import PLAIN_LOCALE, PROXY_VARIABLES, Confinement, reads_utf8

DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

NEUTRAL: Final = {
    "GIT_CONFIG_COUNT": "4",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": "/dev/null",
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
    "GIT_CONFIG_KEY_2": "diff.autoRefreshIndex",
    "GIT_CONFIG_VALUE_2": "false",
    "GIT_CONFIG_KEY_3": "log.showSignature",
    "GIT_CONFIG_VALUE_3": "false",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "npm_config_logs_max": "0",
    "npm_config_update_notifier": "false",
}
"""Variables for commands that nobody reviewed: with them, git, npm and pip run no hook, monitor or pager, take no
optional lock, and ask no server for updates."""

QUIET: Final = {
    "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",
    "RIPGREP_CONFIG_PATH": os.path.join(os.path.dirname(os.path.abspath(__file__)), "quiet.ripgreprc"),
}
"""Variables for every call. `RIPGREP_CONFIG_PATH` keeps ripgrep from printing the lines of ignore files that it cannot
parse: such a file may be a link to any other file. This variable is not in `NEUTRAL`, because a command line of which a
rule allows one part runs without `NEUTRAL`. `GIT_DISCOVERY_ACROSS_FILESYSTEM` lets git find a repository above the
workspace, although a layer makes the workspace a separate mount."""


OWN_PROXY: Final = {
    "HTTPS_PROXY": "http://198.18.0.1:3128",
    "https_proxy": "http://198.18.0.1:3128",
    "NO_PROXY": "localhost,127.0.0.1,::1",
    "no_proxy": "localhost,127.0.0.1,::1",
}
"""The proxy variables of a call whose network is decided by host, if the host's environment names a proxy: then some
programs are set up to use one. The address belongs to the process that checks and copies all connections of the call.
Other calls need no proxy: without one, programs say which host they could not reach."""


INSIDE: Final = "HAFT_INSIDE"
"""The variable that tells programs that they run inside a call; haft refuses to start there."""


def built_environment(host: Mapping[str, str], workspace: str, confinement: Confinement) -> dict[str, str]:
    """The variables that a tool gets: the few that programs need, and those that were granted."""
    env = {name: host[name] for name in ALWAYS_PASSED if name in host}
    env.update({name: value for name, value in host.items() if name.startswith("LC_")})
    if confinement.network:
        env.update({name: value for name, value in host.items() if name.upper() in NETWORK_VARIABLES})
    env.update(QUIET)
    env.update({name: host[name] for name in confinement.env if name in host})
    if isinstance(confinement.network, tuple):
        # A proxy of the host would reach every host, so not even a grant passes its variables on.
        env = {name: value for name, value in env.items() if name.upper() not in PROXY_VARIABLES}
        if any(name.upper() in ("ALL_PROXY", "HTTPS_PROXY") for name in host):
            env.update(OWN_PROXY)
    # LOCPATH, the directory of locale files, is not checked: only a grant of the person passes it on.
    chosen = [name for name in env if name.startswith(("LC_", "LANG"))]
    env.update({name: PLAIN_LOCALE for name in chosen if not reads_utf8(name, env[name])})
    programs = None if confinement.activated is None else os.path.join(confinement.activated, "bin")
    path = DEFAULT_PATH if confinement.neutral else safe_path(host.get("PATH", DEFAULT_PATH), workspace, programs)
    env["PATH"] = with_entries(path, confinement.path)
    env[INSIDE] = "1"
    if confinement.subagent:
        env["AGENT_IS_SUBAGENT"] = "1"
    if "namespaces" in confinement.layers:
        env["TMPDIR"] = "/tmp"  # noqa: S108  the private one of the call
        env["UV_LINK_MODE"] = "copy"  # uv's cache is another mount, and hard links do not cross mounts.
    if confinement.activated is not None and not confinement.neutral:
        env["VIRTUAL_ENV"] = confinement.activated
    if confinement.neutral:
        env.update(NEUTRAL)
    return env


def with_entries(path: str, added: Sequence[str]) -> str:
    """PATH with the granted directories at its end, so that they hide no program in an earlier directory."""
    return os.pathsep.join(dict.fromkeys((*path.split(os.pathsep), *added)))


def safe_path(path: str, workspace: str, honoured: str | None = None) -> str:
    """PATH without relative entries (they would name the workspace), without entries inside the workspace except
    `honoured`, and without directories in which everyone may put a program."""
    inside = workspace.rstrip("/") + "/"
    kept = [
        entry
        for entry in path.split(os.pathsep)
        if os.path.isabs(entry)
        and (os.path.normpath(entry) == honoured or not (os.path.normpath(entry) + "/").startswith(inside))
        and not _anyone_may_write(entry)
    ]
    return os.pathsep.join(kept) or DEFAULT_PATH


def _anyone_may_write(directory: str) -> bool:
    try:
        return bool(os.stat(directory).st_mode & stat.S_IWOTH)
    except OSError:
        return False
