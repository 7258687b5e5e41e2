"""A stage that may answer a call: if an equal call was answered before, and nothing that its answer depends on has
changed since, the call gets the same answer, and the tool does not run. Otherwise the stage watches the call, and keeps
its answer if that can be given again.

Only tools that declare that they only read (`readonly`), and that equal calls have equal answers (`cacheable`), are
answered so, and command lines of which haft knows it. Policy has decided about the call before, as about any other, and
all calls that come before it in its batch have ended.

An answer is kept only if no file that it depends on changed from before the tool began until haft examined the files
after its end; the ctimes say so. A kept answer is given only if the files have the same stamp. haft examines files only
while it has a view of the workspace in which no layer lies over the workspace's own files: then these are one committed
state.

Equal calls that come at once wait for the first of them, and look again when it has ended. A nested call never does,
because the other call might wait for one of its callers.
"""

from __future__ import annotations

import asyncio
import functools
import os
import secrets
import time
from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from haft import cache
from haft.contracts import AnswerBasis, Confinement, Outcome, Paths, ToolName, Workspace, evolve
from haft.pipeline import nesting
from haft.pipeline.chain import Proceed
from haft.pipeline.confinement import Confinements, grants_of
from haft.pipeline.footprints import Footprints
from haft.pipeline.masking import masked_outcome
from haft.pipeline.run import Run
from haft.policy import loaded_files, pin_of, repeatable_line
from haft.sandbox import Sandbox

if TYPE_CHECKING:
    from haft.cache import Files, KeptAnswer, KeptAnswers, Stamp, WatchedTrees
    from haft.changes import EngineSelector, View

FROM_CACHE: Final = Confinement(network=False, reason="it was answered from the cache")
_NO_ANSWER: Final = "no answer of an equal call is kept"
_FIELDS: Final = ("output", "stderr", "exit_code", "result", "output_bytes", "content")
"""The fields of an outcome that come from the tool."""
_MAY_LAG: Final = ("9p", "afs", "ceph", "cifs", "ecryptfs", "fuse", "gfs2", "lustre", "nfs", "ocfs2", "smb", "virtiofs")
"""Filesystems that other machines may change."""
_DEEPEST: Final = 50
_LARGEST: Final = 2**63
_FORGET_SECONDS: Final = 60.0
"""After this time, haft looks again whether files that were too many are fewer now."""
_MOST_REMEMBERED: Final = 1_000
_SMALL: Final = 200
"""So many files are examined without a thread."""


class _NotNow(Exception):
    """The files cannot be examined now; the text says why."""


