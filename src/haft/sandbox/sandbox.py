"""Where calls happen: builds the sandbox of each, and the launcher that starts commands in it.

What this machine can do is found out once, by starting the helper; what is missing is said, and where
`sandbox.mode = "required"` nothing runs without it. `auto` uses what there is, `off` nothing.
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
    DescribeLauncher,
    EndedChild,
    Exit,
    Grants,
    HaftError,
    Launcher,
    Layer,
    Limits,
    MaskedStream,
    NetworkOpen,
    OutputSink,
    Profile,
    ScratchFull,
    Secrets,
    Session,
    StartFailed,
    Stream,
    Unconfined,
    named_secrets,
    says_secret,
)
from haft.files import activated_in, state_of
from haft.processes import Helper, ProcessLauncher, Stale, Starter, WarmStarter, plain_starter, replaced
from haft.sandbox.abilities import NOT_LINUX, Abilities
from haft.sandbox.environment import built_environment
from haft.sandbox.grant_resolver import GrantResolver
from haft.sandbox.helper_requests import HelperRequests, amounts
from haft.sandbox.identities import Identity, identities, identity
from haft.sandbox.network_signs import CURL_UNRESOLVED
from haft.sandbox.site import TMP, Site, survey
from haft.sandbox.thread_scratch import ThreadScratch
from haft.sandbox.toolchains import is_below
from haft.values import replace

if TYPE_CHECKING:
    from haft.sandbox.evidence import Ground
    from haft.sandbox.layer_witness import LayerWitness
    from haft.sandbox.warm_pool import WarmPool

Mode = Literal["auto", "required", "off"]

IN_PROCESS: Final = Confinement(reason="it runs in this process")
REMOTE: Final = Confinement(reason="it runs elsewhere: nothing of it runs here, and nothing confines it")
MOST_SPARED: Final = 64_000_000
MOST_KNOWN: Final = 100
_log = logging.getLogger("haft")


class Sandbox:
    """One for each host."""

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
        on_unfit: Callable[[str, str, str], None] = lambda _name, _version, _why: None,
    ) -> None:
        """`layers` says where the layers of calls will lie, if there will be any; asked when the first call needs to
        know. `never_network`: no grant opens the network, and where nothing can close it, nothing runs.
        `keeps_scratch`: threads keep their `/tmp`. `on_unfit` is told which version of a program cannot be kept loaded,
        and why."""
        self._never_network = never_network
        self._workspace = os.path.realpath(workspace)
        self.scratch = ThreadScratch(state_home, self._workspace) if keeps_scratch else None
        """What threads keep; None where every call has a `/tmp` of its own."""
        self._state_home = state_home
        self._env = dict(env)
        self._host = env
        """The same as it is now: variables that are granted have the values of the moment."""
        self._environments: dict[Confinement, dict[str, str]] = {}
        self._open_directory = open_directory
        self._limits = limits
        self._mode = mode
        self._granted = granted
        self._layers = layers
        self._site: Site | None = None
        self._granting = GrantResolver(lambda: self.site, state_home)
        self._helper: Helper | None = None
        self._plain: Starter | None = None
        self._seen: tuple[int, int] = (0, 0)
        """Which directory the workspace was when the zygote began."""
        self._retired: list[Helper] = []
        self._busy: dict[Helper, int] = {}
        self._abilities: Abilities | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._warm_pool: WarmPool | None = None
        self.on_unfit = on_unfit
        self._witnesses: dict[str, LayerWitness] = {}
        """By the name of the layer of a call that runs."""
        self._outside: set[str] = set()
        """Layers of calls that had a command which did not work in them."""

    @property
    def site(self) -> Site:
        if self._site is None:
            self._site = survey(self._workspace, self._state_home, self._env)
        return self._site

    def begin(self) -> None:
        """Start the helper ahead of the first command. Whether that went well is found out by `ready`."""
        if self._abilities is None and self._mode != "off" and sys.platform == "linux":
            with contextlib.suppress(StartFailed):
                self._zygote().begin()

    async def ready(self) -> Abilities:
        """What this machine can do, found out on first use."""
        if self._abilities is None:
            self._abilities = await self._find_out()
            missing = self._abilities.missing()
            if missing and self._mode == "auto":
                _log.warning("calls are not fully confined here: %s", "; ".join(missing))
        return self._abilities

    def granted_secrets(self, *grants: Grants) -> Secrets:
        """The values of the variables that grants hand over, as far as their names say that they are secret."""
        names = [name for each in grants for name in each.env]
        return (
            Secrets(named_secrets({name: self._host[name] for name in names if name in self._host}))
            if names
            else NO_SECRETS
        )

    @property
    def loaded(self) -> int:
        """How many programs are kept loaded."""
        return 0 if self._warm_pool is None else self._warm_pool.count

    def enforced(self) -> dict[str, str]:
        """By which mechanism each limit on processes holds; nothing before it was found out."""
        return {} if self._abilities is None else self._abilities.enforced()

    async def _find_out(self) -> Abilities:
        if sys.platform != "linux":
            return NOT_LINUX
        if self._mode == "off":
            return Abilities(namespaces=False, problem="`sandbox.mode` is `off`", io=True)
        helper = self._zygote()
        hello = await helper.hello()
        found = Abilities.from_hello(hello)
        if hello.get("passing"):
            # Used up for the moment, perhaps by a call: no reason to do without a sandbox.
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
            # What the first one could do, its successors must: a call may have used something up.
            whole = known is not None and known.network and known.proc
            required = self._mode == "required" or whole
            site = self.site.to_json(
                scratch_bytes=self._scratch_bytes(),
                required=required,
                layers=self._layers(),
                threads=None if self.scratch is None else self.scratch.prepared(),
            )
            self._seen = identity(self._workspace)
            self._helper = Helper("zygote", {**site, "limits": amounts(self._limits)})
        return self._helper

    def _scratch_bytes(self) -> int:
        """How large the scratch places of a call are. Less than its memory: files are not freed with the processes that
        wrote them, and what watches over the call is counted in the same group and needs some as well. A call that
        fills them has passed its limit."""
        most = self._limits.memory_bytes
        return most - min(most // 8, MOST_SPARED) or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2

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
    ) -> Confinement:
        """The sandbox of a call, whose tool was made of what was `found`; `closed`: without what was granted to every
        call; `activated`: with the programs of the activated environment, which must still be in that state; with a
        `thread` whose `/tmp` it may see. `Unconfined` where the sandbox is required and cannot be built."""
        abilities = await self.ready()
        programs = None if activated is None or unasked or neutral else self._as_agreed(activated)
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
        if self._mode == "off" or not abilities.layers:
            why = "`sandbox.mode` is `off`" if self._mode == "off" else "; ".join(abilities.missing())
            path = tuple(self._granting.paths(grants.path, "path"))
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
        write = tuple(self._granting.paths(grants.write, "write"))
        read = tuple(self._granting.paths(grants.read, "read"))
        path = tuple(self._granting.paths(grants.path, "path"))
        writable = (site.workspace,) if profile == "workspace" and site.is_writable else ()
        return Confinement(
            profile=profile,
            network=grants.network,
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

    def _scratch_of(self, thread: str | None, grants: Grants, shown: Sequence[str]) -> str | None:
        """The name of the `/tmp` that a call has of its thread. With network it needs a grant: what one tool left there
        another could carry away."""
        abilities = self._abilities
        if self.scratch is None or thread is None or (grants.network and not grants.scratch):
            return None
        if abilities is None or not abilities.namespaces or not abilities.proc:
            return None  # Nothing can be mounted, or nobody could count what it holds.
        if TMP not in self.site.hidden or is_below(TMP, shown):
            return None
        # Programs obey what lies above the directory they work in: `/tmp/.git`, `/tmp/node_modules`.
        return None if is_below(self._workspace, (TMP,)) else self.scratch.name_of(thread)

    @contextlib.contextmanager
    def scratch_for(self, confinement: Confinement) -> Iterator[Confinement]:
        """The sandbox of a call that begins, without the `/tmp` of its thread where another call has it right now."""
        if self.scratch is None or confinement.scratch is None:
            yield confinement
            return
        with self.scratch.held(confinement.scratch) as is_held:
            yield confinement if is_held else replace(confinement, scratch=None)

    async def writable(self, grants: Grants) -> tuple[str, ...]:
        """The workspace, and what else a call with these grants may write; nothing where no sandbox says so."""
        if self._mode == "off" or not (await self.ready()).layers:
            return ()
        return (self.site.workspace, *self._granting.paths((self._granted | grants).write, "write"))

    def check(self, confinement: Confinement) -> None:
        """`Conflict` where a call was resolved to something that does not lie there any more. Where there are mounts,
        they hold what they show against the same, and this only says so sooner."""
        gone = [] if identity(self._workspace) == confinement.root else [self._workspace]
        if "namespaces" not in confinement.layers:
            known = (*confinement.identities, *confinement.found)
            gone += [path for path, *which in known if which != [0, 0] and list(identity(path)) != which]
        if gone:
            raise replaced(gone[0])
        if confinement.activated is not None and confinement.activated_state is not None:
            self._as_agreed(confinement.activated_state)

    def later(self, confinement: Confinement) -> Confinement:
        """The sandbox of a later command of the same call: what was replaced in the workspace by then, the call may
        have replaced itself."""

        def outside(known: tuple[Identity, ...]) -> tuple[Identity, ...]:
            return tuple(one for one in known if not is_below(one[0], (self._workspace,)))

        return replace(
            confinement,
            identities=outside(confinement.identities),
            found=outside(confinement.found),
            activated_state=None,
        )

    def _as_agreed(self, state: str) -> str:
        """Where the activated environment lies, if it is still what was decided about."""
        place = self.activated
        try:
            if place is not None and state_of(place) == state:
                return place
        except OSError:
            pass
        raise Conflict(
            "it was not run: the programs of the activated environment changed while it was being decided about",
            hint="look at them, and call again",
        )

    @property
    def activated(self) -> str | None:
        """The virtual environment in the workspace that a person has activated."""
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
    ) -> Launcher:
        """What starts commands, each confined anew; with a `thread` whose `/tmp` they may see."""
        confine = functools.partial(
            self.confine, profile, grants, neutral=neutral, unasked=unasked, activated=activated, thread=thread
        )
        return _Behind(self, confine, grants, layer=layer)

    def launcher_within(self, confinement: Callable[[], Awaitable[Confinement]], layer: Layer | None) -> Launcher:
        """What starts the commands of one call, all within one confinement."""
        return _Behind(self, confinement, layer=layer, is_of_one_call=True)

    def describe_launcher(self) -> DescribeLauncher:
        """What starts foreign programs only to ask them something: they write nothing and reach nobody, whatever was
        granted to calls."""
        return self._asking(NO_GRANTS)

    def _asking(self, grants: Grants) -> _Behind:
        confine = functools.partial(self.confine, "read-only", grants, unasked=True, closed=True)
        return _Behind(self, confine, grants, closed=True)

    async def no_layer(self, layer: Layer) -> str | None:
        """Why calls cannot work above the workspace, if they cannot: found out by doing it."""
        abilities = await self.ready()
        if not abilities.namespaces:
            return "; ".join(abilities.missing()) or "there is no sandbox"
        try:
            await self.launcher("workspace", layer=layer).run(Command(["true"]), _Deaf())
        except (StartFailed, NetworkOpen) as error:
            return error.message
        finally:
            if (witness := self.witness_of(layer)) is not None:
                witness.close()
        return None

    async def layer_basis(self) -> dict[str, Any]:
        """Everything on this side that decides whether `no_layer` would say the same again."""
        return {"mode": self._mode, **asdict(await self.ready())}

    def ran_outside(self, layer: Layer) -> bool:
        """Whether a command that ended was not above this layer, although it was to be. Asked once for each call."""
        was_outside = layer.name in self._outside
        self._outside.discard(layer.name)
        return was_outside

    def witness_of(self, layer: Layer) -> LayerWitness | None:
        """Who tells whether something of a layer is still held; None where it was never mounted. Asked once for each
        call: whoever asks closes it."""
        return self._witnesses.pop(layer.name, None)

    def _lend_witness(self, confinement: Confinement) -> int | None:
        if confinement.layer is None or confinement.layer.is_readonly:
            return None
        from haft.sandbox.layer_witness import LayerWitness

        if confinement.layer.name not in self._witnesses:
            self._witnesses[confinement.layer.name] = LayerWitness()
        return self._witnesses[confinement.layer.name].lend()

    def _confirm(self, confinement: Confinement, terms: HelperRequests) -> None:
        """Look for what the kernel makes when it mounts a layer: that the layer was wanted proves nothing."""
        if confinement.layer is not None and confinement.profile == "workspace":
            place = os.path.join(self._layers() or "", confinement.layer.name, terms.work or "")
            if not os.path.isdir(os.path.join(place, "work")):
                self._outside.add(confinement.layer.name)

    async def start(self, confinement: Confinement, command: Command, sink: OutputSink) -> Exit:
        """Run one command in the sandbox that was built for it."""
        for attempt in (1, 2):
            starter, launcher = self._starting(confinement)
            try:
                return await launcher.run(command, sink)
            except Stale:
                self._stale(attempt)
            finally:
                self._leave(starter)
        raise AssertionError

    async def answer(self, confinement: Confinement, command: Command, sink: OutputSink) -> Exit:
        """The same for a command that may be kept loaded, above a layer: from a fork, where it is."""
        from haft.sandbox.warm_pool import Key, WarmPool

        warm = command.warm
        if warm is None or confinement.layer is None or "namespaces" not in confinement.layers:
            return await self.start(confinement, command, sink)
        kind = self._terms().kind(confinement, command)
        if any(is_writable for _source, _target, is_writable, _which in kind["extra"]):
            return await self.start(
                confinement, command, sink
            )  # What was granted to a call is open to nobody between calls.
        self._warm_pool = self._warm_pool or WarmPool(on_unfit=self.on_unfit)
        warm_pool, helper = self._warm_pool, self._zygote()
        env = {**self._environment(confinement), **command.env}
        key = Key(warm.name, warm.version, json.dumps([kind, command.cwd, env, confinement.scratch is not None]))
        starter = warm_pool.take(key, helper)
        if starter is not None:
            terms = self._terms()

            def told(command: Command, directory: int) -> Mapping[str, Any]:
                return terms.in_sandbox(confinement, command, directory, kind)

            launcher = ProcessLauncher(
                starter,
                self._environment(confinement),
                self._open_directory,
                told,
                self._limits,
                lambda: self._confirm(confinement, terms),
                witness=lambda: self._lend_witness(confinement),
            )
            with contextlib.suppress(Stale):
                try:
                    return await launcher.run(command, sink)
                finally:
                    warm_pool.give_back(starter)
        end = await self.start(confinement, command, sink)
        warm_pool.want(key, helper, lambda: self._load(helper, warm.argv, env, confinement, command))
        return end

    async def _load(
        self, helper: Helper, argv: Sequence[str], env: Mapping[str, str], confinement: Confinement, command: Command
    ) -> WarmStarter:
        if helper is not self._helper:
            raise Conflict("the workspace was replaced meanwhile")
        directory = self._open_directory(command.cwd)
        try:
            kind = {**self._terms().kind(confinement, command), "warm": True}
            terms = self._terms().in_sandbox(replace(confinement, layer=None), command, directory, kind)
            return await WarmStarter.open(helper, argv, env, directory, terms)
        finally:
            os.close(directory)

    async def confine_session(self, grants: Grants = NO_GRANTS) -> Confinement:
        """The sandbox of a program that outlives calls. It may write what was granted to it: nobody looks at what it
        does between calls before it counts."""
        everywhere, rest = self._granting.of_session(grants.write)
        confinement = await self.confine("workspace" if everywhere else "read-only", replace(grants, write=rest))
        return replace(confinement, session=True)

    def may_write_inside(self, confinement: Confinement) -> bool:
        """Whether any part of the workspace may be written."""
        return self.site.is_writable and any(is_below(path, (self.site.workspace,)) for path in confinement.writable)

    async def start_session(
        self, command: Command, sink: OutputSink, grants: Grants = NO_GRANTS, layer: Layer | None = None
    ) -> Session:
        """Start a program that outlives calls; with a `layer` it is a `LayeredSession` that starts above it."""
        from haft.sandbox.sessions import LayeredProgram

        confinement = replace(await self.confine_session(grants), layer=layer)
        if self._helper is not None and identity(self._workspace) != self._seen:
            self._replace_zygote()
        starter, launcher = self._starting(confinement)
        try:
            session = await launcher.start(command, sink)
        except BaseException:
            self._leave(starter)
            raise
        finally:
            if layer is not None and (witness := self.witness_of(layer)) is not None:
                witness.close()  # Its layers are copied, whoever holds them.

        async def leave() -> None:
            await asyncio.gather(session.wait(), return_exceptions=True)
            self._leave(starter)

        leaving = asyncio.create_task(leave())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        return session if layer is None else LayeredProgram(session, self._layers() or "")

    def _starting(self, confinement: Confinement) -> tuple[Starter, ProcessLauncher]:
        """Who starts a command in this sandbox, counted until it is left."""
        behind = "namespaces" in confinement.layers
        if confinement.layer is not None and not behind:
            raise StartFailed(
                "its layer above the workspace cannot be mounted, and without it nothing was started:"
                f" {confinement.reason}"
            )
        starter = self._zygote() if behind else self._unconfined()
        terms = self._terms()
        say = terms.in_sandbox if behind else terms.without_sandbox

        def told(command: Command, directory: int) -> Mapping[str, Any]:
            return say(confinement, command, directory)

        if isinstance(starter, Helper):
            self._busy[starter] = self._busy.get(starter, 0) + 1
        launcher = ProcessLauncher(
            starter,
            self._environment(confinement),
            self._open_directory,
            told,
            self._limits,
            lambda: self._confirm(confinement, terms),
            None if confinement.layer is None else confinement.layer.view,
            lambda: self._lend_witness(confinement),
        )
        return starter, launcher

    def _stale(self, attempt: int) -> None:
        self._replace_zygote()
        if attempt == 2:
            raise Conflict(
                "it was not run: the working directory was replaced while the command was about to start",
                hint="call it again",
            ) from None

    def _leave(self, helper: Starter) -> None:
        """A call of it is over: one that was replaced ends with its last."""
        if not isinstance(helper, Helper) or helper not in self._busy:
            return
        self._busy[helper] -= 1
        if not self._busy[helper]:
            del self._busy[helper]
            if helper in self._retired:
                self._retired.remove(helper)
                helper.close()

    def _replace_zygote(self) -> None:
        """Where the workspace was removed and made anew, the zygote still holds the old one: calls that run there go
        on, new ones get another. Where only a directory in it was replaced, the next try will find it."""
        if self._helper is not None and identity(self._workspace) != self._seen:
            self._retired.append(self._helper)
            self._helper = None
            self._site = None

    def _environment(self, confinement: Confinement) -> Mapping[str, str]:
        """Built once for each kind of sandbox: most calls share theirs. Granted variables are never kept."""
        confinement = replace(
            confinement, layer=None, scratch=None, identities=(), found=(), root=(0, 0), activated_state=None
        )
        if confinement.env:
            others = {name: value for name, value in self._env.items() if name not in confinement.env}
            granted = {name: self._host[name] for name in confinement.env if name in self._host}
            return built_environment({**others, **granted}, self._workspace, confinement)
        env = self._environments.get(confinement)
        if env is None:
            env = built_environment(self._env, self._workspace, confinement)
            if len(self._environments) < MOST_KNOWN:
                self._environments[confinement] = env
        return env

    def _terms(self) -> HelperRequests:
        return HelperRequests(self.site, self._workspace, self._limits, self._scratch_bytes())

    def explain(self, call: Call, output: str, confinement: Confinement, exit_code: int | None) -> HaftError | None:
        """Why a call failed, where the sandbox or a limit was in its way."""
        assert call.tool is not None
        from haft.sandbox.evidence import judge

        if exit_code == CURL_UNRESOLVED:
            from haft.files import texts_of

            is_curls = any("curl" in text for text in texts_of(call.tool.spec, call.arguments))
            exit_code = exit_code if is_curls else None
        return judge(output, confinement, self._limits, self._ground(), exit_code)

    def _ground(self) -> Ground:
        from haft.sandbox.evidence import Ground

        site = self.site
        shown = tuple(target for _source, target in site.show)
        return Ground(site.workspace, site.home, shown, site.repository, self._env.get("PATH", ""), site.is_in_view)

    def notes(
        self, call: Call, output: str, confinement: Confinement, *, failed: bool, explained: bool
    ) -> Iterator[str]:
        """What to tell the person about a call that has ended."""
        if confinement.unasked:
            return  # What only reads prints the words of others.
        from haft.files import missed_by, note
        from haft.sandbox.evidence import looked_for_credentials, swallowed

        if not failed and (found := swallowed(output, confinement)) is not None:
            yield f"{found.message}; {found.hint}"
        for path, how in () if explained else looked_for_credentials(output, confinement, self._ground()):
            yield f"`{call.name}` looked for {path}, which is hidden from it; {how}"
        if missed := missed_by(call, output, confinement, self._host, failed=failed):
            decided = call.decision
            is_answer = decided is not None and decided.source.startswith("remembered:") and decided.grants != NO_GRANTS
            answer = decided.source if decided is not None and is_answer else None
            yield note(missed, call.name, session=confinement.session, answer=answer)
        for name in self.unset(confinement.env):
            yield f"{name} was granted to `{call.name}`, and is not set here: set {name} and call it again"
        for name in confinement.env:
            if says_secret(name) and 0 < len(self._host.get(name, "")) < MIN_SECRET_LENGTH:
                yield f"{name} has fewer than {MIN_SECRET_LENGTH} characters and is not masked"

    def withheld(self, call: Call, confinement: Confinement) -> tuple[str, ...]:
        """The variables that a call names, that are set here, and that it does not get."""
        from haft.files import withheld_from

        return withheld_from(call, confinement, self._host)

    def unset(self, names: Iterable[str]) -> list[str]:
        """Those of some variables that have no value here."""
        return [name for name in names if name not in self._host]

    def without_network(self, output: str, confinement: Confinement) -> str | None:
        """What to add to the hint of a call that ran out of time, where it may have waited for an answer."""
        from haft.sandbox.evidence import NEVER, waited_for_network

        if "namespaces" not in confinement.layers or confinement.network or not waited_for_network(output):
            return None
        return f"it has no network, and may have waited for it: {NEVER if confinement.never_network else '`--network`'}"

    def missed_scratch(self, thread: str, said: str, confinement: Confinement) -> str | None:
        """What to say of a call that did not find what an earlier one left in its thread's `/tmp`."""
        if self.scratch is None or confinement.scratch is not None or confinement.unasked:
            return None
        path = self.scratch.missed(thread, said)
        if path is None:
            return None
        if not confinement.network:
            return (
                f"{path} is in its thread's /tmp, which another call of the thread had meanwhile: "
                "call again when that has ended"
            )
        return (
            f"{path} is in its thread's /tmp, and calls with network have an empty one: to show it, `--scratch`, or"
            " in a rule: `haft permissions add … --network --scratch`"
        )

    def close(self) -> None:
        """End the helpers, and with the zygote everything in the sandbox."""
        if self._warm_pool is not None:
            self._warm_pool.close()
            self._warm_pool = None
        for starter in (*self._retired, self._helper, self._plain):
            if starter is not None:
                starter.close()
        self._helper = self._plain = None
        self._retired.clear()


