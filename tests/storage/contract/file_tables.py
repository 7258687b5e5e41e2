"""The tables of the second storage: each is asked for whole, as it is now, and filtered in Python."""

import dataclasses
import json
import os
import time

from haft.contracts import Event, RunId
from haft.storage import (
    Answered,
    ApprovalStore,
    KeptPin,
    KeptRule,
    KeyedRequest,
    Ledger,
    PinStore,
    RequestKeys,
    Row,
    RuleStore,
    RunStore,
    Waiting,
)


class Kept:
    def __init__(self, connection):
        self._connection = connection

    def _all(self, table):
        return self._connection.table(table)

    def _next(self, put, name):
        number = self._all("numbers").get(name, 0) + 1
        put("numbers", name, number)
        return number


class FileRuns(Kept, RunStore):
    def put(self, documents):
        with self._connection.writing() as put:
            for document in documents:
                text = document.decode().rstrip("\n")
                record, rest = (parsed := json.loads(text))["record"], parsed["rest"]
                known = self._all("runs").get(record["run"])
                if known is None or not known["ended"]:
                    number = self._next(put, "runs") if known is None else known["number"]
                    put("runs", record["run"], {"text": text, "ended": rest["endedAt"] is not None, "number": number})
                events = self._all("events").get(record["run"], {})
                events = {**events, **{str(event[0]): event for event in rest["noted"]}}
                if events:
                    put("events", record["run"], events)

    def sync(self):
        with open(self._connection.stores.path("transactions"), "rb") as file:
            os.fsync(file.fileno())

    def _newest(self):
        return [value["text"] for _, value in sorted(self._all("runs").items(), reverse=True)]

    def select(self, wanted):
        return [text for text in self._newest() if wanted.fits(**json.loads(text))][: wanted.limit]

    def named(self, prefix, limit):
        names = sorted((name for name in self._all("runs") if name.startswith(prefix)), reverse=True)
        return [self._all("runs")[name]["text"] for name in names[:limit]]

    def neighbours(self, name):
        names = sorted(self._all("runs"))
        before, after = [one for one in names if one <= name], [one for one in names if one > name]
        return [*before[-2:], *after[:1]]

    def ended_before(self, at, workspace, but):
        found = []
        for name, value in sorted(self._all("runs").items()):
            parsed = json.loads(value["text"])
            ended, where = parsed["rest"]["endedAt"], parsed["record"]["workspace"]
            if ended is not None and ended < at and where not in but and workspace in (None, where):
                found.append(name)
        return found

    def remove(self, runs):
        with self._connection.writing() as put:
            for run in runs:
                put("runs", run, None)
                put("events", run, None)

    def open_runs(self, host):
        texts = [value["text"] for value in self._all("runs").values() if not value["ended"]]
        return [text for text in texts if json.loads(text)["rest"]["host"] == host]

    def added(self, after, but, also):
        rows = sorted(self._all("runs").items(), key=lambda row: row[1]["number"])
        newest = max((value["number"] for _, value in rows), default=0)
        found = []
        for run, value in rows:
            is_new = after < value["number"] and json.loads(value["text"])["rest"]["host"] not in but
            if is_new or run in also:
                found.append(value["text"])
        return newest, found

    def take_over(self, runs, of, to):
        with self._connection.writing() as put:
            found = [json.loads(self._all("runs")[run]["text"]) for run in runs if run in self._all("runs")]
            if len(found) != len(runs) or not runs:
                return False
            if any(one["rest"]["host"] != of or one["rest"]["endedAt"] is not None for one in found):
                return False
            for run, one in zip(runs, found, strict=True):
                one["rest"]["host"] = to
                put("runs", run, {**self._all("runs")[run], "text": json.dumps(one)})
            return True

    def events_of(self, run, after=-1):
        events = sorted(self._all("events").get(run, {}).values())
        return [Event(run, *event) for event in events if event[0] > after]

    def request_cancel(self, run, who, at):
        with self._connection.writing() as put:
            put("cancels", run, [who, at])

    def take_cancels(self, runs):
        if not any(run in runs for run in self._all("cancels")):
            return []
        with self._connection.writing() as put:
            found = [(RunId(run), who) for run, (who, _at) in self._all("cancels").items() if run in runs]
            for run, _who in found:
                put("cancels", run, None)
            return found


