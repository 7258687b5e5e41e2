"""The inbox, as any process sees it: the requests that wait for a person, and the answers to them.

If the host that asked is alive, it reads the answer and continues. If that host is dead, the call does not run. If the
request was about the changes of a trial run, the process that answers applies or drops these changes. If it was about a
call, an approval is stored, and allows exactly the same call once.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from haft import changes
from haft.audit import Redactor, Trail, secret_values
from haft.contracts import (
    NO_GRANTS,
    AnsweredBefore,
    BadUsage,
    Conflict,
    Grants,
    HaftError,
    OwnCall,
    Principal,
    Question,
    Rejected,
    RuleOffer,
    ShownHasChanged,
    UnknownRequest,
    UnknownRun,
    check_owned,
    grants_from,
    is_batch_id,
    iso_time,
    with_current_names,
)
from haft.policy import (
    Answered,
    Inbox,
    Memory,
    Signer,
    Waiting,
    digest_of,
    with_people,
    with_proof,
    with_variables,
)
from haft.runs import History, RunRecord
from haft.service.approval_secret import ApprovalSecret
from haft.service.call_arguments import check_form
from haft.service.changes import ChangesFacade
from haft.service.paused_runs import end_waiting, is_waiting
from haft.storage import StateHome, open_stores
from haft.values import replace


@dataclass(frozen=True, slots=True)
class Reply:
    """The effect of an answer."""

    waiting: Waiting
    approved: bool
    host_lives: bool
    """Whether the host that asked is alive, so that it continues with the answer. If it is not, see `settle`."""
    is_paused: bool = False
    """Whether the run stays paused until its program resumes it, in any process: the host that asked is dead, and
    another one can go on with the run."""
    paths: tuple[str, ...] = ()
    """The chosen paths of a trial run; empty for all."""
    others: tuple[Reply, ...] = ()
    """For an answer to a batch: the replies to its other requests."""

    @property
    def settle(self) -> bool:
        """Whether the process that answered must apply or drop the changes of the trial run now, because the host of
        the trial run is dead."""
        return self.waiting.tried and not self.host_lives

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.waiting.id,
            "run": self.waiting.run,
            "tool": self.waiting.shown.get("tool"),
            "approved": self.approved,
            "waits": self.host_lives,
            "paths": list(self.paths),
        }


class InboxFacade:
    """The requests of a state home."""

    def __init__(self, home: StateHome) -> None:
        stores = open_stores(home)
        self._home = home
        self._leases = stores.leases()
        self._log = stores.audit_log()
        self._connection = stores.connect()
        self._inbox = Inbox(self._connection)
        self.secret = ApprovalSecret(home)
        """The approval passphrase, if one is set."""

    def waiting(self, workspace: str | None = None) -> list[Waiting]:
        """The requests that can be answered, the oldest first."""
        return self._inbox.waiting(workspace)

    def find(self, name: str) -> Waiting:
        """The request with this id, or with a run that has this id. Raises `AnsweredBefore` or `BadUsage` if the
        request can no longer be answered."""
        found = self._inbox.find(name)
        if found.state != "open" and found.answer is not None:
            raise AnsweredBefore(found.id, how_answered(found.answer))
        if found.state != "open":
            raise BadUsage(
                f"{found.id} needs no answer any more", hint=f"`haft show {found.run}` says how the call ended"
            )
        if found.expires_at <= time.time():
            raise BadUsage(f"{found.id} expired at {iso_time(found.expires_at)}", hint="call the tool again")
        return found

    def seen(self, name: str) -> Waiting | None:
        """The request with this id, or with a run that has this id, whatever became of it; None if there is none."""
        with contextlib.suppress(HaftError):
            return self._inbox.find(name)
        return None

    def find_all(self, name: str) -> list[Waiting]:
        """The requests that an answer to `name` answers: the one with this id or run, or all that wait in the batch
        with this id. Raises `UnknownRequest` if no request waits in the batch."""
        if not is_batch_id(name):
            return [self.find(name)]
        found = [waiting for waiting in self.waiting() if waiting.shown.get("batch") == name]
        if not found:
            raise UnknownRequest(name)
        return found

    def answer(
        self,
        waiting: Waiting,
        *,
        approved: bool,
        who: Principal,
        message: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        grants: Grants | Mapping[str, Any] | None = None,
        scope: str = "once",
        allow: int = 0,
        paths: Sequence[str] = (),
        digest: str | None = None,
        signer: Signer | None = None,
    ) -> Reply:
        """Answer a request. `digest` is the digest of what the person saw; None: of what `waiting` shows. `paths` are
        the chosen paths of a trial run. `signer` proves that the person knows the approval passphrase. Raises
        `NeedsPerson` if an agent approves, `Rejected` if a passphrase is set and there is no `signer`,
        `ShownHasChanged` if the request shows something else now, and `AnsweredBefore` if somebody else was faster."""
        if approved:
            _require_other_person(waiting, who)
        self._require_signer(waiting, signer)
        self._require_same(waiting, digest)
        if paths:
            self._check_paths(waiting, paths, is_plain=approved)
        lives = self._leases.is_alive(waiting.host)
        try:
            opened = grants_from(grants).to_json()
            check_owned(grants_from(grants).network)
        except ValueError as error:
            raise BadUsage(f"grants: {error}") from error
        paused = None if lives else self._paused(waiting)
        self._check(
            waiting,
            lives=lives or paused is not None,
            arguments=arguments,
            opens=grants_from(grants) != NO_GRANTS,
            scope=scope,
            allow=allow,
        )
        if approved and not lives and (command := waiting.shown.get("build")) is not None:
            raise BadUsage(
                "the process that asked has ended, so an approval would build nothing", hint=f"`{command}` builds it"
            )
        if approved and not lives and waiting.shown.get("connection") is not None:
            raise BadUsage("the process that asked has ended, and the connection with it", hint="call the tool again")
        if (asked := waiting.shown.get("question")) is not None:
            if not lives:
                raise BadUsage("the process that asked has ended, and its question with it", hint="call the tool again")
            if scope != "once" or grants_from(grants) != NO_GRANTS:
                raise BadUsage(
                    "this request is a question of a tool: it takes no grants, and holds once",
                    hint=f"answer it: `haft approve {waiting.id} --args JSON`, or `haft reject {waiting.id}`",
                )
            if approved:
                check_form(Question(**asked), arguments or {})
        given = Answered(
            approved=approved,
            who=who.who,
            thread=who.thread,
            kind=who.kind,
            seen=waiting.digest,
            at=time.time(),
            message=message,
            arguments=None if arguments is None else dict(arguments),
            grants=opened,
            scope=scope,
            allow=allow,
            paths=[*paths] or None,
        )
        given = given if signer is None else self._signed(waiting, given, signer)
        if not self._inbox.answer(waiting, given):
            self.find(waiting.id)  # Raises with the reason: somebody else has answered, or nobody needs an answer.
            raise Conflict(f"{waiting.id} was not answered", hint="`haft inbox` lists the requests")
        if not lives:
            self._without_host(waiting, given, paused)
        return Reply(waiting, approved, lives, is_paused=paused is not None, paths=tuple(paths))

    def _require_same(self, waiting: Waiting, digest: str | None) -> None:
        """Raise `ShownHasChanged` if a request does not show what the person saw, or if a trial run no longer holds
        what its request shows: somebody may have applied a part of its changes."""
        shown = self.find(waiting.id).shown
        if waiting.tried and (held := self._held_diff(waiting)) is not None and held != shown["diff"]:
            shown = {**shown, "diff": held}
            self._inbox.show_anew(waiting.id, shown)
        now = digest_of(shown)
        if now != (digest or waiting.digest):
            raise ShownHasChanged(waiting.id, now)

    def _held_diff(self, waiting: Waiting) -> str | None:
        """The diff of the changes that a trial run holds now; None if it holds none."""
        with contextlib.closing(ChangesFacade(self._home)) as kept:
            row = kept.ledger.get(waiting.run)
            return None if row is None or row.state != "held" else kept.diff_text(waiting.run)

    def _check_paths(self, waiting: Waiting, paths: Sequence[str], *, is_plain: bool) -> None:
        if not is_plain or not waiting.tried:
            raise BadUsage("paths can be chosen only to approve the changes of a trial run")
        with contextlib.closing(ChangesFacade(self._home)) as kept:
            changes.chosen_paths(waiting.run, kept.find(waiting.run).entries, paths)

    def _paused(self, waiting: Waiting) -> RunRecord | None:
        """The run of a request, if it waits for its program to resume it; None if it has ended."""
        with contextlib.closing(History(self._home)) as history, contextlib.suppress(UnknownRun):
            record = history.find(waiting.run)
            if is_waiting(self._home, record):
                return record
        return None

    def _require_signer(self, waiting: Waiting, signer: Signer | None) -> None:
        if signer is None and self.secret.verifier() is not None:
            raise Rejected(
                f"{waiting.id} was not answered: the answer needs the approval passphrase",
                hint="`haft approve` and `haft reject` ask for it at a terminal; `--passphrase FILE` reads it",
            )

    @staticmethod
    def _signed(waiting: Waiting, given: Answered, signer: Signer) -> Answered:
        """The answer with proofs of the approval passphrase: for itself, and for the rule that it makes."""
        if given.approved and given.scope != "once":
            rule, thread = _rule_of(waiting, given)
            proof = signer.rule(waiting.workspace, rule, waiting.shown.get("pin"), thread)
            given = replace(given, rule_proof=proof)
        return signer.answer(waiting.id, given)

    def _without_host(self, waiting: Waiting, given: Answered, paused: RunRecord | None) -> None:
        if paused is not None and given.approved:
            return  # The host that goes on with the run records the answer.
        self._tell(waiting, given)
        if paused is not None:
            end_waiting(self._home, paused, "rejected-by-user", given.principal, given.message)
        if waiting.tried or not given.approved:
            self._inbox.end(waiting.id, "taken")
        if given.approved and given.scope != "once":
            rule, thread = _rule_of(waiting, given)
            memory = Memory(self._connection, waiting.workspace)
            memory.remember(
                with_proof(rule, given.rule_proof), pin=waiting.shown.get("pin"), thread=thread, who=given.who
            )

    def _tell(self, waiting: Waiting, given: Answered) -> None:
        """Record the answer in the audit log, because the host that would do so is dead."""
        trail = Trail(self._log, Redactor(secret_values(os.environ)), waiting.workspace)
        chosen: dict[str, Any] = {} if given.paths is None else {"paths": given.paths}
        try:
            trail.record_act(
                "approve" if given.approved else "reject",
                given.principal,
                waiting.run,
                str(waiting.shown.get("tool", "")),
                request=waiting.id,
                message=given.message,
                scope=given.scope,
                **chosen,
            )
        finally:
            trail.close()

    @staticmethod
    def _check(
        waiting: Waiting,
        *,
        lives: bool,
        arguments: Mapping[str, Any] | None,
        opens: bool,
        scope: str,
        allow: int,
    ) -> None:
        if (command := waiting.shown.get("build")) is not None and (scope != "once" or opens or arguments is not None):
            raise BadUsage(
                "this request is about building packages: it can only be approved or rejected as it is",
                hint=f"`{command}` approves it too",
            )
        if waiting.shown.get("connection") is not None and (opens or arguments is not None):
            raise BadUsage(
                "this request is about one connection of a call in progress: it takes no grants and no arguments",
                hint="approve it, with --thread or --always also for later calls, or reject it",
            )
        if scope not in ("once", "thread", "always"):
            raise BadUsage(f"the scope of an answer must be once, thread or always, not `{scope}`")
        offered = waiting.shown.get("toAllow", [])
        if scope != "once" and not offered:
            raise BadUsage(
                "no rule can allow such calls in advance: the command runs any code that it gets, or is dangerous",
                hint="approve it once, or write a rule: `haft permissions add`",
            )
        if scope != "once" and not 0 <= allow < len(offered):
            raise BadUsage(f"there is no choice {allow + 1}", hint=f"they are numbered from 1 to {len(offered)}")
        if waiting.tried and (scope != "once" or opens):
            raise BadUsage("the trial run is over: its changes can only be applied or dropped")
        if arguments is not None and waiting.tried:
            raise BadUsage("the trial run is over: its arguments cannot be changed any more")
        if arguments is not None and not lives:
            raise BadUsage(
                f"the process that asked has ended: {waiting.id} can only be approved as it is, for the next same call",
                hint="call the tool again with other arguments",
            )

    def close(self) -> None:
        self._connection.close()


def check_together(found: Sequence[Waiting], answer: Mapping[str, Any]) -> None:
    """Raise `BadUsage` if an answer to several requests has parts that make sense for one request only."""
    if len(found) < 2:
        return
    if answer.get("arguments") is not None:
        raise BadUsage(
            f"{len(found)} calls of the batch wait: other arguments can be given for one call only",
            hint=f"answer one of them: {', '.join(each.id for each in found[:5])}",
        )
    if answer.get("paths") or answer.get("digest") is not None:
        raise BadUsage(
            f"{len(found)} calls of the batch wait: paths and a digest belong to one call",
            hint=f"answer one of them: {', '.join(each.id for each in found[:5])}",
        )
    if answer.get("scope", "once") != "once" or grants_from(answer.get("grants")) != NO_GRANTS:
        raise BadUsage(
            f"{len(found)} calls of the batch wait: an answer to all of them holds once, and takes no grants",
            hint=f"answer one of them: {', '.join(each.id for each in found[:5])}",
        )


def together(replies: Sequence[Reply]) -> Reply:
    """The reply to the first of several requests, with the other replies."""
    return replace(replies[0], others=tuple(replies[1:]))


def _require_other_person(waiting: Waiting, who: Principal) -> None:
    """Raise `NeedsPerson` if an agent approves, and `OwnCall` if somebody else must approve the call."""
    who.must_be_person("approve")
    if not {who.who, who.on_behalf}.isdisjoint(waiting.shown.get("notBy", ())):
        raise OwnCall(who.who, waiting.id)


def _rule_of(waiting: Waiting, given: Answered) -> tuple[Mapping[str, Any], str | None]:
    """The rule that a lasting answer makes, and the only thread in which it holds."""
    offered = RuleOffer(**waiting.shown["toAllow"][given.allow])
    rule = offered.rule
    if waiting.shown.get("connection") is None:
        rule = with_variables(offered, grants_from(given.grants).env).rule
    return with_people(rule, given.who, waiting.who), waiting.thread if given.scope == "thread" else None


def to_json(waiting: Waiting) -> dict[str, Any]:
    """The request as `haft inbox --json` prints it."""
    shown = with_current_names(waiting.shown)
    return {
        "id": waiting.id,
        "run": waiting.run,
        "digest": waiting.digest,
        "tool": shown["tool"],
        "args": shown["arguments"],
        "preview": shown.get("preview"),
        "reason": shown["reason"],
        "claim": shown.get("claim"),
        "parts": shown["parts"],
        "sandbox": shown["sandbox"],
        "withheld": shown.get("withheld", []),
        "diff": shown["diff"],
        "output": shown["output"],
        "definitionDiff": shown["definitionDiff"],
        "toAllow": shown["toAllow"],
        "build": shown.get("build"),
        "connection": shown.get("connection"),
        "question": shown.get("question"),
        "batch": shown.get("batch"),
        "who": waiting.who,
        "thread": waiting.thread,
        "notBy": shown.get("notBy", []),
        "chain": shown["chain"],
        "purposes": shown.get("chainPurposes", []),
        "createdAt": iso_time(waiting.created_at),
        "expiresAt": iso_time(waiting.expires_at) if waiting.expires else None,
        "cwd": shown["cwd"],
        "env": shown["env"],
        "workspace": waiting.workspace,
    }


def answered_by(home: StateHome, name: str) -> str | None:
    """A text that says who answered a request, and how; None if there is no answer, or the answer is not known."""
    try:
        with contextlib.closing(open_stores(home).connect()) as connection:
            answer = Inbox(connection).find(name).answer
    except HaftError:
        return None
    return None if answer is None else how_answered(answer)


def how_answered(answer: Answered) -> str:
    """A text that says who gave an answer, and how."""
    if not answer.approved:
        return f"{answer.who} rejected it"
    lasting = {"thread": ", for its thread", "always": ", and such calls from now on"}.get(answer.scope, "")
    return f"{answer.who} approved {'a part of it' if answer.paths else 'it'}{lasting}"