class _Deaf:
    def output(self, stream: Stream, data: bytes) -> None: ...

    def processes_ended(self, children: Sequence[EndedChild]) -> None: ...


class _Masked:
    """Hands on what a program says, without the secrets that it was given."""

    def __init__(self, sink: OutputSink, secrets: Secrets) -> None:
        self._sink = sink
        self._streams: dict[Stream, MaskedStream] = {"stdout": secrets.stream(), "stderr": secrets.stream()}

    def output(self, stream: Stream, data: bytes) -> None:
        self._sink.output(stream, self._streams[stream].feed(data))

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        self._sink.processes_ended(children)

    def end(self) -> None:
        for stream, masked in self._streams.items():
            self._sink.output(stream, masked.end())


class _Behind:
    """Starts commands in the sandbox that `confine` gives. Those above one layer run one after another."""

    def __init__(
        self,
        sandbox: Sandbox,
        confine: Callable[[], Awaitable[Confinement]],
        grants: Grants = NO_GRANTS,
        *,
        layer: Layer | None = None,
        closed: bool = False,
        is_of_one_call: bool = False,
    ) -> None:
        self._sandbox = sandbox
        self._confine = confine
        self._grants = grants
        self._layer = layer
        self._closed = closed
        self._is_of_one_call = is_of_one_call
        self._has_begun = False
        self._turn = asyncio.Lock()

    @property
    def granted(self) -> Grants:
        return self._grants

    def with_grants(self, grants: Grants) -> DescribeLauncher:
        """For who is asked something: see `DescribeLauncher`."""
        if grants == NO_GRANTS:
            return self
        return self._sandbox._asking(Grants(network=grants.network, env=grants.env, read=grants.read))

    async def is_confined(self) -> bool:
        return (await self._sandbox.ready()).namespaces

    async def run(self, command: Command, sink: OutputSink) -> Exit:
        confinement = await self._confine()
        if self._has_begun:
            confinement = self._sandbox.later(confinement)
        self._has_begun = self._is_of_one_call
        self._sandbox.check(confinement)
        if self._closed and (secrets := self._sandbox.granted_secrets(self._grants)):
            sink = _Masked(sink, secrets)
        try:
            return await self._run(confinement, command, sink)
        except ScratchFull:
            if self._sandbox.scratch is not None and confinement.scratch is not None:
                await asyncio.to_thread(self._sandbox.scratch.empty, confinement.scratch)
            raise

    async def _run(self, confinement: Confinement, command: Command, sink: OutputSink) -> Exit:
        if self._layer is None:
            end = await self._sandbox.start(confinement, command, sink)
            if isinstance(sink, _Masked):
                sink.end()
            return end
        async with self._turn:
            return await self._sandbox.answer(replace(confinement, layer=self._layer), command, sink)