class Recall:
    """Answers calls from the cache."""

    def __init__(
        self,
        answers: KeptAnswers,
        trees: Callable[[], WatchedTrees],
        engine_selector: Callable[[], EngineSelector],
        workspace: Workspace,
        footprints: Footprints,
        sandbox: Sandbox,
        confinements: Confinements,
        limits: object,
        *,
        by_content: bool,
    ) -> None:
        self._answers = answers
        self._trees = trees
        self._engine_selector = engine_selector
        self._workspace = workspace
        self._footprints = footprints
        self._sandbox = sandbox
        self._confinements = confinements
        self._limits = limits
        self._by_content = by_content
        self._flights: dict[str, tuple[asyncio.Future[None], int, str]] = {}
        """For each key whose answer a call is making now: done when that call ends, the number of the last commit
        before it began, and its run."""
        self._unstampable: dict[tuple[str, ...], tuple[str, float]] = {}
        """The paths that could not be examined, why not, and until when haft does not try again."""
        self._functions: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        """A name for each function of this process: its answers are not given to other processes."""

    @staticmethod
    def skips(run: Run) -> bool:
        """Whether no answer of the tool is ever kept."""
        return run.tool.spec.why_not_kept is not None

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        why = self._why_not(run)
        if why is not None:
            return await (proceed(run) if run.tool.spec.commands else self._run(run, proceed, why))
        try:
            files, key = await self._key_of(run)
        except _NotNow as error:
            return await self._run(run, proceed, str(error))
        outcome, why = await self._look(run, key, files)
        if outcome is None and run.parent is None and await self._has_joined(run, key):
            outcome, why = await self._look(run, key, files)
        if outcome is not None:
            return outcome
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        is_leader = key not in self._flights
        if is_leader:
            self._flights[key] = done, self._number(), run.id
        try:
            return await self._run_and_keep(run, proceed, why, key, files)
        finally:
            if is_leader:
                del self._flights[key]
                done.set_result(None)

    def _why_not(self, run: Run) -> str | None:
        """Why this call is not answered from the cache, although the answers of its tool are kept; None if it may
        be."""
        call, spec, footprint = run.call, run.tool.spec, run.call.footprint
        if self._answers.is_off:
            return "the cache is off"
        if not call.uses_cache:
            return "the call wanted the tool to run (`--no-cache`, or `uses_cache=False`)"
        if call.trial or call.holds or run.decision.action == "try" or call.attachment is not None:
            return "its changes are not those of an ordinary call"
        if any(each.transaction is not None for each in nesting.callers(run)):
            return "it sees what its caller has changed"
        if self._engine_selector().filesystem_of_workspace().startswith(_MAY_LAG):
            return "the filesystem of the workspace may show changes late"
        granted = grants_of(call)
        if granted.network or granted.path or granted.read or granted.write or granted.scratch:
            return "it was granted more than the workspace"
        if spec.commands:
            line = call.arguments.get(spec.commands[0])
            if footprint is None or footprint.reads is None or footprint.writes != () or not isinstance(line, str):
                return "haft does not know which files its command line reads and writes"
            if run.decision.profile != "read-only" or repeatable_line(line) is None:
                return "the output of its command line may differ each time"
        return None

    async def _run(self, run: Run, proceed: Proceed, why: str) -> Outcome:
        self._answers.missed(why)
        run.cache_facts = {"cache": f"not answered: {why}"}
        return await proceed(run)

    # What decides the answer.

    async def _key_of(self, run: Run) -> tuple[Files, str]:
        """The files that the answer of a call depends on, and the key of everything else that it depends on."""
        call, spec, root = run.call, run.tool.spec, self._workspace.root
        footprint = call.footprint
        reads = _known(None if footprint is None else footprint.reads)
        confinement = None if spec.hosting == "in-process" else await self._confinements.of(run)
        if confinement is None:
            variables: Mapping[str, str] = {} if spec.provenance == "builtin" else dict(os.environ)
        else:
            variables = self._sandbox.variables_of(confinement)
        places = [root if path == "." else os.path.join(root, path) for path in reads]
        makes_basis: Callable[[list[str]], AnswerBasis] | None = getattr(run.tool, "answer_basis", None)
        basis = AnswerBasis() if makes_basis is None else makes_basis(places)
        files = cache.Files(
            root,
            reads,
            self._named(run),
            (*basis.files, *spec.files, *loaded_files(spec).files, *self._programs(run, variables)),
            basis.leaves_out,
            follows_links=basis.follows_links,
            by_content=self._by_content,
        )
        pin, has_scratch = pin_of(spec), confinement is not None and confinement.scratch is not None
        facts = {
            "tool": [spec.name, spec.kind, spec.origin, spec.provenance, spec.digest],
            "definition": None if pin is None else pin.digest,
            "function": self._function_name(run),
            "versions": basis.versions,
            "arguments": _in_order(call.arguments),
            "cwd": call.cwd,
            "env": _in_order(call.env),
            "config": _in_order(call.config),
            "who": [call.principal.who, call.principal.kind],
            "thread": None if spec.provenance == "builtin" and not has_scratch else call.thread,
            "reads": reads,
            "confinement": None if confinement is None else evolve(confinement, layer=None),
            "variables": sorted(variables.items()),
            "limits": self._limits,
            "secrets": sorted(call.secrets.values),
        }
        key = self._answers.key_of(facts)
        if key is None:
            raise _NotNow("the state home cannot be used")
        return files, key

    async def _reads(self, run: Run) -> tuple[str, ...]:
        """The paths that a call reads, with links resolved as they are now."""
        return _known((await self._footprints.of_run(run)).reads)

    def _named(self, run: Run) -> tuple[str, ...]:
        """The absolute paths that a call reads, with the links that the call names."""
        call, spec = run.call, run.tool.spec
        root = self._workspace.root
        if spec.commands:
            here = os.path.join(root, str(call.arguments.get("cwd", call.cwd)))
            line = repeatable_line(call.arguments[spec.commands[0]])
            return () if line is None else tuple(os.path.join(here, each) for each in line.operands)
        given = [call.arguments.get(name) for name in spec.reads or ()]
        named = [each for value in given for each in (value if isinstance(value, list | tuple) else (value,))]
        bases = (root, os.path.join(root, call.cwd))
        return tuple(os.path.join(base, each) for each in named if isinstance(each, str) for base in bases)

    @staticmethod
    def _programs(run: Run, variables: Mapping[str, str]) -> list[str]:
        """The files of the programs that a command line runs."""
        line = repeatable_line(run.call.arguments[run.tool.spec.commands[0]]) if run.tool.spec.commands else None
        directories = variables.get("PATH", "").split(os.pathsep)
        return [os.path.join(each, name) for name in ("bash", *line.programs) for each in directories] if line else []

    def _function_name(self, run: Run) -> str | None:
        """A name for the function of this process that the tool calls; None if the tool calls none."""
        spec = run.tool.spec
        if spec.hosting != "in-process" or spec.provenance == "builtin":
            return None
        function = getattr(run.tool, "function", None)
        try:
            return self._functions.setdefault(function, secrets.token_hex(16))
        except TypeError:
            raise _NotNow("haft does not know the code of the tool") from None

    # Looking for an answer.

    async def _look(self, run: Run, key: str, files: Files) -> tuple[Outcome | None, str]:
        """The outcome of a call as an earlier answer gives it; or None and the reason."""
        kept = self._answers.find(key)
        if kept is None:
            return None, _NO_ANSWER
        try:
            stamp = await self._stamp(run, files)
        except _NotNow as error:
            return None, str(error)
        if stamp.digest != kept.stamp:
            return None, "a file that the kept answer depends on has changed"
        outcome = _outcome_of(run, kept)
        if outcome is None:
            return None, _NO_ANSWER
        self._answers.used(key)
        if run.batch is not None:
            run.batch.started(run)
        run.cache_facts = {"cache": f"answered from the cache (of run {kept.run})"}
        run.set_status("in-progress", run.cache_facts)
        return outcome, ""

    async def _stamp(self, run: Run, files: Files) -> Stamp:
        """The stamp of files of one committed state. Raises `_NotNow` if there is none."""
        selector = self._engine_selector()
        if selector.is_off:
            return await self._examine(files)
        view = await selector.take_view(run.id, lambda holder, is_person: run.tell_waiting(holder, is_person=is_person))
        try:
            if view.lowers:
                raise _NotNow("committed changes are not in the workspace's own files yet")
            stamp = await self._examine(files)
            if await self._reads(run) != files.paths:
                raise _NotNow("a link on the way to its files has changed")
        finally:
            selector.end_view(view)
        if view.torn is not None:
            raise _NotNow("another call committed while haft examined the files")
        return stamp

    async def _examine(self, files: Files) -> Stamp:
        why, until = self._unstampable.pop(files.paths, ("", 0.0))
        if time.monotonic() < until:
            self._unstampable[files.paths] = why, until
            raise _NotNow(why)
        stop: list[bool] = []
        try:
            if len(files.paths) <= _SMALL and not any(map(os.path.isdir, _places(files))):
                return self._trees().stamp_of(files)
            if (known := self._trees().known(files)) is not None:
                return known
            look = functools.partial(self._trees().stamp_of, files, stopped=lambda: bool(stop))
            looking = asyncio.ensure_future(asyncio.to_thread(look))
            try:
                return await asyncio.shield(looking)
            except asyncio.CancelledError:
                stop.append(True)
                await asyncio.wait((looking,))
                looking.exception()
                raise
        except cache.Unstampable as error:
            if len(self._unstampable) >= _MOST_REMEMBERED:
                self._unstampable.clear()
            self._unstampable[files.paths] = str(error), time.monotonic() + _FORGET_SECONDS
            raise _NotNow(str(error)) from None

    def _number(self) -> int:
        return self._engine_selector().last_commit()

    async def _has_joined(self, run: Run, key: str) -> bool:
        """Wait for a call that makes the same answer now, if there is one that began after the last commit."""
        flight = self._flights.get(key)
        if flight is None or flight[1] != self._number():
            return False
        run.tell_waiting(flight[2], is_person=False)
        await asyncio.shield(flight[0])
        return True

    # Keeping an answer.

    async def _run_and_keep(self, run: Run, proceed: Proceed, why: str, key: str, files: Files) -> Outcome:
        began, clock = cache.kernel_time() - _STEP_NS, time.time() - time.monotonic()
        outcome = await self._run(run, proceed, why)
        if _can_be_given_again(run, outcome) and abs(time.time() - time.monotonic() - clock) * 1e9 < _STEP_NS:
            try:
                stamp = await self._stamp(run, files)
            except _NotNow:
                return outcome
            if stamp.is_older_than(began) and await self._key_of(run) == (files, key):
                masked = masked_outcome(outcome, run.call.secrets)
                answer = {name: getattr(masked, name) for name in _FIELDS}
                answer["content"] = [dict(block) for block in masked.content]
                answer["notes"] = list(run.notes)
                kept = cache.KeptAnswer(run.id, self._answers.now(), stamp.digest, answer)
                self._answers.keep(key, kept)
        return outcome