class FileApprovals(Kept, ApprovalStore):
    def put(self, waiting, forget_before):
        with self._connection.writing() as put:
            for name, kept in self._all("approvals").items():
                if kept["expires_at"] < forget_before:
                    put("approvals", name, None)
            put("approvals", waiting.id, dataclasses.asdict(waiting))

    def _some(self, fits, *, newest_first=False):
        found = (value for _, value in sorted(self._all("approvals").items(), reverse=newest_first))
        return [waiting_of(value) for value in found if fits(value)]

    def open(self, now, workspace=None):
        return self._some(
            lambda one: one["state"] == "open" and one["expires_at"] > now and workspace in (None, one["workspace"])
        )

    def named(self, prefix):
        return self._some(lambda one: one["id"].startswith(prefix) or one["run"].startswith(prefix), newest_first=True)

    def _step(self, name, only, **changed):
        with self._connection.writing() as put:
            kept = self._all("approvals").get(name)
            if kept is None or kept["state"] != only:
                return False
            put("approvals", name, {**kept, **changed})
            return True

    def answer(self, name, answered):
        kept = self._all("approvals").get(name)
        if kept is None or kept["expires_at"] <= answered.at:
            return False
        return self._step(name, "open", state="answered", answer=dataclasses.asdict(answered))

    def answer_to(self, name):
        kept = self._all("approvals").get(name)
        return Answered(**kept["answer"]) if kept is not None and kept["state"] == "answered" else None

    def reopen(self, name):
        return self._step(name, "answered", state="open", answer=None)

    def prolong(self, name, expires_at):
        self._step(name, "open", expires_at=expires_at)

    def show_anew(self, name, shown):
        return self._step(name, "open", shown=shown)

    def close_open(self, name, answered=None):
        return self._step(name, "open", state="closed", shown={}, answer=answered and answered.to_json())

    def take_answered(self, name):
        return self._step(name, "answered", state="taken", shown={})

    def answered(self, fingerprint, now):
        return self._some(
            lambda one: (
                (one["fingerprint"], one["state"], one["tried"]) == (fingerprint, "answered", False)
                and one["expires_at"] > now
            )
        )

    def has_answered(self, fingerprint):
        return bool(self._some(lambda one: (one["fingerprint"], one["state"]) == (fingerprint, "answered")))


def waiting_of(value):
    return Waiting(**{**value, "answer": None if value["answer"] is None else Answered(**value["answer"])})


class FileRules(Kept, RuleStore):
    def remember(self, workspace, rule):
        with self._connection.writing() as put:
            for name, (place, kept) in self._all("rules").items():
                if (place, kept[1], kept[2]) == (workspace, rule.thread, rule.rule):
                    put("rules", name, None)
            number = self._next(put, "rules")
            put("rules", str(number), [workspace, [*rule._replace(number=number)]])

    def all(self, workspace):
        found = [KeptRule(*kept) for place, kept in self._all("rules").values() if place == workspace]
        return sorted(found, key=lambda kept: -kept.number)

    def forget(self, workspace, number):
        with self._connection.writing() as put:
            if self._all("rules").get(str(number), [None])[0] != workspace:
                return False
            put("rules", str(number), None)
            return True


class FilePins(Kept, PinStore):
    def of(self, workspace, tool):
        kept = self._all("pins").get(json.dumps([workspace, tool]))
        return None if kept is None else KeptPin(*kept)

    def holding(self, workspace, path):
        pins = [KeptPin(*kept) for key, kept in self._all("pins").items() if json.loads(key)[0] == workspace]
        return [pin for pin in pins if path in pin.definition["files"]]

    def add_if_absent(self, workspace, pin, who, at):
        with self._connection.writing() as put:
            key = json.dumps([workspace, pin.tool])
            if key not in self._all("pins"):
                put("pins", key, [*pin])
            return self._all("pins")[key][1]

    def approve(self, workspace, pin, who, at):
        with self._connection.writing() as put:
            put("pins", json.dumps([workspace, pin.tool]), [*pin])


