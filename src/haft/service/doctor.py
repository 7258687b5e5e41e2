"""Checks what this machine can do and what is broken. Each check that finds a problem says what to do about it.

Surfaces print the results. A check never raises: if it fails, the error is its result. Checks repair nothing, except
that they mark the runs of dead hosts as ended, like every process that reads the state home.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from haft.audit import verify
from haft.builtin import builtin_tools, find_ripgrep
from haft.config import Config, load_config
from haft.contracts import (
    BadConfig,
    Command,
    EndedChild,
    Exit,
    HaftError,
    Listing,
    Stream,
    ToolFailed,
    ToolSpec,
    check_owned,
)
from haft.files import Root
from haft.policy import Rule, check_rule, check_rules, shapes_of
from haft.registry import Catalogue
from haft.sandbox import Abilities, Mode, Sandbox
from haft.service.changes_checks import cache_check, coverage_checks, store_checks
from haft.service.checks import Check, CheckState
from haft.service.client_checks import client_checks
from haft.service.permissions import missing_of
from haft.service.providers import ListedProvider, ProvidersFacade
from haft.service.state_reader import has_state, recover_dead_hosts
from haft.service.subagent_checks import subagent_checks
from haft.storage import StateHome, default_home, open_stores
from haft.toolsets import Discovery, fill_catalogue, find_uv

LEAST_PYTHON: Final = (3, 11)
LITTLE_DISK: Final = 1_000_000_000
PATIENCE_SECONDS: Final = 10.0
MAX_VERIFIED_BYTES: Final = 8_000_000
"""How many bytes at the end of the audit log are checked, if more were written since the last check."""


def diagnose(home: StateHome, workspace: str | None, env: Mapping[str, str]) -> Iterator[Check]:
    """Run every check. A check whose result explains the results of other checks comes before them."""
    yield from _guarded("python", _python)
    yield from _guarded("platform", _platform)
    yield from _guarded("state home", lambda: _state_home(home))
    yield from _guarded("database", lambda: _database(home))
    yield from _guarded("bash", lambda: _program("bash", "the `shell` tool needs it: install bash", "broken"))
    yield from _guarded("uv", lambda: _uv(env))
    yield from _guarded("git", lambda: _program("git", "optional: without it a workspace is not found by .git", "warn"))
    yield from _guarded("ripgrep", _ripgrep)
    yield from _guarded("sandbox", lambda: _sandbox(workspace, env))
    yield from _guarded("dead hosts", lambda: _dead_hosts(home))
    yield from _guarded("abandoned functions", lambda: _abandoned(home))
    yield from _guarded("audit log", lambda: _audit_log(home))
    yield from _guarded("agents", lambda: client_checks(home))
    yield from _guarded("configuration", lambda: _configuration(workspace, env))
    yield from _guarded("tools", lambda: _tools(home, workspace, env))
    yield from _guarded("sub-agents", lambda: subagent_checks(home, workspace, env))
    yield from _guarded("MCP servers", lambda: _providers(home, workspace))
    yield from _guarded("store", lambda: store_checks(home, env))
    yield from _guarded("cache", lambda: cache_check(home, workspace, env))
    yield from _guarded("change tracking", lambda: coverage_checks(home, workspace, env))


def _guarded(name: str, check: Callable[[], Check | Sequence[Check]]) -> Iterator[Check]:
    try:
        found = check()
    except HaftError as error:
        hint = None if error.hint is not None and "haft doctor" in error.hint else error.hint
        yield Check(name, "broken", error.message, hint)
    except Exception as error:  # A machine can be broken in any way, and doctor must report it.
        yield Check(name, "broken", f"{type(error).__name__}: {error}")
    else:
        yield from (found,) if isinstance(found, Check) else found


def _python() -> Check:
    words = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    if sys.version_info[:2] < LEAST_PYTHON:
        return Check("python", "broken", words, "haft needs Python 3.11 or newer")
    return Check("python", "ok", words)


def _platform() -> Check:
    words = f"{platform.system()} {platform.release()} {platform.machine()}"
    match sys.platform:
        case "linux":
            return Check("platform", "ok", words)
        case "darwin":
            missing = "no subreaper here: haft does not find daemons that left their process group when a call ends"
            return Check("platform", "warn", f"{words}; {missing}", "use Linux where tools start daemons")
        case other:
            return Check("platform", "broken", f"{words}: haft does not support {other}", "use Linux or macOS")


def _state_home(home: StateHome) -> Check:
    if not os.path.exists(home.path):
        above = home.path
        while not os.path.exists(above):
            above = os.path.dirname(above)
        if not os.path.isdir(above) or not os.access(above, os.W_OK | os.X_OK) or above.startswith("/proc"):
            detail = f"{home.path} does not exist and cannot be created in {above}"
            return Check("state home", "broken", detail, "set HAFT_HOME to a directory that you can write")
        return Check("state home", "ok", f"{home.path} does not exist yet; the first call creates it")
    found = os.stat(home.path)
    if not stat.S_ISDIR(found.st_mode):
        return Check("state home", "broken", f"{home.path} is not a directory", "set HAFT_HOME to another directory")
    if found.st_uid != os.getuid():
        return Check("state home", "broken", f"{home.path} belongs to user {found.st_uid}", "set HAFT_HOME to your own")
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        return Check("state home", "warn", f"{home.path} has mode {mode:04o}", f"chmod 700 {home.path}")
    if not os.access(home.path, os.W_OK | os.X_OK):
        return Check("state home", "broken", f"{home.path} cannot be written", f"chmod 700 {home.path}")
    free = shutil.disk_usage(home.path).free
    words = f"{home.path}, mode {mode:04o}, {free / 1e9:.1f} GB free"
    if free < LITTLE_DISK:
        return Check("state home", "warn", words, "free disk space: haft stores outputs and the audit log there")
    return Check("state home", "ok", words)


def _database(home: StateHome) -> Check:
    found = open_stores(home).health()
    return Check("database", "ok" if found.is_sound else "broken", found.summary, found.hint)


def _program(name: str, hint: str, missing: CheckState) -> Check:
    found = shutil.which(name)
    return Check(name, "ok", found) if found else Check(name, missing, f"`{name}` is not on PATH", hint)


def _uv(env: Mapping[str, str]) -> Check:
    try:
        return Check("uv", "ok", find_uv(env))
    except ToolFailed:
        return Check(
            "uv", "warn", "there is no `uv`", "optional, for templates: `pip install uv`, or put `uv` on the PATH"
        )


def _ripgrep() -> Check:
    return Check("ripgrep", "ok", find_ripgrep())


class _Silent:
    """An output sink that drops everything."""

    def output(self, stream: Stream, data: bytes) -> None: ...

    def processes_ended(self, children: Sequence[EndedChild]) -> None: ...


def _sandbox(workspace: str | None, env: Mapping[str, str]) -> list[Check]:
    """Start one real process as a tool would, and check how it is confined."""
    config = load_config(workspace, env, trust_home=default_home(env))
    try:
        _ = config.enablement
        check_rules(config.rules, shapes_of(tool.spec for tool in builtin_tools()))
    except BadConfig as error:
        return [Check("configuration", "broken", error.message, error.hint)]
    mode, limits = config.sandbox_mode, config.limits

    async def run(mode: Mode) -> tuple[Abilities, Exit]:
        with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as home:
            sandbox = Sandbox(directory, home, env, Root(directory).open_directory, limits, mode)
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    abilities = await sandbox.ready()
                    launcher = sandbox.launcher("workspace")
                    return abilities, await launcher.run(Command(["true"]), _Silent())
            finally:
                sandbox.close()

    try:
        # The mode `required` would raise here if there is no sandbox; it is checked below.
        abilities, end = asyncio.run(run("off" if mode == "off" else "auto"))
    except TimeoutError:
        detail = f"`true` did not end within {PATIENCE_SECONDS:g} s"
        return [Check("processes", "broken", detail, "is the machine overloaded?")]
    if end.code != 0:
        return [Check("processes", "broken", f"`true` exited {end.code}")]
    started = Check("processes", "ok", "a process was started through the launcher and ended")
    network = [_network(abilities, mode, config.never_network), *_network_for_all(config)]
    return [started, *_confinement(abilities, mode), *network, _limits(abilities)]


def _network_for_all(config: Config) -> list[Check]:
    """What the setting `sandbox.network` opens to every call."""
    opened, source = config.sandbox_network, config.sources["sandbox.network"]
    if not opened:
        return []
    if isinstance(opened, bool):
        return [Check("open network", "ok", f"every call reaches the whole network: `sandbox.network` ({source})")]
    try:
        check_owned(opened)
    except ValueError as error:
        return [Check("open network", "broken", f"`sandbox.network` ({source}): {error}", "calls will not run")]
    return [Check("open network", "ok", f"every call reaches {', '.join(opened)}: `sandbox.network` ({source})")]


def _network(abilities: Abilities, mode: Mode, never: str | None) -> Check:
    if never is None:
        return _network_by_host(abilities, mode)
    words = f"`sandbox.network` is `never` ({never})"
    if abilities.namespaces and abilities.network:
        return Check("network", "ok", f"{words}: no call gets it")
    return Check("network", "broken", f"{words}, and this machine cannot close it: calls with processes will not run")


def _network_by_host(abilities: Abilities, mode: Mode) -> Check:
    if mode == "off" or not (abilities.namespaces and abilities.network):
        hint = "calls with grants such as `--network=HOST` will not run"
        return Check("network", "warn", "this machine cannot restrict the network to granted hosts", hint)
    if abilities.packet_rules:
        return Check("network", "ok", "it can be granted by host; connections to other hosts can wait for your answer")
    return Check(
        "network",
        "ok",
        "it can be granted by host; connections to other hosts can wait for your answer on the ports 22, 80 and 443"
        " only, because this kernel has no nf_tables with tproxy",
    )


def _confinement(abilities: Abilities, mode: Mode) -> list[Check]:
    if mode == "off":
        return [Check("sandbox", "warn", "`sandbox.mode` is `off`: nothing confines a call", "set it to `auto`")]
    lacking: CheckState = "broken" if mode == "required" else "warn"
    found = []
    if abilities.namespaces:
        parts = [
            *(["users"] if abilities.users else []),
            "mounts",
            "processes",
            "ipc",
            *(["network"] if abilities.network else []),
        ]
        found.append(Check("namespaces", "ok", f"each call has its own: {', '.join(parts)}"))
    else:
        found.append(Check("namespaces", lacking, str(abilities.problem), "without them calls see the whole machine"))
    if abilities.landlock:
        found.append(Check("landlock", "ok", f"version {abilities.landlock}"))
    else:
        found.append(
            Check("landlock", lacking, "this kernel has none", "boot with `lsm=landlock,…`, Linux 5.13 or newer")
        )
    if abilities.namespaces and abilities.seccomp:
        tracing = "approved calls may trace their own processes"
        if not abilities.tracing:
            tracing = "no call may trace (strace, gdb), because a tracer can bypass the filters of this kernel"
        found.append(Check("seccomp", "ok", f"keyrings, io_uring and rare sockets are refused; {tracing}"))
    elif abilities.namespaces:
        hint = "use a kernel with CONFIG_SECCOMP_FILTER, on x86, ARM or RISC-V"
        found.append(Check("seccomp", lacking, str(abilities.seccomp_problem), hint))
    missing = abilities.missing()
    if not missing:
        return [*found, Check("sandbox", "ok", f"calls are confined (`sandbox.mode` is `{mode}`)")]
    if mode == "required":
        return [*found, Check("sandbox", "broken", f"no call that starts processes will run: {'; '.join(missing)}")]
    hint = "approve only what you would run yourself, or set `sandbox.mode` to `required`"
    return [*found, Check("sandbox", "warn", f"calls are not fully confined: {'; '.join(missing)}", hint)]


def _limits(abilities: Abilities) -> Check:
    ways: dict[str, list[str]] = {}
    for name, how in abilities.enforced().items():
        ways.setdefault(how, []).append(name)
    words = "; ".join(f"{', '.join(names)} by {how}" for how, names in ways.items())
    nothing = ways.get("nothing")
    if nothing:
        return Check("limits", "warn", words, f"this machine cannot enforce {', '.join(nothing)}")
    return Check("limits", "ok", words)


def _abandoned(home: StateHome) -> Check:
    if not has_state(home):
        return Check("abandoned functions", "ok", "no host is running")
    live = open_stores(home).leases().live()
    found = [(host, facts["abandoned"]) for host, facts in live if facts.get("abandoned")]
    if not found:
        return Check("abandoned functions", "ok", "no running host has any")
    words = ", ".join(f"{count} in {host}" for host, count in found)
    return Check(
        "abandoned functions",
        "warn",
        f"functions that ignored their cancellation still run: {words}",
        "restart that program, or make the tool `@tool(isolated=True)`",
    )


def _dead_hosts(home: StateHome) -> Check:
    ended = recover_dead_hosts(home)
    if ended:
        return Check("dead hosts", "ok", f"{ended} runs of killed hosts were ended as interrupted just now")
    return Check("dead hosts", "ok", "no killed host has left an open run")


def _audit_log(home: StateHome) -> Check:
    if not has_state(home):
        return Check("audit log", "ok", "no records yet")
    with contextlib.closing(open_stores(home).audit_log()) as log:
        verdict = verify(log, since_checkpoint=True, most=MAX_VERIFIED_BYTES)
    if not verdict.intact:
        return Check("audit log", "broken", f"not intact: {verdict.problem}", "`haft audit verify` says more")
    if verdict.since == 0:
        return Check("audit log", "ok", f"{verdict.records} records intact")
    checked = f"{verdict.records - verdict.since} of {verdict.records} records, all since record {verdict.since}"
    return Check("audit log", "ok", f"checked {checked}, and found them intact; `haft audit verify` checks all")


def _configuration(workspace: str | None, env: Mapping[str, str]) -> list[Check]:
    config = load_config(workspace, env, trust_home=default_home(env))
    read = ", ".join(config.files) or "no files"
    ignored = [
        Check("configuration", "warn", one.sentence(), "`haft config show` shows what counts") for one in config.ignored
    ]
    unset = [
        Check("configuration", "warn", one.sentence(), "set it; what uses it is disabled until then")
        for one in config.unset
    ]
    return [Check("configuration", "ok", f"{read} read"), *ignored, *unset]


def _tools(home: StateHome, workspace: str | None, env: Mapping[str, str]) -> list[Check]:
    discovery = Discovery(workspace, home, env)
    if workspace is not None:
        discovery.configure(load_config(workspace, env, trust_home=home.path))
    catalogue = Catalogue(why_inactive=discovery.why_inactive)
    fill_catalogue(catalogue, builtin=discovery.fill_builtin)
    is_incomplete = discovery.fill(catalogue)
    listings = catalogue.listings(all=True)
    for listing in listings:
        if listing.enabled:
            try:
                catalogue.get(listing.spec.name)
            except HaftError:  # The check that lists the tools shows this error.
                continue
    listings = catalogue.listings(all=True)
    ready = sum(listing.enabled for listing in listings)
    broken = [
        Check(
            "tools",
            "broken" if one.state == "broken" else "warn",
            f"`{one.spec.name}` is {one.state}: {one.reason}",
            discovery.cure(one),
        )
        for one in listings
        if not one.enabled and one.state != "inactive" and not _is_server(one)
    ]
    rules = [] if workspace is None else _rules(workspace, env, [one.spec for one in listings], is_incomplete)
    return [Check("tools", "ok", f"{ready} ready"), *broken, *rules]


def _is_server(listing: Listing) -> bool:
    """Whether an entry stands for a whole MCP server, which `_providers` checks."""
    about = listing.spec.meta.get("mcp", {})
    return "server" in about and "tool" not in about


def _unreachable_hint(listed: ListedProvider) -> str:
    provider = listed.server.provider
    if provider.transport != "stdio":
        return "check its address and your network"
    return f"`haft providers logs {provider.name}` shows its log"


def _providers(home: StateHome, workspace: str | None) -> list[Check]:
    if workspace is None:
        return []
    found = ProvidersFacade(workspace, home).listed()
    if not found:
        return []
    tools = sum(len(one.tools) for one in found)
    ready = sum(one.state == "ready" for one in found)
    summary = Check("MCP servers", "ok", f"{ready} of {len(found)} ready, with {tools} tools")
    return [
        summary,
        *(
            Check(
                "MCP servers",
                "broken" if one.state == "broken" else "warn",
                f"`{one.title}` is {one.state}: {one.reason}",
                None
                if one.state == "changed"
                else _unreachable_hint(one)
                if one.state == "unreachable"
                else f"see {one.server.provider.source}",
            )
            for one in found
            if one.state in ("broken", "changed", "unreachable")
        ),
    ]


def _rules(workspace: str, env: Mapping[str, str], specs: Sequence[ToolSpec], is_incomplete: bool) -> list[Check]:
    """Report two kinds of rules: those that name an argument that their tool does not have (such a rule stops every
    call), and those that name a tool that does not exist yet."""
    try:
        rules = load_config(workspace, env, trust_home=default_home(env)).rules
        check_rules(rules, shapes_of(tool.spec for tool in builtin_tools()))
    except BadConfig:
        return []  # The check of the configuration reports this error.
    found = []
    for rule in rules:
        hint = _where_to_mend(rule)
        try:
            check_rule(rule, shapes_of(specs))
        except BadConfig as error:
            near = f": {error.hint}" if error.hint else ""
            found.append(Check("permissions", "broken", f"{error.message}{near}", f"no call runs until then: {hint}"))
            continue
        for sentence in missing_of([rule], specs):
            asked = "`haft tools list` describes new files; " if is_incomplete else ""
            found.append(Check("permissions", "warn", sentence, f"{asked}{hint}"))
    return found


def _where_to_mend(rule: Rule) -> str:
    return "`haft permissions edit` opens your own rules" if rule.origin == "user" else f"the rule is in {rule.source}"