_STEP_NS: Final = 2_000_000
"""If the clock was set during a call by more than this, the ctimes prove nothing."""


def _can_be_given_again(run: Run, outcome: Outcome) -> bool:
    """Whether an outcome contains everything that the tool gave, and the tool did nothing else."""
    view: View | None = run.view
    return (
        outcome.status == "done"
        and outcome.exit_code in (None, 0)
        and not outcome.truncated
        and not outcome.changes.files
        and not run.ended_children
        and not run.descendants
        and run.questions == 0
        and (run.connections is None or not run.connections.has_any)
        and (view is None or (not view.lowers and view.torn is None))
    )


def _outcome_of(run: Run, kept: KeptAnswer) -> Outcome | None:
    """The outcome of a call with the answer of an earlier one; None if the answer is damaged."""
    call, answer = run.call, kept.answer
    try:
        fields: dict[str, Any] = {name: answer[name] for name in _FIELDS}
        fields["content"] = tuple(dict(block) for block in answer["content"])
        for note in answer["notes"]:
            run.add_note(str(note))
        if not isinstance(fields["output"], str) or not isinstance(fields["stderr"], str):
            return None
    except (KeyError, TypeError, ValueError):
        return None
    return Outcome(
        call.run,
        ToolName(call.name),
        "done",
        call.principal.who,
        call.thread,
        parent=call.parent,
        decision=call.decision,
        sandbox=FROM_CACHE,
        cached=True,
        **fields,
    )


def _known(paths: Paths) -> tuple[str, ...]:
    """Paths as dependencies: if they are not known, the whole workspace."""
    return (".",) if paths is None else paths


def _places(files: Files) -> list[str]:
    return [os.path.join(files.root, path) for path in files.paths]


def _in_order(value: Any, depth: int = 0) -> Any:
    """A JSON value in which all tables are sorted, so that equal values are encoded equally, and others are not."""
    if depth > _DEEPEST:
        raise _NotNow("its arguments are nested too deeply")
    if isinstance(value, Mapping):
        return {"table": [[str(name), _in_order(value[name], depth + 1)] for name in sorted(value, key=str)]}
    if isinstance(value, list | tuple):
        return [_in_order(each, depth + 1) for each in value]
    if isinstance(value, float) and not isfinite(value):
        raise _NotNow("one of its arguments is no number")
    if isinstance(value, int) and abs(value) >= _LARGEST:
        return {"number": hex(value)}
    if value is None or isinstance(value, str | int | float):
        return value
    raise _NotNow("one of its arguments is no JSON")
