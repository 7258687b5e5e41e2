"""Builds the confinement of each call, and the launcher that starts commands in the sandbox.

haft finds out once what this machine supports, by starting the helper. With `sandbox.mode = "required"` nothing runs if
a protection is missing; `auto` uses the protections that exist and reports the missing ones; `off` uses none.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Literal

from haft.contracts import (
    MIN_SECRET_LENGTH,
    NO_GRANTS,
    NO_SECRETS,
    Call,
    Command,
    Confinement,
    Conflict,
    ConnectionObserver,
    DescribeLauncher,
    Exit,
    Grants,
    HaftError,
    HostGrant,
    Launcher,
    Layer,
    Limits,
    Network,
    NetworkOpen,
    NoNetworkByHost,
    OutputSink,
    Profile,
    Secrets,
    Session,
    StandIns,
    StartFailed,
    Unconfined,
    evolve,
    named_secrets,
    says_secret,
)
from haft.files import activated_in, state_of
from haft.lazy import regex
from haft.processes import Helper, ProcessLauncher, StaleHelper, Starter, WarmStarter, plain_starter, replaced_error
from haft.sandbox.abilities import NOT_LINUX, Abilities
from haft.sandbox.environment import built_environment
from haft.sandbox.grant_resolver import GrantResolver
from haft.sandbox.helper_requests import HelperRequests, process_limits
from haft.sandbox.host_network import HostNetwork
from haft.sandbox.identities import Identity, identities, identity
from haft.sandbox.launcher import DiscardedOutput, SandboxLauncher
from haft.sandbox.network_signs import CURL_UNRESOLVED
from haft.sandbox.site import TMP, Site, survey
from haft.sandbox.thread_scratch import ThreadScratch
from haft.sandbox.toolchains import is_below
from haft.values import replace

if TYPE_CHECKING:
    from haft.sandbox.evidence import HostFacts
    from haft.sandbox.layer_witness import LayerWitness
    from haft.sandbox.warm_pool import WarmPool

Mode = Literal["auto", "required", "off"]

IN_PROCESS: Final = Confinement(reason="it runs in this process")
REMOTE: Final = Confinement(reason="it runs elsewhere: nothing of it runs here, and nothing confines it")
MAX_RESERVED_BYTES: Final = 64_000_000
MAX_ENVIRONMENTS: Final = 100
_WORD: Final = regex(r"[A-Za-z]{3}")
_HOLD: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
_log = logging.getLogger("haft")


class Sandbox:
    """Confines calls and starts their commands; one for each host process."""

    def __init__(
        self,
        workspace: str,
        state_home: str,
        env: Mapping[str, str],
        open_directory: Callable[[str], int],
        limits: Limits,
        mode: Mode = "auto",
        granted: Grants = NO_GRANTS,
        layers: Callable[[], str | None] = lambda: None,
        *,
        never_network: bool = False,
        keeps_scratch: bool = False,
        neighbours: Sequence[str] = (),
        has_caches: bool = True,
        on_unfit: Callable[[str, str, str], None] = lambda _name, _version, _why: None,
        stand_ins: StandIns | None = None,
    ) -> None:
        """`layers` returns the directory for the layers of calls, or None if calls have no layers; it is called when
        the first call needs it. `never_network`: no grant opens the network, and nothing runs if this machine cannot
        close the network. `keeps_scratch`: threads keep their `/tmp`. `neighbours` are the server's other workspaces,
        which no call sees. `has_caches`: whether calls get the private caches of the workspace. `on_unfit` is called
        with the name and version of a program that cannot be kept loaded, and the reason. `stand_ins`: see
        `Conditions`."""
        self._never_network = never_network
        self._workspace = os.path.realpath(workspace)
        self.scratch = ThreadScratch(state_home, self._workspace) if keeps_scratch else None
        """The `/tmp` directories of threads; None if every call has its own `/tmp`."""
        self._state_home = state_home
        self._neighbours = tuple(neighbours)
        self._has_caches = has_caches
        self._env = dict(env)
        self._host = env
        """The host's live environment, unlike the copy in `_env`: granted variables get their current values."""
        self._environments: dict[Confinement, dict[str, str]] = {}
        self._open_directory = open_directory
        self._limits = limits
        self._mode = mode
        self._granted = NO_GRANTS if granted == NO_GRANTS else granted
        self._layers = layers
        self._site: Site | None = None
        self._bare_session: tuple[Site, Confinement] | None = None
        """The confinement of sessions without grants, and the site for which it was made."""
        self._grant_resolver = GrantResolver(lambda: self.site, state_home)
        self._helper: Helper | None = None
        self._plain: Starter | None = None
        self._seen: tuple[int, int] = (0, 0)
        """The identity (device and inode) of the workspace when the helper started."""
        self._held: int | None = None
        """A descriptor of the workspace: while it is open, no other directory can get the workspace's inode number."""
        self._retired: list[Helper] = []
        self._busy: dict[Helper, int] = {}
        self._abilities: Abilities | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._warm_pool: WarmPool | None = None
        self.on_unfit = on_unfit
        self._stand_ins = stand_ins
        self.hosts = HostNetwork(env, self._workspace, state_home, granted.network)
        self._witnesses: dict[str, LayerWitness] = {}
        """The witnesses of the layers of running calls, by the name of the layer."""
        self._not_above: set[str] = set()
        """The names of layers that were not mounted when a command of their call ran."""

    @property
    def site(self) -> Site:
        if self._site is None:
            self._site = survey(
                self._workspace, self._state_home, self._env, self._neighbours, has_caches=self._has_caches
            )
        return self._site

    def begin(self) -> None:
        """Start the helper ahead of the first command. `ready` finds out whether that succeeded."""
        if self._abilities is None and self._mode != "off" and sys.platform == "linux":
            with contextlib.suppress(StartFailed):
                self._zygote().begin()

    async def ready(self) -> Abilities:
        """The protections of this machine, found out on first use."""
        if self._abilities is None:
            self._abilities = await self._probe()
            missing = self._abilities.missing()
            if missing and self._mode == "auto":
                _log.warning("calls are not fully confined here: %s", "; ".join(missing))
        return self._abilities

    def granted_secrets(self, *grants: Grants) -> Secrets:
        """The values of the granted variables whose names say that they are secret."""
        names = [name for each in grants for name in each.env]
        return (
            Secrets(named_secrets({name: self._host[name] for name in names if name in self._host}))
            if names
            else NO_SECRETS
        )

    @property
    def loaded(self) -> int:
        """The number of programs that are kept loaded."""
        return 0 if self._warm_pool is None else self._warm_pool.count

    def enforced(self) -> dict[str, str]:
        """The mechanism that enforces each limit on processes; empty before the first `ready`."""
        return {} if self._abilities is None else self._abilities.enforced()

    async def _probe(self) -> Abilities:
        if sys.platform != "linux":
            return NOT_LINUX
        if self._mode == "off":
            return Abilities(namespaces=False, problem="`sandbox.mode` is `off`", io=True)
        helper = self._zygote()
        hello = await helper.hello()
        found = Abilities.from_hello(hello)
        if hello.get("passing"):
            # A resource is used up for the moment, perhaps by a call. That is no reason to run without a sandbox.
            helper.close()
            self._helper = None
            raise StartFailed(f"the sandbox cannot be built at the moment: {hello['problem']}", hint="try again later")
        if not found.namespaces:
            helper.close()
            self._helper = None
        return found

    def _zygote(self) -> Helper:
        if self._helper is None:
            known = self._abilities
            # A later helper must have all protections of the first one. If it has less, a call may have used up a
            # resource.
            whole = known is not None and known.network and known.proc
            required = self._mode == "required" or whole
            site = self.site.to_json(
                scratch_bytes=self._scratch_bytes(),
                required=required,
                layers=self._layers(),
                threads=None if self.scratch is None else self.scratch.prepared(),
                stand_ins=self._stand_ins,
            )
            self._hold_workspace()
            self._helper = Helper("zygote", {**site, "limits": process_limits(self._limits)})
        return self._helper

    def _hold_workspace(self) -> None:
        self._let_workspace_go()
        self._seen = 0, 0
        with contextlib.suppress(OSError):
            self._held = os.open(self._workspace, _HOLD)
            found = os.fstat(self._held)
            self._seen = found.st_dev, found.st_ino

    def _let_workspace_go(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _scratch_bytes(self) -> int:
        """The size in bytes of a call's scratch directories, such as `/tmp`. It is less than the memory limit: files
        stay when the processes that wrote them end, and the helper's process that watches the call counts towards the
        same limit. A call that fills the scratch directories has exceeded its memory limit."""
        most = self._limits.memory_bytes
        return (
            most - min(most // 8, MAX_RESERVED_BYTES) or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        )

    def _unconfined(self) -> Starter:
        if self._plain is None:
            self._plain = plain_starter()
        return self._plain

    async def confine(
        self,
        profile: Profile,
        grants: Grants = NO_GRANTS,
        *,
        neutral: bool = False,
        unasked: bool = False,
        closed: bool = False,
        activated: str | None = None,
        thread: str | None = None,
        found: tuple[Identity, ...] = (),
        asks: bool = False,
    ) -> Confinement:
        """The confinement of a call. `neutral`: see `Confinement.neutral`. `unasked`: the call runs without approval.
        `found`: the identities of the tool's files. `closed`: the call does not get the grants that every other call
        gets. `activated`: the state of the activated virtual environment when the call was decided; the call gets the
        programs of this environment, and `Conflict` is raised if its state is different now. `thread`: the thread whose
        `/tmp` the call may see. `asks`: a person can be asked about hosts that were not granted. Raises `Unconfined` if
        the sandbox is required and cannot be built."""
        abilities = await self.ready()
        programs = None if activated is None or unasked or neutral else self._approved_environment(activated)
        if programs is not None:
            found = (*found, *identities((programs, os.path.join(programs, "bin"))))
        root = identity(self._workspace)
        grants = grants if closed else self._granted | grants
        if self._never_network:
            grants = replace(grants, network=False)
            if not abilities.network or not abilities.namespaces:
                off = "`sandbox.mode` is `off`" if self._mode == "off" else None
                raise NetworkOpen(off or "; ".join(abilities.missing()) or "there are no network namespaces")
        if self._mode == "required" and (missing := abilities.missing()):
            raise Unconfined("; ".join(missing))
        network, hosts = await self._resolve_network(grants)
        asks = asks and network is not True and not self._never_network and abilities.namespaces and abilities.network
        if self._mode == "off" or not abilities.layers:
            why = "`sandbox.mode` is `off`" if self._mode == "off" else "; ".join(abilities.missing())
            path = tuple(self._grant_resolver.paths(grants.path, "path"))
            return Confinement(
                "none",
                True,
                path=path,
                env=grants.env,
                identities=identities(path),
                found=found,
                root=root,
                neutral=neutral,
                unasked=unasked,
                activated=programs,
                activated_state=activated,
                reason=why,
            )
        site = self.site
        write = tuple(self._grant_resolver.paths(grants.write, "write"))
        read = tuple(self._grant_resolver.paths(grants.read, "read"))
        path = tuple(self._grant_resolver.paths(grants.path, "path"))
        writable = (site.workspace,) if profile == "workspace" and site.is_writable else ()
        return Confinement(
            profile=profile,
            network=network,
            hosts=hosts,
            asks=asks,
            writable=(*writable, *write),
            readable=read,
            hidden=site.hidden if abilities.namespaces else (),
            path=path,
            env=grants.env,
            identities=identities((*write, *read, *path)),
            found=found,
            root=root,
            neutral=neutral,
            unasked=unasked,
            activated=programs,
            activated_state=activated,
            layers=abilities.layers,
            reason="; ".join(abilities.missing()) or None,
            never_network=self._never_network,
            scratch=None if unasked or closed else self._scratch_of(thread, grants, (*write, *read, *path)),
        )

    async def _resolve_network(self, grants: Grants) -> tuple[Network, tuple[HostGrant, ...]]:
        """The network that a call gets, and its hosts. Raises `NoNetworkByHost` if this machine cannot restrict a call
        to hosts."""
        if isinstance(grants.network, bool):
            return grants.network, ()
        if (missing := await self.no_network_by_host()) is not None:
            raise NoNetworkByHost(missing)
        return await self.hosts.resolve(grants.network)

    async def no_stand_ins(self) -> str | None:
        """Why the program stubs cannot stand for programs as the scenario says; None if they can."""
        if self._stand_ins is None or self._stand_ins.needs_sandbox is None:
            return None
        abilities = await self.ready()
        if not abilities.namespaces:
            return f"{self._stand_ins.needs_sandbox} needs the sandbox, which cannot be built: {abilities.problem}"
        if self._stand_ins.only is not None and not abilities.landlock:
            return f"{self._stand_ins.needs_sandbox} needs Landlock, which this kernel does not have, or has turned off"
        return None

    async def no_network_by_host(self) -> str | None:
        """Why this machine cannot restrict a call to hosts; None if it can."""
        abilities = await self.ready()
        if self._mode == "off":
            return "`sandbox.mode` is `off`"
        if abilities.namespaces and abilities.network:
            return None
        return "; ".join(abilities.missing()) or "there are no network namespaces"

    def _scratch_of(self, thread: str | None, grants: Grants, shown: Sequence[str]) -> str | None:
        """The name of the thread's `/tmp`, if the call gets it; otherwise None. A call with network gets it only by a
        grant, since the call could send away data that another tool left there."""
        abilities = self._abilities
        if self.scratch is None or thread is None or (grants.network and not grants.scratch):
            return None
        if abilities is None or not abilities.namespaces or not abilities.proc:
            return None  # haft could not mount this `/tmp`, or could not measure its size.
        if TMP not in self.site.hidden or is_below(TMP, shown):
            return None
        # Programs obey files in the directories above the one they work in, such as `/tmp/.git` and
        # `/tmp/node_modules`.
        return None if is_below(self._workspace, (TMP,)) else self.scratch.name_of(thread)

    @contextlib.contextmanager
    def scratch_for(self, confinement: Confinement) -> Iterator[Confinement]:
        """Yields the confinement for a call that begins. If another call uses the `/tmp` of the thread now, the
        confinement is without this `/tmp`."""
        if self.scratch is None or confinement.scratch is None:
            yield confinement
            return
        with self.scratch.held(confinement.scratch) as is_held:
            yield confinement if is_held else replace(confinement, scratch=None)

    async def writable(self, grants: Grants) -> tuple[str, ...]:
        """The paths that a call with these grants may write, the workspace included; empty if there is no sandbox."""
        if self._mode == "off" or not (await self.ready()).layers:
            return ()
        return (self.site.workspace, *self._grant_resolver.paths((self._granted | grants).write, "write"))

    def check(self, confinement: Confinement) -> None:
        """Raise `Conflict` if a file or directory that the call uses was replaced after its identity was noted. With
        namespaces, this checks only the workspace: the helper checks everything when it mounts the sandbox."""
        gone = [] if identity(self._workspace) == confinement.root else [self._workspace]
        if "namespaces" not in confinement.layers:
            known = (*confinement.identities, *confinement.found)
            gone += [path for path, *which in known if which != [0, 0] and list(identity(path)) != which]
        if gone:
            raise replaced_error(gone[0])
        if confinement.activated is not None and confinement.activated_state is not None:
            self._approved_environment(confinement.activated_state)

    def for_later_command(self, confinement: Confinement) -> Confinement:
        """The confinement of a later command of the same call. It has no identities of files in the workspace: the call
        itself may have replaced them."""

        def outside(known: tuple[Identity, ...]) -> tuple[Identity, ...]:
            return tuple(one for one in known if not is_below(one[0], (self._workspace,)))

        return replace(
            confinement,
            identities=outside(confinement.identities),
            found=outside(confinement.found),
            activated_state=None,
        )

    def _approved_environment(self, state: str) -> str:
        """The directory of the activated virtual environment. Raises `Conflict` if the environment is no longer in the
        state `state`, which it had when the call was decided."""
        place = self.activated
        try:
            if place is not None and state_of(place) == state:
                return place
        except OSError:
            pass
        raise Conflict(
            "it was not run: the programs of the activated environment changed after the call was decided",
            hint="check these programs, and call again",
        )

    @property
    def activated(self) -> str | None:
        """The path of the virtual environment in the workspace that a person has activated; None if no environment is
        activated."""
        return activated_in(self._workspace, self._env)

    def launcher(
        self,
        profile: Profile,
        grants: Grants = NO_GRANTS,
        *,
        neutral: bool = False,
        unasked: bool = False,
        layer: Layer | None = None,
        activated: str | None = None,
        thread: str | None = None,
        observer: ConnectionObserver | None = None,
    ) -> Launcher:
        """A launcher that confines each command anew. `thread`: the thread whose `/tmp` the commands may see."""
        confine = functools.partial(
            self.confine, profile, grants, neutral=neutral, unasked=unasked, activated=activated, thread=thread
        )
        return SandboxLauncher(self, confine, grants, layer=layer, observer=observer)

    def variables_of(self, confinement: Confinement) -> Mapping[str, str]:
        """The environment variables that the commands of a call with this confinement get."""
        return self._environment(confinement)

    def launcher_within(
        self,
        confinement: Callable[[], Awaitable[Confinement]],
        layer: Layer | None,
        observer: ConnectionObserver | None = None,
    ) -> Launcher:
        """A launcher for the commands of one call, all with the same confinement. `observer` learns about the call's
        connections."""
        return SandboxLauncher(self, confinement, layer=layer, is_of_one_call=True, observer=observer)

    def describe_launcher(self) -> DescribeLauncher:
        """A launcher for programs that haft only runs to describe them: they can write nothing and have no network,
        whatever was granted to calls."""
        return self.describe_launcher_with(NO_GRANTS)

    def describe_launcher_with(self, grants: Grants) -> SandboxLauncher:
        confine = functools.partial(self.confine, "read-only", grants, unasked=True, closed=True)
        return SandboxLauncher(self, confine, grants, closed=True)

    async def no_layer(self, layer: Layer) -> str | None:
        """Why calls cannot run in layers; None if they can. To find out, this method runs a command in `layer`."""
        abilities = await self.ready()
        if not abilities.namespaces:
            return "; ".join(abilities.missing()) or "there is no sandbox"
        try:
            await self.launcher("workspace", layer=layer).run(Command(["true"]), DiscardedOutput())
        except (StartFailed, NetworkOpen) as error:
            return error.message
        finally:
            if (witness := self.witness_of(layer)) is not None:
                witness.close()
        return None

    async def mount(self, layer: Layer) -> None:
        """Mount a layer in a process that ends at once. The layer's `view` gets a descriptor of the workspace as it is
        seen there, which stays valid."""
        await self.launcher("read-only", layer=layer).run(Command(["true"]), DiscardedOutput())

    async def layer_basis(self) -> dict[str, Any]:
        """The facts on which the answer of `no_layer` depends."""
        return {"mode": self._mode, **asdict(await self.ready())}

    def ran_outside(self, layer: Layer) -> bool:
        """Whether a command that should have run in this layer ran outside it. Ask only once for each call: asking
        deletes the answer."""
        was_outside = layer.name in self._not_above
        self._not_above.discard(layer.name)
        return was_outside

    def witness_of(self, layer: Layer) -> LayerWitness | None:
        """The witness that tells whether something in a layer is still open; None if the layer was never mounted. Ask
        only once for each call, and close the witness."""
        return self._witnesses.pop(layer.name, None)

    def _lend_witness(self, confinement: Confinement) -> int | None:
        if confinement.layer is None or confinement.layer.is_readonly:
            return None
        from haft.sandbox.layer_witness import LayerWitness

        if confinement.layer.name not in self._witnesses:
            self._witnesses[confinement.layer.name] = LayerWitness()
        return self._witnesses[confinement.layer.name].lend()

    def _confirm(self, confinement: Confinement, requests: HelperRequests) -> None:
        """If the layer of a command was not mounted, remember that for `ran_outside`. The kernel makes a directory when
        it mounts a layer, and this method looks for that directory."""
        if confinement.layer is not None and confinement.profile == "workspace":
            place = os.path.join(self._layers() or "", confinement.layer.name, requests.work or "")
            if not os.path.isdir(os.path.join(place, "work")):
                self._not_above.add(confinement.layer.name)

    async def start(
        self,
        confinement: Confinement,
        command: Command,
        sink: OutputSink,
        observer: ConnectionObserver | None = None,
    ) -> Exit:
        """Run one command in the sandbox."""
        for attempt in (1, 2):
            starter, launcher = self._starter_for(confinement, observer)
            try:
                return await launcher.run(command, sink)
            except StaleHelper:
                self._handle_stale(attempt)
            finally:
                self._leave(starter)
        raise AssertionError

    async def answer(
        self,
        confinement: Confinement,
        command: Command,
        sink: OutputSink,
        observer: ConnectionObserver | None = None,
    ) -> Exit:
        """Run one command. If the call has a layer, and the command's program is kept loaded, the command runs in a
        fork of the loaded program."""
        from haft.sandbox.warm_pool import Key, WarmPool

        warm = command.warm
        if warm is None or confinement.layer is None or "namespaces" not in confinement.layers:
            return await self.start(confinement, command, sink, observer)
        if confinement.hosts or confinement.limits is not None or self._stand_ins is not None:
            # The network of a loaded program would outlive the call, and its limits are those of the host. Stubs are
            # for programs that start as they do without a warm pool.
            return await self.start(confinement, command, sink, observer)
        confinement = replace(confinement, asks=False)
        kind = self._helper_requests().kind(confinement, command)
        if any(is_writable for _source, _target, is_writable, _which in kind["extra"]):
            # A loaded program would keep what was granted to this call alone.
            return await self.start(confinement, command, sink)
        self._warm_pool = self._warm_pool or WarmPool(on_unfit=self.on_unfit)
        warm_pool, helper = self._warm_pool, self._zygote()
        env = {**self._environment(confinement), **command.env}
        key = Key(warm.name, warm.version, json.dumps([kind, command.cwd, env, confinement.scratch is not None]))
        starter = warm_pool.take(key, helper)
        if starter is not None:
            requests = self._helper_requests()

            def helper_fields(command: Command, directory: int) -> Mapping[str, Any]:
                return requests.in_sandbox(confinement, command, directory, kind)

            launcher = ProcessLauncher(
                starter,
                self._environment(confinement),
                self._open_directory,
                helper_fields,
                self._limits,
                lambda: self._confirm(confinement, requests),
                witness=lambda: self._lend_witness(confinement),
            )
            with contextlib.suppress(StaleHelper):
                try:
                    return await launcher.run(command, sink)
                finally:
                    warm_pool.give_back(starter)
        end = await self.start(confinement, command, sink)
        warm_pool.load_later(key, helper, lambda: self._load(helper, warm.argv, env, confinement, command))
        return end

    async def _load(
        self, helper: Helper, argv: Sequence[str], env: Mapping[str, str], confinement: Confinement, command: Command
    ) -> WarmStarter:
        if helper is not self._helper:
            raise Conflict("the workspace was replaced meanwhile")
        directory = self._open_directory(command.cwd)
        try:
            kind = {**self._helper_requests().kind(confinement, command), "warm": True}
            fields = self._helper_requests().in_sandbox(replace(confinement, layer=None), command, directory, kind)
            return await WarmStarter.open(helper, argv, env, directory, fields)
        finally:
            os.close(directory)

    async def confine_session(self, grants: Grants = NO_GRANTS) -> Confinement:
        """The confinement of a program that outlives its calls. The program may write only what was granted to it,
        since nobody checks the changes that it makes between calls."""
        if grants is NO_GRANTS and self._granted is NO_GRANTS:
            return await self._confine_bare_session()
        everywhere, rest = self._grant_resolver.of_session(grants.write)
        if rest != grants.write:
            grants = replace(grants, write=rest)
        confinement = await self.confine("workspace" if everywhere else "read-only", grants)
        return evolve(confinement, session=True)

    async def _confine_bare_session(self) -> Confinement:
        """The confinement of a session without grants. It stays the same as long as the workspace is the same
        directory."""
        known = self._bare_session
        if known is None or known[0] is not self.site or known[1].root != identity(self._workspace):
            confinement = await self.confine("read-only")
            known = self._bare_session = self.site, evolve(confinement, session=True)
        return known[1]

    def may_write_inside(self, confinement: Confinement) -> bool:
        """Whether the confinement lets a program write any part of the workspace."""
        return self.site.is_writable and any(is_below(path, (self.site.workspace,)) for path in confinement.writable)

    async def start_session(
        self,
        command: Command,
        sink: OutputSink,
        grants: Grants = NO_GRANTS,
        layer: Layer | None = None,
        observer: ConnectionObserver | None = None,
    ) -> Session:
        """Start a program that outlives its calls. With a `layer`, the program runs in that layer, and the result is a
        `LayeredSession`."""
        from haft.sandbox.sessions import LayeredProgram

        confinement = replace(await self.confine_session(grants), layer=layer)
        if self._helper is not None and identity(self._workspace) != self._seen:
            self._replace_zygote()
        starter, launcher = self._starter_for(confinement, observer)
        try:
            session = await launcher.start(command, sink, counts_calls=self._counts_calls(confinement))
        except BaseException:
            self._leave(starter)
            raise
        finally:
            if layer is not None and (witness := self.witness_of(layer)) is not None:
                witness.close()  # The layers of a session are applied by copy, so open files do not matter.

        async def leave() -> None:
            await asyncio.gather(session.wait(), return_exceptions=True)
            self._leave(starter)

        leaving = asyncio.create_task(leave())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        return session if layer is None else LayeredProgram(session, self._layers() or "")

    def _counts_calls(self, confinement: Confinement) -> bool:
        """Whether the helper must count anew for each call of a program that outlives its calls. Only processor time
        and bytes on disk are counted by call, and a program that may only read writes no bytes on disk."""
        only_reads = confinement.profile == "read-only" and not confinement.writable
        return bool(self._limits.cpu_seconds) or not only_reads or "namespaces" not in confinement.layers

    def _starter_for(
        self, confinement: Confinement, observer: ConnectionObserver | None = None
    ) -> tuple[Starter, ProcessLauncher]:
        """The starter and launcher for a command with this confinement. After the command, the starter must be passed
        to `_leave`."""
        behind = "namespaces" in confinement.layers
        if confinement.layer is not None and not behind:
            raise StartFailed(
                f"its layer above the workspace cannot be mounted, so nothing was started: {confinement.reason}"
            )
        starter = self._zygote() if behind else self._unconfined()
        limits = confinement.limits or self._limits
        requests = self._helper_requests(limits)
        say = requests.in_sandbox if behind else requests.without_sandbox

        def helper_fields(command: Command, directory: int) -> Mapping[str, Any]:
            return say(confinement, command, directory)

        if isinstance(starter, Helper):
            self._busy[starter] = self._busy.get(starter, 0) + 1
        launcher = ProcessLauncher(
            starter,
            self._environment(confinement),
            self._open_directory,
            helper_fields,
            limits,
            lambda: self._confirm(confinement, requests),
            None if confinement.layer is None else confinement.layer.view,
            lambda: self._lend_witness(confinement),
            functools.partial(self.hosts.open, confinement, observer) if confinement.is_by_host else None,
            None if self._stand_ins is None else self._stand_ins.on_path(sandboxed=behind),
        )
        return starter, launcher

    def _handle_stale(self, attempt: int) -> None:
        self._replace_zygote()
        if attempt == 2:
            raise Conflict(
                "it was not run: the working directory was replaced while the command was about to start",
                hint="call it again",
            ) from None

    def _leave(self, helper: Starter) -> None:
        """Count down the running calls of a helper. A replaced helper ends with its last call."""
        if not isinstance(helper, Helper) or helper not in self._busy:
            return
        self._busy[helper] -= 1
        if not self._busy[helper]:
            del self._busy[helper]
            if helper in self._retired:
                self._retired.remove(helper)
                helper.close()

    def _replace_zygote(self) -> None:
        """Use a new helper if another directory has replaced the workspace: the old helper still has the old directory
        mounted. Running calls go on in the old directory. If only a directory inside the workspace was replaced, the
        next attempt will find the new directory."""
        if self._helper is not None and identity(self._workspace) != self._seen:
            self._retired.append(self._helper)
            self._helper = None
            self._site = None

    def _environment(self, confinement: Confinement) -> Mapping[str, str]:
        """The environment variables of a call, cached by confinement. Granted variables are never cached."""
        confinement = replace(
            confinement,
            layer=None,
            scratch=None,
            identities=(),
            found=(),
            root=(0, 0),
            activated_state=None,
            limits=None,
            ungrantable=None,
        )
        if confinement.env:
            others = {name: value for name, value in self._env.items() if name not in confinement.env}
            granted = {name: self._host[name] for name in confinement.env if name in self._host}
            return built_environment({**others, **granted}, self._workspace, confinement)
        env = self._environments.get(confinement)
        if env is None:
            env = built_environment(self._env, self._workspace, confinement)
            if len(self._environments) < MAX_ENVIRONMENTS:
                self._environments[confinement] = env
        return env

    def _helper_requests(self, limits: Limits | None = None) -> HelperRequests:
        return HelperRequests(
            self.site, self._workspace, limits or self._limits, self._scratch_bytes(), self._stand_ins
        )

    def explain(self, call: Call, output: str, confinement: Confinement, exit_code: int | None) -> HaftError | None:
        """The error that explains why a call failed; None if neither the sandbox nor a limit stopped it."""
        assert call.tool is not None
        from haft.sandbox.evidence import diagnose

        if exit_code == CURL_UNRESOLVED:
            from haft.files import texts_of

            is_curls = any("curl" in text for text in texts_of(call.tool.spec, call.arguments))
            exit_code = exit_code if is_curls else None
        return diagnose(output, confinement, self._limits, self._host_facts(), exit_code)

    def explain_by_log(self, call: Call, log: str, confinement: Confinement) -> HaftError | None:
        """Like `explain`, but from what the program wrote to its own log while it worked on the call."""
        from haft.sandbox.wrapped_lines import unwrapped

        return self.explain(call, unwrapped(log), confinement, None)

    def _host_facts(self) -> HostFacts:
        from haft.sandbox.evidence import HostFacts

        site = self.site
        shown = tuple(target for _source, target in site.show)
        return HostFacts(
            site.workspace,
            site.home,
            shown,
            site.repository,
            os.path.realpath(self._state_home),
            self._env.get("PATH", ""),
            site.is_in_view,
        )

    def notes(
        self, call: Call, output: str, confinement: Confinement, *, failed: bool, explained: bool
    ) -> Iterator[str]:
        """Notes for the person about a call that has ended."""
        if confinement.unasked:
            return  # Calls that only read print the content of files, which may look like an error.
        # Most short results are numbers, and complain of nothing.
        if failed or _WORD.search(output) is not None:
            yield from self._notes_about_output(call, output, confinement, failed=failed, explained=explained)
        for name in self.unset(confinement.env):
            yield f"{name} was granted to `{call.name}`, but is not set here: set {name} and call it again"
        for name in confinement.env:
            if says_secret(name) and 0 < len(self._host.get(name, "")) < MIN_SECRET_LENGTH:
                yield f"{name} is not masked in the output: it has fewer than {MIN_SECRET_LENGTH} characters"

    def _notes_about_output(
        self, call: Call, output: str, confinement: Confinement, *, failed: bool, explained: bool
    ) -> Iterator[str]:
        from haft.files import missed_by, note
        from haft.sandbox.evidence import looked_for_credentials, swallowed_failure

        says_something = _WORD.search(output) is not None
        if not failed and says_something and (found := swallowed_failure(output, confinement)) is not None:
            yield f"{found.message}; {found.hint}"
        if says_something and not explained:
            for path, how in looked_for_credentials(output, confinement, self._host_facts()):
                yield f"`{call.name}` looked for {path}, which the sandbox hides; {how}"
        if missed := missed_by(call, output, confinement, self._host, failed=failed):
            decided = call.decision
            is_answer = decided is not None and decided.source.startswith("remembered:") and decided.grants != NO_GRANTS
            answer = decided.source if decided is not None and is_answer else None
            entry = confinement.entry if confinement.session else None
            yield note(missed, call.name, entry=entry, answer=answer)

    def withheld(self, call: Call, confinement: Confinement) -> tuple[str, ...]:
        """The environment variables that the call reads but does not get, although they are set in the host's
        environment."""
        from haft.files import withheld_from

        return withheld_from(call, confinement, self._host)

    def unset(self, names: Iterable[str]) -> list[str]:
        """The variables among `names` that are not set in the host's environment."""
        return [name for name in names if name not in self._host]

    def without_network(self, output: str, confinement: Confinement) -> str | None:
        """An addition to the hint for a call that timed out; None if nothing shows that the call waited for the
        network."""
        from haft.sandbox.evidence import NEVER, ungrantable, waited_for_network

        if (
            "namespaces" not in confinement.layers
            or confinement.network
            or confinement.is_by_host
            or not waited_for_network(output)
        ):
            return None
        how = NEVER if confinement.never_network else "`--network=HOST`"
        how = how if confinement.ungrantable is None else ungrantable(confinement.ungrantable)
        return f"it has no network and may have waited for it: {how}"

    def how_to_connect(self, grant: str, confinement: Confinement | None) -> str:
        """A hint that says how to grant a host and port, such as `registry.example:443`, to a call."""
        from haft.sandbox.evidence import connection_hint

        return connection_hint(grant, confinement, is_never=self._never_network)

    def missed_scratch(self, thread: str, said: str, confinement: Confinement) -> str | None:
        """A hint for a call that had a `/tmp` of its own and did not find a file there, because the file is in the
        `/tmp` of the thread. None if there is no such file."""
        if self.scratch is None or confinement.scratch is not None or confinement.unasked:
            return None
        path = self.scratch.missed(thread, said)
        if path is None:
            return None
        if not confinement.network:
            return (
                f"{path} is in the /tmp of its thread, which another call of the thread was using: "
                "call again when that call has ended"
            )
        return (
            f"{path} is in the /tmp of its thread, but calls with network have an empty /tmp: to share it, use"
            " `--scratch`, or in a rule: `haft permissions add … --network --scratch`"
        )

    def close(self) -> None:
        """End the helpers, and with them all processes in the sandbox."""
        if self._warm_pool is not None:
            self._warm_pool.close()
            self._warm_pool = None
        for starter in (*self._retired, self._helper, self._plain):
            if starter is not None:
                starter.close()
        self._helper = self._plain = None
        self._retired.clear()
        self.hosts.close()
        self._let_workspace_go()