class FileRequestKeys(Kept, RequestKeys):
    def claim(self, wanted, since):
        with self._connection.writing() as put:
            for key, kept in self._all("request_keys").items():
                if kept is not None and kept[4] < since:
                    put("request_keys", key, None)
            if self._all("request_keys").get(wanted.key) is None:
                put("request_keys", wanted.key, [wanted.key, wanted.request, [*wanted.runs], wanted.host, wanted.at])
            key, request, runs, host, at = self._all("request_keys")[wanted.key]
        return KeyedRequest(key, request, tuple(runs), host, at)

    def take_over(self, key, of, to):
        with self._connection.writing() as put:
            kept = self._all("request_keys").get(key)
            if kept is None or kept[3] != of:
                return False
            put("request_keys", key, [*kept[:3], to, kept[4]])
            return True

    def forget(self, key):
        with self._connection.writing() as put:
            put("request_keys", key, None)


class FileLedger(Kept, Ledger):
    def put(self, row, states=(), paths=None):
        with self._connection.writing() as put:
            known = self._all("changes")
            if row.run in known and known[row.run]["state"] == row.state:
                return
            values = {"seq": self._next(put, "changes"), "at": row.at or time.time()}
            put("changes", row.run, {**dataclasses.asdict(row), **values})
            if paths:
                put("paths", row.run, [*paths])
            for run, state in states:
                if run in self._all("changes"):
                    put("changes", run, {**self._all("changes")[run], "state": state, "latest": row.run})

    def _change(self, run, **changed):
        with self._connection.writing() as put:
            known = self._all("changes").get(run)
            if known is not None:
                put("changes", run, {**known, **changed})

    def set_state(self, run, state, reason=None):
        self._change(run, state=state, reason=reason)

    def set_files(self, run, files):
        self._change(run, files=files)

    def forget_images(self, run, reason):
        self._change(run, kept=False, reason=reason)

    def sync(self):
        self._connection.runs.sync()

    def _some(self, **wanted):
        rows = [Row(**{**value, "reverses": tuple(value["reverses"])}) for value in self._all("changes").values()]
        fitting = [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]
        return sorted(fitting, key=lambda row: row.seq)

    def latest(self):
        return max((row.seq for row in self._some()), default=0)

    def since(self, seq):
        return [row for row in self._some() if row.seq > seq]

    def get(self, run):
        return next(iter(self._some(run=run)), None)

    def named(self, prefix, limit):
        found = [row for row in self._some() if row.run.startswith(prefix)]
        return sorted(found, key=lambda row: row.run, reverse=True)[:limit]

    def _calls(self, state, **wanted):
        return [row for row in self._some(verb="call", state=state, **wanted) if row.files > 0]

    def last(self, workspace, who):
        return next(reversed(self._calls("committed", workspace=workspace, who=who)), None)

    def last_undone(self, workspace, who):
        return max(self._calls("undone", workspace=workspace, who=who), key=lambda row: row.latest, default=None)

    def touched(self, workspace, paths, after):
        later = {row.run for row in self._some(workspace=workspace) if row.seq > after}
        changed = {path for run, kept in self._all("paths").items() if run in later for path in kept}
        return changed & {*paths}

    def touching(self, workspace, paths, *, after=0, before=None, limit, newest_first=True):
        fitting = {run for run, kept in self._all("paths").items() if {*kept} & {*paths}}
        rows = [row for row in self._some(workspace=workspace) if row.run in fitting and row.seq > after]
        rows = [row for row in rows if before is None or row.seq < before]
        return sorted(rows, key=lambda row: row.seq, reverse=newest_first)[:limit]

    def of_parent(self, parent):
        return self._some(parent=parent, verb="call")

    def of_thread(self, workspace, thread):
        return self._calls("committed", workspace=workspace, thread=thread)

    def all(self, workspace=None, state=None):
        wanted = {"workspace": workspace, "state": state}
        return self._some(**{name: value for name, value in wanted.items() if value is not None})

    def held(self):
        return self._some(state="held")

    def undoable(self):
        kept = [row for row in self._calls("committed") if row.kept]
        times = {area: [row.at for row in kept if row.area == area] for area in {row.area for row in kept}}
        return {area: (len(found), min(found)) for area, found in times.items()}

    def close(self):
        self._connection.close()
