"""The tool service: what a program that embeds haft holds in its hands. It brings the rooms together and delegates.

async with ToolService.open(workspace=".", tools=[add]) as service:
    outcome = await service.call("add", {"a": 1, "b": 2})
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import os
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from haft.audit import Redactor, Trail, secret_values
from haft.changes import Coverage, Transactions, place_of_layers
from haft.changes.diff.difference import difference
from haft.changes.ledger import Row
from haft.changes.reading import KeptChanges
from haft.changes.reversing import Reversed, look_ahead
from haft.changes.tools import ChangesTool, Verb
from haft.changes.undoing import Direction
from haft.config.config import Config, kept_secret, load_config, working_directory
from haft.config.workspace import check_workspace
from haft.contracts import (
    Approver,
    BadConfig,
    BadUsage,
    Call,
    Decision,
    Grants,
    HaftError,
    Listing,
    Principal,
    RunId,
    Scope,
    Secrets,
    ThreadId,
    ToolName,
    ToolSpec,
    UnknownRun,
    check_text,
    grants_from,
    named_secrets,
    near_miss,
    new_run_id,
    new_thread_id,
    own_copy,
)
from haft.files import Root
from haft.files.machine_secrets import secrets_of_root
from haft.pipeline import Parts, Pipeline, Run
from haft.policy.approval import Waiting
from haft.policy.judge import Judge
from haft.policy.question import Explained, Question
from haft.policy.rules.rule import Rule
from haft.registry import Catalogue
from haft.runs import Filter, History, Journal, KeptOutput, RunRecord, Scribe, journal_paths
from haft.sandbox import Sandbox
from haft.service.acting import from_text, this_user, to_text
from haft.service.answers import Answers
from haft.service.changes import brought_up_to_date, nothing_to, rows_for, transactions_of
from haft.service.housekeeping import Housekeeping, bounds_of
from haft.service.inbox import InboxFacade, Reply
from haft.service.misuse import check_call, never_granted
from haft.service.previewing import Nobody, preview
from haft.service.record import RecordFacade
from haft.service.recovering import recover_into
from haft.service.sync import SyncToolService
from haft.storage import StateHome, default_home, open_stores
from haft.toolsets.catalogue import ToolLike as ToolLike
from haft.toolsets.catalogue import as_a_tool, fill_catalogue
from haft.toolsets.discovery import Discovery
from haft.toolsets.keeping_up import KeepingUp
from haft.toolsets.sessions import Sessions

FILTERS = tuple(field.name for field in dataclasses.fields(Filter))


BY_NAME = Decision(
    action="allow",
    layer="built-in",
    rule="undo, redo, apply and drop are called by whoever holds the service",
    source="haft's own rules",
    by="person",
    reason="it was asked for by name",
)


def home_of(path: str | os.PathLike[str] | None) -> StateHome:
    """The state home at a path, or the default one. A `StateHome` stays as it is, with the storage that it names."""
    if isinstance(path, StateHome):
        return path
    return StateHome(os.path.abspath(os.fspath(path)) if path is not None else default_home(os.environ))


class ToolService:
    """One host: a workspace, a catalogue of tools, and the runs it makes of calls."""

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        *,
        tools: Iterable[ToolLike],
        approver: Approver | None,
        home: str | os.PathLike[str] | None,
        who: str | Principal | None,
        thread: str | None,
        settings: Mapping[str, Any] | None,
        secrets: Iterable[str],
        installed: bool,
    ) -> None:
        self.home = home_of(home)
        self.workspace = check_workspace(os.fspath(workspace), self.home.path)
        self.config: Config = load_config(self.workspace, os.environ, settings, trust_home=self.home.path)
        enablement = self.config.enablement
        sessions = Sessions(lambda: self._sandbox, lambda: self._coverage, lambda: self._trail)
        but = () if installed else ("python",)
        self.discovery = Discovery(self.workspace, self.home, os.environ, sessions, but=but)
        self.discovery.configure(self.config)
        self.catalogue = Catalogue(lambda spec: enablement.why_not(spec.name, spec.kind), self.discovery.why_inactive)
        self._directory = working_directory(self.config, self.workspace)
        self._disk = KeepingUp(self.discovery, self.catalogue, lambda: self._sandbox.asking_launcher())
        self.principal = this_user().acting(who or None, thread)
        self._is_named = bool(self.principal.thread)
        if not self._is_named:
            self.principal = dataclasses.replace(self.principal, thread=new_thread_id())
        self._approver = approver
        self._secrets = Secrets(declared := tuple(secrets)) | self.config.secrets
        self._unrecorded = {*declared, *secret_values(os.environ), *kept_secret(self.config)}
        self._pipeline: Pipeline | None = None
        self._history: History | None = None
        self._replies: set[asyncio.Task[Reply]] = set()
        self._abandoned_told = 0
        self._abandoned_timer: asyncio.TimerHandle | None = None
        self._ending = contextlib.AsyncExitStack()
        fill_catalogue(
            self.catalogue,
            tools,
            builtin=lambda catalogue: self.discovery.fill_builtin(catalogue, self._disk.renew),
        )
        self._is_incomplete = self.discovery.fill(self.catalogue)

    @classmethod
    def open(
        cls,
        workspace: str | os.PathLike[str] = ".",
        *,
        tools: Iterable[ToolLike] = (),
        approver: Approver | None = None,
        home: str | os.PathLike[str] | None = None,
        who: str | Principal | None = None,
        thread: str | None = None,
        settings: Mapping[str, Any] | None = None,
        secrets: Iterable[str] = (),
        installed: bool = True,
    ) -> ToolService:
        """A service, to be entered with `async with`.

        `who` acts where a method names nobody: a name, which is a person's, or a `Principal`. A service that was opened
        for an agent acts for no person, whatever name it is given.
        `home` is where state is kept (default: `HAFT_HOME`), `settings` are the strongest settings by their dotted
        names, `secrets` are values to mask in all that calls say, `installed` takes in tools of installed packages.
        """
        return cls(
            workspace,
            tools=tools,
            approver=approver,
            home=home,
            who=who,
            thread=thread,
            settings=settings,
            secrets=secrets,
            installed=installed,
        )

    @classmethod
    def open_sync(cls, workspace: str | os.PathLike[str] = ".", **options: Any) -> SyncToolService:
        """The same service for programs without an event loop, to be entered with `with`. Options as for `open`."""
        return SyncToolService(cls.open(workspace, **options))

    async def __aenter__(self) -> Self:
        try:
            self._start()
            self._ending.push_async_callback(self.discovery.close)
            self._ending.push_async_callback(self._disk.stop)
            await self._disk.start(is_incomplete=self._is_incomplete)
        except BaseException:
            await self._ending.aclose()
            raise
        return self

    def _start(self) -> None:
        """Take the lease, clean up after the dead, and put the pipeline together."""
        home, ending = self.home, self._ending
        home.prepare()
        stores = open_stores(home)
        lease = stores.leases().take()
        ending.callback(lambda: lease.release(done=not journal_paths(home.hosts, lease.host)))
        log = stores.audit_log(lease)
        trail = Trail(log, Redactor(self._unrecorded), self.workspace)
        ending.callback(trail.close)
        recover_into(home, lease, trail)
        journal = Journal(home.hosts, lease.host, log.size, synced=self.config.durability == "full")
        scribe = Scribe(journal, stores.connect(lease), trail.append, trail.sync, lease)
        ending.push_async_callback(asyncio.to_thread, scribe.close)
        self._root = root = Root(self.workspace, masked=secrets_of_root())
        limits = self.config.limits
        transactions = transactions_of(
            home,
            root.root,
            lease.host,
            limits,
            lease=lease,
            synced=self.config.durability == "full",
            closed=self.discovery.closed_to_calls,
        )
        ending.push_async_callback(asyncio.to_thread, transactions.close)
        sandbox = Sandbox(
            self.workspace,
            home.path,
            os.environ,
            root.open_directory,
            limits,
            self.config.sandbox_mode,
            Grants(network=self.config.sandbox_network),
            functools.partial(place_of_layers, transactions, self.config.changes_engine),
            never_network=self.config.never_network is not None,
            keeps_scratch=self.config.keeps_scratch,
            on_unfit=functools.partial(_note_cold, home.path),
        )
        if sandbox.scratch is not None and not self._is_named:  # Nobody can come back to it.
            ending.push_async_callback(asyncio.to_thread, sandbox.scratch.forget, self.thread)
        ending.callback(sandbox.close)
        ending.callback(Housekeeping(home, bounds_of(self.config, os.environ), transactions, sandbox.scratch).stop)
        coverage = Coverage(transactions, self.config.changes_engine, self.config.store_bytes, sandbox)
        self._coverage = coverage
        self._transactions = transactions
        self._sandbox = sandbox
        answers = Answers(stores, root.root, lease)
        ending.callback(answers.close)
        self.judge = self._judge(answers, root)
        self.judge_with = functools.partial(self._judge, answers, root)
        parts = Parts(
            host=lease.host,
            workspace=root,
            sandbox=sandbox,
            coverage=coverage,
            limits=limits,
            tool_seconds=self.config.tool_seconds,
            seconds_are_set=self.config.is_set("limits.max_seconds"),
            durability=self.config.durability,
            catalogue=self.catalogue,
            renew=self._disk.renew,
            decide=self.judge.decide,
            approver=self._approver,
            person=self.principal if self.principal.kind == "person" else this_user(),
            questions=answers,
            wait_seconds=self.config.approval_seconds,
            answers_are_open=self.config.answers_without_walls,
            agree=answers.agree,
            hold=answers.hold,
            scribe=scribe,
            trail=trail,
            keep=lambda run: KeptOutput(home.outputs, run, limits.max_kept_output_bytes),
            call=self.call,
        )
        self._trail = trail
        self._pipeline = pipeline = Pipeline(parts, self._tell_abandoned)
        self._lease = lease
        ending.push_async_callback(pipeline.close)
        loop = asyncio.get_running_loop()

        def cancel(run: RunId, who: str) -> None:
            loop.call_soon_threadsafe(self._cancel_live, run, from_text(who))

        scribe.on_cancel(cancel)

    def _judge(self, answers: Answers, root: Root, rules: Sequence[Rule] | None = None) -> Judge:
        """Whoever decides, by the rules in force or others."""
        from haft.policy.approval.environments import Environments
        from haft.sandbox.environment import safe_path

        rules = self.config.rules if rules is None else rules
        if rules:
            from haft.policy.rules.never import check_rules
            from haft.policy.rules.shapes import shapes_of

            check_rules(rules, shapes_of(listing.spec for listing in self.catalogue.listings()))
        return Judge(
            rules,
            self.config.enablement,
            root.root,
            os.path.expanduser("~"),
            remembered=answers.remembered,
            pinned=answers.pinned,
            locate=root.locate,
            environments=Environments(root.root, os.environ, safe_path),
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancel what still runs, write everything down, end every process."""
        self._pipeline = None
        if self._abandoned_timer is not None:
            self._abandoned_timer.cancel()
            self._abandoned_timer = None
        await self._ending.aclose()
        if self._history is not None:
            self._history.close()
            self._history = None

    # Calls.

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        thread: str | None = None,
        who: str | Principal | None = None,
        parent: str | None = None,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        config: Mapping[str, Any] | None = None,
        grants: Grants | Mapping[str, Any] | None = None,
        trial: bool = False,
    ) -> Run:
        """Call a tool. Returns at once with the run: await it, iterate it, cancel it. `grants` open walls for it. With
        `trial` it runs first, and its changes are committed once someone has seen and approved them. `cwd` is in the
        workspace; without one it is what `working_directory` says. `parent` is the live run that makes the call, and
        whose scope the call joins; without one it is the run whose tool calls this, if one does."""
        cwd = self._directory if cwd is None else cwd
        check_call(name, arguments, timeout=timeout, cwd=cwd, env=env, config=config, grants=grants)
        if self.config.never_network is not None and grants_from(grants).network:
            raise never_granted(self.config.never_network)
        check_text("parent", parent)
        redactor = self._trail_of().redactor
        if env:
            redactor.learn(secret_values(env))
        given = (arguments or {}).get("env")
        if isinstance(given, Mapping):
            redactor.learn(secret_values({str(key): str(value) for key, value in given.items()}))
        if config:
            redactor.learn(value for value in config.values() if isinstance(value, str))
        pipeline = self._running()
        caller = pipeline.within() if parent is None else pipeline.caller(parent)
        acting = self._acting if caller is None else caller.call.principal.acting
        principal = acting(who, thread)
        return pipeline.call(
            Call(
                run=new_run_id(),
                name=ToolName(str.__str__(name)),
                arguments=own_copy(arguments or {}),
                principal=principal,
                parent=None if caller is None else caller.id,
                timeout=timeout,
                cwd=cwd,
                env=dict(env or {}),
                config=dict(config or {}),
                grants=grants_from(grants),
                trial=trial,
                secrets=self._known(env or {}, config or {}),
            )
        )

    @property
    def who(self) -> str:
        """Whoever acts where nobody else is named."""
        return self.principal.who

    @property
    def thread(self) -> ThreadId:
        """The conversation of this service."""
        return ThreadId(self.principal.thread or "")

    def _acting(self, who: str | Principal | None, thread: str | None = None) -> Principal:
        return self.principal.acting(who or None, thread) if who or thread else self.principal

    def _known(self, *given: Mapping[str, Any]) -> Secrets:
        """What is masked in all that is said of a call: what configuration and templates hold, and what is given."""
        known = self._secrets | self.discovery.secrets
        return known | Secrets(value for table in given for value in named_secrets(table)) if any(given) else known

    async def preview(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, config: Mapping[str, Any] | None = None
    ) -> str | None:
        """What a tool says that a call would do, without calling it; None where it says nothing."""
        self._running()
        await self._disk.renew(name)
        return await preview(self.catalogue.get(name, self.thread), arguments or {}, self._nobody(config or {}))

    def _nobody(self, config: Mapping[str, Any]) -> Nobody:
        return Nobody(
            self._root,
            self._sandbox.asking_launcher(),
            self.config.limits,
            principal=self.principal,
            cwd=self._directory,
            config=dict(config),
            secrets=self._known(config),
        )

    # Permissions.

    async def permissions_test(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, cwd: str = ".", thread: str | None = None
    ) -> Explained:
        """What would be decided about a call, and by which steps. Nothing is called, and no delegate is asked."""
        self._running()
        await self._disk.renew(name)
        spec = self.catalogue.get(name, thread or self.thread).spec
        walled = await self._walled(spec)
        given = await self.as_judged(name, arguments or {}, thread=thread)
        return self.judge.explain(Question(spec, given, cwd=cwd, thread=thread or self.thread, walled=walled))

    async def as_judged(self, name: str, arguments: Mapping[str, Any], *, thread: str | None = None) -> dict[str, Any]:
        """The arguments as a call is judged with: texts are the values that they stand for. What a Python tool makes of
        its arguments is not known, since that would run it; what a tool refuses stays as it is."""
        tool = self.catalogue.get(name, thread or self.thread)
        given: dict[str, Any] = own_copy(arguments)
        if tool.spec.preprocesses and tool.spec.kind != "python":
            with contextlib.suppress(HaftError):
                given = await tool.preprocess(own_copy(arguments), self._nobody({}))
        return given

    async def _walled(self, spec: ToolSpec) -> bool:
        return spec.hosting != "in-process" and (await self._sandbox.ready()).namespaces

    def inbox(self, *, all: bool = False) -> list[Waiting]:  # noqa: A002  the word of the command line
        """The calls that wait for a person, in this workspace or in all; any process can answer them."""
        with contextlib.closing(InboxFacade(self.home)) as inbox:
            return inbox.waiting(None if all else self._transactions.workspace)

    def approve(
        self,
        name: str,
        *,
        scope: Scope = "once",
        allow: int = 0,
        arguments: Mapping[str, Any] | None = None,
        grants: Grants | Mapping[str, Any] | None = None,
        message: str | None = None,
        who: str | Principal | None = None,
    ) -> asyncio.Task[Reply]:
        """Say yes to a call that waits, by its name in the inbox or its run's; said even where it is not awaited.
        `NeedsPerson` for agents."""
        principal = self._acting(who)
        principal.must_be_person("approve")
        answer = {"scope": scope, "allow": allow, "arguments": arguments, "grants": grants, "message": message}
        return self._replied(name, principal, approved=True, **answer)

    def reject(
        self, name: str, *, message: str | None = None, who: str | Principal | None = None
    ) -> asyncio.Task[Reply]:
        """Say no to a call that waits; the message is told to the model."""
        return self._replied(name, self._acting(who), approved=False, message=message)

    def _replied(self, name: str, principal: Principal, **answer: Any) -> asyncio.Task[Reply]:
        task = asyncio.get_running_loop().create_task(self._reply(name, principal, **answer))
        self._replies.add(task)
        task.add_done_callback(self._replies.discard)
        return task

    async def _reply(self, name: str, principal: Principal, **answer: Any) -> Reply:
        self._running()

        def give() -> Reply:
            with contextlib.closing(InboxFacade(self.home)) as inbox:
                return inbox.answer(inbox.find(name), who=principal, **answer)

        reply = await asyncio.to_thread(give)
        if reply.settle:
            await (self.apply if reply.approved else self.drop)(reply.waiting.run, who=principal)
        return reply

    # Changes.

    def undo(
        self, *runs: str, thread: str | None = None, force: bool = False, who: str | Principal | None = None
    ) -> Run:
        """Take back what runs changed, all of them or none; without any, the last of whoever undoes. Returns at once
        with the run that does it. `thread` names runs to take back, and is not the thread of whoever undoes."""
        principal = self._acting(who)
        rows = self._rows("undo", runs, thread, principal.who)
        return self._settle("undo", [row.run for row in rows], principal, force=force)

    def redo(self, *runs: str, force: bool = False, who: str | Principal | None = None) -> Run:
        """Bring back what was undone; named are the runs that were undone."""
        principal = self._acting(who)
        rows = self._rows("redo", runs, None, principal.who)
        return self._settle("redo", [row.run for row in rows], principal, force=force)

    def apply(self, run: str, *, who: str | Principal | None = None) -> Run:
        """Commit what a run holds. `NeedsPerson` for agents."""
        principal = self._acting(who)
        principal.must_be_person("apply")
        return self._settle("apply", [self._here([self._change_set("apply", run)])[0].run], principal)

    def drop(self, run: str, *, who: str | Principal | None = None) -> Run:
        """Throw away what a run holds."""
        principal = self._acting(who)
        return self._settle("drop", [self._here([self._change_set("drop", run)])[0].run], principal)

    def look_ahead(
        self,
        direction: Direction,
        *runs: str,
        thread: str | None = None,
        force: bool = False,
    ) -> Reversed:
        """What an undo or redo would do."""
        return look_ahead(self._changes(), direction, self._rows(direction, runs, thread, self.who), force=force)

    def diff(self, run: str) -> str:
        """What a run changed, as a patch. `BadUsage` where it changed nothing."""
        changes = self._changes()
        self._change_set("diff", run)
        kept = KeptChanges(changes.ledger, changes.blobs)
        try:
            found = kept.find(run)
            shown = difference(found.entries, lambda each, side: kept.read(found, each, side))
            return "".join(each.text for each in shown if each.text)
        finally:
            kept.close()

    def _changes(self) -> Transactions:
        self._running()
        return self._transactions

    def _rows(self, direction: Direction, runs: Sequence[str], thread: str | None, who: str) -> list[Row]:
        changes = self._changes()
        for run in runs:
            if not (run.startswith("b_") or changes.ledger.of_parent(run) or self._made_by(run)):
                self._change_set(direction, run)
        return self._here(rows_for(changes.ledger, changes.workspace, who, runs, thread, direction, self._made_by))

    def _made_by(self, run: str) -> list[RunId]:
        return self._kept().made_by(run)

    def _change_set(self, verb: str, run: str) -> Row:
        """What a run changed; `BadUsage` where that is nothing, `UnknownRun` where there is no such run."""
        try:
            return self._changes().ledger.find(run)
        except UnknownRun:
            raise nothing_to(verb, self._kept().find(run)) from None

    def _here(self, rows: list[Row]) -> list[Row]:
        """Only change sets of this workspace can be moved from here."""
        for row in rows:
            if row.workspace != self._transactions.workspace:
                raise BadUsage(f"{row.run} changed {row.workspace}, which is not the workspace of this service")
        return rows

    def _settle(self, verb: Verb, runs: list[str], principal: Principal, *, force: bool = False) -> Run:
        arguments: dict[str, Any] = {"runs": runs, **({"force": True} if force else {})}
        pipeline = self._running()
        caller = pipeline.within()
        return pipeline.call(
            Call(
                run=new_run_id(),
                name=ToolName(verb),
                arguments=arguments,
                principal=principal if caller is None else caller.call.principal.acting(principal),
                parent=None if caller is None else caller.id,
                tool=ChangesTool(verb, self._transactions),
                decision=BY_NAME,
                secrets=self._known(),
            )
        )

    def run(self, run: str) -> Run | RunRecord:
        """A run of this host that has not ended, or any run as it was kept."""
        live = self._running().live.get(RunId(run))
        if live is not None:
            return live
        return brought_up_to_date(self._changes().ledger, self._kept().find(run))

    def runs(self, **wanted: Any) -> list[RunRecord]:
        """Runs of this state home, newest first; by tool, status, who, thread, parent, path, since, before, limit."""
        for name in wanted:
            if name not in FILTERS:
                near = near_miss(name, FILTERS)
                hint = f"did you mean `{near}`?" if near else f"they are {', '.join(FILTERS)}"
                raise BadUsage(f"runs are not told apart by `{name}`", hint=hint)
        found = self._kept().runs(Filter(**wanted))
        if self._pipeline is None:
            return found
        return [brought_up_to_date(self._transactions.ledger, run) for run in found]

    def cancel(self, run: str, *, who: str | Principal | None = None) -> bool:
        """Cancel a run of this host or of another. False when it had ended already."""
        principal = self._acting(who)
        if self._cancel_live(RunId(run), principal):
            return True
        record = self._kept().find(run)
        if record.is_open:
            self._kept().request_cancel(record.id, to_text(principal))
        return record.is_open

    def _cancel_live(self, run: RunId, principal: Principal) -> bool:
        live = self._pipeline.live.get(run) if self._pipeline is not None else None
        return live is not None and live.cancel(principal)

    # Tools.

    def tools(self, *, all: bool = False, thread: str | None = None) -> list[Listing]:  # noqa: A002  as `--all`
        """The tools that can be called, in the service's thread or another; with `all`, also those that cannot, and
        why."""
        return self.catalogue.listings(all=all, thread=thread or self.thread)

    async def look_again(self, name: str) -> Listing | None:
        """Look at the disk again because a tool is wanted that is not there, or is broken; the tool, where it is there
        now and can be called."""
        self._running()
        await self._disk.renew(name)
        return next((one for one in self.tools() if one.spec.name == name), None)

    async def load(self, path: str, *, grants: Grants | Mapping[str, Any] | None = None) -> Listing:
        """Take in the tool at a path that no toolbox has, or find the one that has it. The network, variables and files
        to read that `grants` name are its own while it is asked what it is."""
        self._running()
        return await self._disk.load(path, self.thread, grants_from(grants))

    def add(self, tool: ToolLike) -> Listing:
        """Take in another tool, as if handed over at the start."""
        return self.catalogue.add(as_a_tool(tool))

    def remove(self, name: str) -> None:
        self.catalogue.remove(name)

    def watch_tools(self) -> AsyncIterator[list[Listing]]:
        """The tools now, and again after every change."""
        return self.catalogue.watch(thread=self.thread)

    # Record.

    @property
    def record(self) -> RecordFacade:
        """The chained record."""
        return RecordFacade(self.home)

    @property
    def loaded(self) -> int:
        """How many programs of tools are kept loaded, and answer their next call from a fork."""
        return self._sandbox.loaded

    @property
    def abandoned(self) -> int:
        """Tools and threads that ignored their cancellation and are still at work in this process."""
        # Nobody abandons a thread of a room that was never entered.
        threads = sys.modules.get("haft.sources.python.workers")
        return self._running().abandoned + (0 if threads is None else threads.abandoned())

    def _tell_abandoned(self) -> None:
        """Let others know how many functions this process could not stop; again, until they ended by themselves."""
        if self._pipeline is None or self._abandoned_timer is not None:
            return
        count = self.abandoned
        if count != self._abandoned_told:
            self._abandoned_told = count
            with contextlib.suppress(OSError):
                self._lease.tell({"abandoned": count})
        if count:
            self._abandoned_timer = asyncio.get_running_loop().call_later(1.0, self._tell_again)

    def _tell_again(self) -> None:
        self._abandoned_timer = None
        self._tell_abandoned()

    def _running(self) -> Pipeline:
        if self._pipeline is None:
            raise BadConfig("this service is not open", hint="use it inside `async with ToolService.open(...)`")
        return self._pipeline

    def _trail_of(self) -> Trail:
        self._running()
        return self._trail

    def _kept(self) -> History:
        if self._history is None:
            self.home.prepare()
            self._history = History(self.home)
        return self._history


def _note_cold(state_home: str, name: str, version: str, why: str) -> None:
    from haft.toolsets.environments.cold import note_cold

    note_cold(state_home, name, version, why)
