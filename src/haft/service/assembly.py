"""Puts one host together: its lease (its claim on its runs), its stores, its sandbox and its pipeline; and closes them
again.

`ToolService` and its facades delegate to `Host`; programs do not use `Host` directly. Sources, policy, sandbox, changes
and pipeline do not know each other: this module alone connects them.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from haft import cache
from haft.agents import Task
from haft.audit import Redactor, Trail, secret_values
from haft.cache import KeptAnswers
from haft.config import Config, check_workspace, connected_inside, load_config, secret_texts, working_directory
from haft.contracts import (
    NO_CONDITIONS,
    Approver,
    BadConfig,
    Conditions,
    Grants,
    HostId,
    OwnCall,
    Principal,
    RunId,
    Secrets,
    ThreadId,
    named_secrets,
    new_thread_id,
)
from haft.files import Root, secrets_of_root
from haft.pipeline import ApplyApproved, Dependencies, Footprints, Pipeline, Run, RunWatcher
from haft.policy import Environments, PolicyEngine, Rule
from haft.registry import Catalogue
from haft.runs import History, Journal, KeptOutput, RunRecord, RunWriter, journal_paths
from haft.sandbox import Sandbox, check_apart, safe_path
from haft.schedule import Locks, WaitingLine
from haft.service.answers import Answers
from haft.service.approval_secret import AnswerChecks, ApprovalSecret
from haft.service.personal_secrets import PersonalSecrets
from haft.service.principals import from_text, this_user, user_name
from haft.service.recovery import recover_into
from haft.service.telemetry.choice import make_traces, wants_traces
from haft.service.telemetry.watchers import Watchers
from haft.service.tracking import Tracking
from haft.storage import AnswerFiles, StateHome, default_home, open_stores
from haft.toolsets import CatalogueRefresher, Discovery, Sessions, ToolLike, fill_catalogue
from haft.values import replace
from haft.version import __version__

if TYPE_CHECKING:
    from haft.cache import WatchedTrees
    from haft.changes import Transactions

T = TypeVar("T")


def home_of(path: str | os.PathLike[str] | None) -> StateHome:
    """The state home at a path, or the default one. If `path` is already a `StateHome`, it is returned unchanged."""
    if isinstance(path, StateHome):
        return path
    return StateHome(os.path.abspath(os.fspath(path)) if path is not None else default_home(os.environ))


def answers_of(config: Config, home: StateHome, workspace: str, now: Callable[[], float] = time.time) -> KeptAnswers:
    """The kept answers of a workspace."""
    seconds = float(config.values["cache.seconds"])
    files = AnswerFiles(home.answers, config.values["cache.entries"], config.values["cache.bytes"], seconds)
    return KeptAnswers(files, workspace, __version__, seconds, now)


class Host:
    """The parts of one host: lease, stores, catalogue, policy engine, sandbox and pipeline."""

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        *,
        tools: Iterable[ToolLike],
        approver: Approver | None,
        approves_connections: bool,
        answers_questions: bool,
        answerable: Callable[[RunId], Collection[str]] | None,
        home: str | os.PathLike[str] | None,
        who: str | Principal | None,
        thread: str | None,
        settings: Mapping[str, Any] | None,
        secrets: Iterable[str],
        installed: bool,
        environ: Mapping[str, str] | None = None,
        for_changes: bool = False,
        waits_for_flush: bool = False,
        conditions: Conditions = NO_CONDITIONS,
        watchers: Iterable[RunWatcher] = (),
        neighbours: Sequence[str | os.PathLike[str]] = (),
        is_shared: bool = False,
    ) -> None:
        self.environ = os.environ if environ is None else environ
        """The variables that count for this host: for its settings, and for the environment of its calls."""
        self.home = home_of(home)
        given = os.fspath(workspace)
        self.workspace = os.path.abspath(given) if for_changes else check_workspace(given, self.home.path)
        self.config: Config = load_config(self.workspace, self.environ, settings, trust_home=self.home.path)
        enablement = self.config.enablement
        sessions = Sessions(
            lambda: self.sandbox,
            lambda: self.tracking.engine_selector(),
            lambda: self.trail,
            lambda run: None if self.pipeline is None else self.pipeline.connections_of(run),
            conditions.faults,
        )
        but = () if installed else ("python",)
        self.discovery = Discovery(self.workspace, self.home, self.environ, sessions, but=but)
        self.discovery.configure(self.config)
        self.catalogue = Catalogue(lambda spec: enablement.why_not(spec.name, spec.kind), self.discovery.why_inactive)
        self.directory = working_directory(self.config, self.workspace)
        self.disk = CatalogueRefresher(self.discovery, self.catalogue, lambda: self.sandbox.describe_launcher())
        self.principal = this_user().acting(who or None, thread)
        self._is_named = bool(self.principal.thread)
        if not self._is_named:
            self.principal = replace(self.principal, thread=new_thread_id())
        self._approver = approver
        self._approves_connections = approves_connections
        self._answers_questions = answers_questions
        self._answerable = answerable
        self._waits_for_flush = waits_for_flush
        self._neighbours = [os.path.abspath(each) for each in neighbours]
        check_apart(self.workspace, self._neighbours)
        self._is_shared = is_shared
        self.conditions = conditions
        self._secrets = Secrets(declared := tuple(secrets)) | self.config.secrets
        self._unrecorded = {*declared, *secret_values(self.environ), *secret_texts(self.config)}
        self._watchers = tuple(watchers)
        self.pipeline: Pipeline | None = None
        self._history: History | None = None
        self._abandoned_told = 0
        self._abandoned_timer: asyncio.TimerHandle | None = None
        self._ending = contextlib.AsyncExitStack()
        self.task = Task(self._described_types())
        fill_catalogue(
            self.catalogue,
            tools,
            self.task,
            builtin=lambda catalogue: self.discovery.fill_builtin(catalogue, self.disk.renew),
        )
        self._is_incomplete = self.discovery.fill(self.catalogue)

    def _described_types(self) -> Sequence[tuple[str, str]]:
        """The names and descriptions of the types of sub-agents; none if there are no sub-agents."""
        if not self.config.values["subagents.enabled"]:
            return ()
        from haft.service.agent_types import find_agent_types

        types = find_agent_types(self.workspace, self.home.path, self.config, self.environ)
        return [(kind.name, kind.description) for kind in types.usable()]

    async def open(self, call: Callable[..., Run], apply_approved: ApplyApproved) -> None:
        """Open the host. `call` is the function with which tools call other tools; `apply_approved` applies a part of
        the changes of a trial run."""
        try:
            self._start(call, apply_approved)
            await self._require_apart()
            self._ending.push_async_callback(self.discovery.close)
            self._ending.push_async_callback(self.disk.stop)
            await self.disk.start(is_incomplete=self._is_incomplete)
        except BaseException:
            await self._ending.aclose()
            raise

    async def _require_apart(self) -> None:
        """Raise `BadConfig` if calls would see the server's other workspaces on this machine."""
        if not self._hidden_neighbours():
            return
        abilities = await self.sandbox.ready()
        if self.config.sandbox_mode == "off" or not abilities.namespaces:
            is_off = self.config.sandbox_mode == "off"
            why = "`sandbox.mode` is `off`" if is_off else "; ".join(abilities.missing())
            raise BadConfig(
                f"a call in {self.workspace} could see the other workspaces of this server: nothing hides them ({why})",
                hint='serve one workspace, or set `sandbox.neighbours = "visible"` if everybody may see all of them',
            )

    def _hidden_neighbours(self) -> Sequence[str]:
        """The server's other workspaces, which calls must not see."""
        return () if self.config.values["sandbox.neighbours"] == "visible" else self._neighbours

    def _start(self, call: Callable[..., Run], apply_approved: ApplyApproved) -> None:
        """Take the lease, recover the runs of dead hosts, and put the pipeline together."""
        home, ending = self.home, self._ending
        home.prepare()
        stores = open_stores(home)
        leases = stores.leases()
        lease = leases.take()
        ending.callback(lambda: lease.release(done=not journal_paths(home.hosts, lease.host)))
        log = stores.audit_log(lease)
        trail = Trail(log, Redactor(self._unrecorded), self.workspace)
        ending.callback(trail.close)
        recover_into(home, lease, lambda: trail)
        journal = Journal(home.hosts, lease.host, log.size, synced=self.config.durability == "full")
        run_writer = RunWriter(journal, stores.connect(lease), trail.append, trail.sync, lease)
        ending.push_async_callback(asyncio.to_thread, run_writer.close)
        self.root = root = Root(self.workspace, masked=secrets_of_root())
        limits = self.config.limits

        def closed() -> list[str]:
            return [*self.discovery.closed_to_calls(), *connected_inside(home, root.root)]

        tracking = Tracking(home, root.root, lease, self.config, closed, lambda: self.sandbox)
        self.tracking = tracking
        ending.push_async_callback(asyncio.to_thread, tracking.close)
        sandbox = Sandbox(
            self.workspace,
            home.path,
            self.environ,
            root.open_directory,
            limits,
            self.config.sandbox_mode,
            Grants(network=self.config.sandbox_network) | self.conditions.grants,
            tracking.place_of_layers,
            never_network=self.config.never_network is not None,
            keeps_scratch=self.config.keeps_scratch,
            neighbours=self._hidden_neighbours(),
            has_caches=not self._is_shared,
            on_unfit=functools.partial(_note_cold, home.path),
            stand_ins=self.conditions.programs,
        )
        if sandbox.scratch is not None and not self._is_named:  # No later host can use this thread again.
            ending.push_async_callback(asyncio.to_thread, sandbox.scratch.forget, self.principal.thread or "")
        ending.callback(sandbox.close)
        ending.callback(tracking.stop)
        self.sandbox = sandbox
        tracking.sweep_scratch()
        self.answer_checks = AnswerChecks(ApprovalSecret(home))
        self.people = answers = Answers(stores, root.root, lease, self.answer_checks)
        ending.callback(answers.close)
        self.policy_engine = self._make_policy_engine(answers, root)
        self.policy_engine_with = functools.partial(self._make_policy_engine, answers, root)
        locks = Locks(home.locks_of(root.root), lease.host, lambda host: leases.is_alive(HostId(host)))
        ending.callback(locks.close)

        async def is_confined() -> bool:
            return (await sandbox.ready()).namespaces

        self.answers = answers_of(self.config, home, root.root, self.conditions.now)
        ending.callback(self.answers.close)
        watching = ending.enter_context(contextlib.ExitStack())

        @functools.cache
        def watched_trees() -> WatchedTrees:
            return watching.enter_context(contextlib.closing(cache.WatchedTrees()))

        dependencies = Dependencies(
            host=lease.host,
            workspace=root,
            sandbox=sandbox,
            engine_selector=tracking.engine_selector,
            isolation=self.config.isolation,
            waits_for_flush=self._waits_for_flush,
            limits=limits,
            tool_seconds=self.config.tool_seconds,
            seconds_are_set=self.config.is_set("limits.max_seconds"),
            durability=self.config.durability,
            catalogue=self.catalogue,
            renew=self.disk.renew,
            decide=self.policy_engine.decide,
            approver=self._approver,
            person=self.principal if self.principal.kind == "person" else this_user(),
            inbox=answers,
            wait_seconds=self.config.approval_seconds,
            answers_are_open=self.config.answers_without_sandbox,
            approves_connections=self._approves_connections,
            answers_questions=self._answers_questions,
            answerable=self._answerable,
            answer_checks=self.answer_checks,
            trusted_clients=self.trusted_clients,
            network_ask_seconds=self.config.network_ask_seconds,
            save_approval=answers.save_approval,
            pin_first_use=answers.pin_first_use,
            footprints=Footprints(root, is_confined, lambda: tracking.engine_selector().published_links()),
            locks=locks,
            waiting_line=WaitingLine(limits.max_queued),
            answers=self.answers,
            watched_trees=watched_trees,
            verifies_content=self.config.values["cache.verify"] == "content",
            run_writer=run_writer,
            trail=trail,
            open_output_store=lambda run: KeptOutput(home.outputs, run, limits.max_kept_output_bytes),
            call=call,
            apply_approved=apply_approved,
            person_behind=self.person_behind,
            four_eyes=self.config.four_eyes,
            secrets_of=self._secrets_of,
            is_shared=self._is_shared,
            conditions=self.conditions,
            watcher=self._watch_runs(trail.redactor),
        )
        self.trail = trail
        self.run_writer = run_writer
        self.pipeline = pipeline = Pipeline(dependencies, self._tell_abandoned)
        self.lease = lease
        ending.push_async_callback(pipeline.close)
        loop = asyncio.get_running_loop()

        def cancel(run: RunId, who: str) -> None:
            loop.call_soon_threadsafe(self.cancel_live, run, from_text(who))

        run_writer.on_cancel(cancel)

    def _watch_runs(self, redactor: Redactor) -> RunWatcher | None:
        """Who is told about the runs: the given watchers, and traces if they are on."""
        watchers = list(self._watchers)
        values = self.config.values
        destination = wants_traces(values, self.environ)
        if destination is not None:
            traces = make_traces(
                redactor,
                destination,
                values["telemetry.endpoint"],
                with_content=values["telemetry.content"],
                is_wanted=bool(values["telemetry.endpoint"]) or values["telemetry.traces"] == "on",
            )
            if traces is not None:
                self._ending.push_async_callback(asyncio.to_thread, traces.close)
                watchers.append(traces)
        return Watchers(watchers) if watchers else None

    @property
    def trusted_clients(self) -> Collection[str]:
        """The clients through which a person may approve dangerous calls: none if an approval passphrase is set."""
        return () if self.answer_checks.needs_proof else self.config.trusted_clients

    def _make_policy_engine(self, answers: Answers, root: Root, rules: Sequence[Rule] | None = None) -> PolicyEngine:
        """A policy engine with these `rules`, or with the rules in force if `rules` is None."""
        rules = self.config.rules if rules is None else rules
        if rules:
            from haft.policy import check_rules, shapes_of

            check_rules(rules, shapes_of(listing.spec for listing in self.catalogue.listings()))
        return PolicyEngine(
            rules,
            self.config.enablement,
            root.root,
            os.path.expanduser("~"),
            remembered=answers.remembered,
            pinned=answers.pinned,
            locate=root.locate,
            environments=Environments(root.root, self.environ, safe_path),
            four_eyes=self.config.four_eyes,
        )

    async def close(self) -> None:
        """Cancel the live runs, save everything, and end all processes."""
        self.pipeline = None
        if self._abandoned_timer is not None:
            self._abandoned_timer.cancel()
            self._abandoned_timer = None
        await self._ending.aclose()
        if self._history is not None:
            self._history.close()
            self._history = None

    # Methods for the facades.

    @property
    def thread(self) -> ThreadId:
        """The thread to which the calls of this service belong, unless a call names another thread."""
        return ThreadId(self.principal.thread or "")

    def running(self) -> Pipeline:
        """The pipeline. Raises `BadConfig` if the service is not open."""
        if self.pipeline is None:
            raise BadConfig("this service is not open", hint="use it inside `async with ToolService.open(...)`")
        return self.pipeline

    def changes(self) -> Transactions:
        """The change sets. Raises `BadConfig` if the service is not open."""
        self.running()
        return self.tracking.engine_selector().transactions

    def history(self) -> History:
        """The history of runs, for use in the thread of the event loop. Available even if the service is closed."""
        if self._history is None:
            self.home.prepare()
            self._history = History(self.home)
        return self._history

    async def with_history(self, work: Callable[[History], T]) -> T:
        """Run `work` in a worker thread, with a history that has its own database connection, so that the event loop is
        not blocked."""

        def read() -> T:
            self.home.prepare()
            with contextlib.closing(History(self.home)) as history:
                return work(history)

        return await asyncio.to_thread(read)

    def acting(self, who: str | Principal | None, thread: str | None = None, caller: Run | None = None) -> Principal:
        """The principal (the person or agent) for which a request with this `who` and `thread` acts. If a tool makes
        the request, the principal has no more rights than the principal that called the tool."""
        if caller is None and self.pipeline is not None:
            caller = self.pipeline.within()
        principal = self.principal if caller is None else caller.call.principal
        return principal.acting(who or None, thread) if who or thread else principal

    async def _secrets_of(self, names: Sequence[str], principal: Principal) -> Mapping[str, str]:
        person = self.person_behind(principal)
        if person is None:
            raise BadConfig(f"{principal.who} acts for no person, so it gets no secret: {', '.join(names)}")
        found = await PersonalSecrets(self.config.values["secrets"], self.environ).values(names, person)
        self.trail.redactor.learn(found.values())
        return found

    def person_behind(self, principal: Principal) -> str | None:
        """The name of the person who acts, or for whom an agent acts; None if nobody is known to stand behind the
        agent. On a machine of one person, agents act for this person."""
        if principal.kind == "person":
            return principal.who
        own = self.principal.who if self.principal.kind == "person" else user_name()
        return principal.on_behalf or (None if self._is_shared else own)

    def require_other(self, principal: Principal, record: Mapping[str, Any], what: str) -> None:
        """Raise `OwnCall` if `approval.four_eyes` is set, and the call of this record is the principal's own."""
        if not self.config.four_eyes:
            return
        caller = Principal(record["who"], kind=record.get("whoKind", "person"), on_behalf=record.get("onBehalf"))
        people = {caller.who, self.person_behind(caller)}
        if not people.isdisjoint({principal.who, self.person_behind(principal)} - {None}):
            raise OwnCall(principal.who, what)

    def known(self, *given: Mapping[str, Any]) -> Secrets:
        """The secrets that are masked for a call: those of the configuration, those of templates, and those in the
        tables `given`."""
        known = self._secrets | found if (found := self.discovery.secrets).values else self._secrets
        return known | Secrets(value for table in given for value in named_secrets(table)) if any(given) else known

    def cancel_live(self, run: RunId, principal: Principal) -> bool:
        """Cancel a run of this host. Returns False if the run has ended, or belongs to another host."""
        live = self.pipeline.live.get(run) if self.pipeline is not None else None
        return live is not None and live.cancel(principal)

    def forget_taken_over(self, runs: Iterable[RunId]) -> list[RunRecord]:
        """Forget the runs that were taken over, and that nobody has called again. Returns them."""
        return [] if self.pipeline is None else self.pipeline.forget_taken_over(runs)

    @property
    def abandoned(self) -> int:
        """How many tools and worker threads ignored their cancellation and still run in this process."""
        return self._abandoned_by(self.running())

    @staticmethod
    def _abandoned_by(pipeline: Pipeline) -> int:
        # If the module is not loaded, there is no thread to abandon.
        threads = sys.modules.get("haft.sources.python.thread_pool")
        return pipeline.abandoned + (0 if threads is None else threads.abandoned())

    def _tell_abandoned(self) -> None:
        """Tell other processes how many functions this process could not stop, and repeat that every second until all
        have ended."""
        if self.pipeline is None or self._abandoned_timer is not None:
            return
        count = self._abandoned_by(self.pipeline)
        if count != self._abandoned_told:
            self._abandoned_told = count
            with contextlib.suppress(OSError):
                self.lease.tell({"abandoned": count})
        if count:
            self._abandoned_timer = asyncio.get_running_loop().call_later(1.0, self._tell_again)

    def _tell_again(self) -> None:
        self._abandoned_timer = None
        self._tell_abandoned()


def _note_cold(state_home: str, name: str, version: str, why: str) -> None:
    from haft.toolsets import note_cold

    note_cold(state_home, name, version, why)
