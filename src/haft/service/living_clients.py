"""Living clients: which agents use haft now, and whether this process belongs to one of them.

A surface announces its client: `haft serve mcp` and the hook. `haft run` does not, because its program does not see
the state home: decision 0059. A command that counts as a person's calls `refuse_clients`, which raises if this process
descends from a living client, shares its session, or was cut loose from its parents and has no terminal older than the
client.

This stops an agent that runs haft's commands in its own shell. It does not stop a program of the same user that removes
the files of the announcements, writes into the state home, or types into a terminal of the person: `approval.secret`
is for that. `process_tree` reads the processes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from haft.audit import Redactor, Trail, secret_values
from haft.contracts import HaftError, Principal, RefusedToClient, StorageFailed
from haft.files import HeldLock, noted, try_lock
from haft.service import process_tree
from haft.service.process_tree import Process
from haft.storage import StateHome, decode, encode, open_stores
from haft.values import dataclass

SCHEDULERS: Final = frozenset(("atd", "cron", "crond", "anacron", "fcron", "systemd", "init", "launchd"))
"""Programs that run a command for whoever asks. A command without a terminal that they started may be an agent's."""

SWITCHING: Final = frozenset(("sudo", "su", "doas", "pkexec", "runuser", "setpriv", "newgrp", "sg", "screen"))
"""Programs that may belong to another user although an agent started them."""

_OLD_SECONDS: Final = 86_400.0

_announced: list[Announcement] = []


@dataclass(frozen=True, slots=True)
class LivingClient:
    """A client that lives."""

    name: str
    """Such as `claude-code`."""
    pid: int
    started: int
    """0 if this machine does not tell when a process was started."""
    session: int
    namespaces: tuple[str, str]

    def words(self) -> str:
        return f"`{self.name}` (pid {self.pid})"


class Announcement:
    """The announcement of one client: a locked file in the state home."""

    def __init__(self, home: StateHome, note: bytes) -> None:
        self._path = os.path.join(clients_directory(home), secrets.token_hex(8))
        self._note = note
        self._lock = self._create()

    def _create(self) -> HeldLock:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        return HeldLock.create(self._path, self._note)

    def renew(self) -> None:
        """Write the file again if somebody has removed it."""
        if not os.path.exists(self._path):
            self._lock.release(unlink=False)
            self._lock = self._create()

    @property
    def lives(self) -> bool:
        """Whether the client lives, as far as this machine shows processes."""
        client = _parsed(self._note)
        return client is not None and (not _is_visible(client) or _process_lives(client))

    @property
    def pid(self) -> int:
        client = _parsed(self._note)
        return 0 if client is None else client.pid

    def release(self) -> None:
        """End the announcement. The file stays while the client's process lives, so that an agent gains nothing by
        ending the server that announced it."""
        with contextlib.suppress(ValueError):
            _announced.remove(self)
        client = _parsed(self._note)
        self._lock.release(unlink=client is None or not _process_lives(client))


def clients_directory(home: StateHome) -> str:
    """The directory with one file for each announcement."""
    return os.path.join(home.path, "clients")


def announce(home: StateHome, name: str, pid: int) -> Announcement:
    """Announce that the process `pid` is a client of haft, such as an agent with the name `name`. The announcement
    holds until the client ends. On machines that do not show processes, it holds until this process ends or releases
    it."""
    found = process_tree.process(pid)
    note = {
        "name": name,
        "pid": pid,
        "started": 0 if found is None else found.started,
        "session": _session(pid) if found is None else found.session,
        "namespaces": list(process_tree.namespaces()),
        "boot": process_tree.boot(),
    }
    try:
        made = Announcement(home, encode(note))
    except OSError as error:
        raise StorageFailed(f"haft could not announce the client {name}", error) from error
    _announced.append(made)  # A forked child closes the lock only while the object exists.
    return made


def clients_alive(home: StateHome) -> list[LivingClient]:
    """The clients that live now, each once. Removes the files of those that have ended."""
    found: dict[tuple[int, int, tuple[str, str]], LivingClient] = {}
    try:
        names = sorted(os.listdir(clients_directory(home)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageFailed("haft could not read which clients live", error) from error
    for name in names:
        client = _living(os.path.join(clients_directory(home), name))
        if client is not None:
            found.setdefault((client.pid, client.started, client.namespaces), client)
    return list(found.values())


def refuse_clients(home: StateHome, what: str) -> None:
    """Raise `RefusedToClient` if this process belongs to a living client, and record that in the audit log. `what` is
    the command as a person types it, such as `haft approve`."""
    for client, why in belongs_to(home):
        error = RefusedToClient(what, client.words(), why)
        record_refusal(home, what, client, why)
        raise error


def belongs_to(home: StateHome, pid: int | None = None) -> Iterator[tuple[LivingClient, str]]:
    """The living clients to which a process belongs or may belong, each with the reason in words: this process, or
    another one that this process sees."""
    clients = clients_alive(home)
    if not clients:
        return
    chain = process_tree.ancestry("self" if pid is None else pid)
    if pid is not None and not chain:
        return  # It has ended.
    for client in clients:
        why = _relation(client, chain)
        if why is not None:
            yield client, why


def _relation(client: LivingClient, chain: Sequence[Process]) -> str | None:
    """Why this process, with its parents `chain`, may be the client's; None if it is not."""
    here = process_tree.namespaces()
    if client.namespaces != here:
        if client.namespaces[0] != here[0] and process_tree.sees_namespace(client.namespaces[0]):
            return None  # The client is in a container, and this process is outside: nothing leaves it upwards.
        return "it runs in another container or namespace, where haft cannot compare processes"
    if not chain:
        return _relation_without_tree(client)
    own = chain[0]
    if any((one.pid, one.started) == (client.pid, client.started) for one in chain):
        return "it descends from this client"
    now = process_tree.process(client.pid)
    if own.session in (client.session, client.session if now is None else now.session):
        return "it shares the session of this client"
    if own.started < client.started:
        return None
    below, above = _boundary(chain, client)
    is_scheduled = own.terminal == 0 and above is not None and above.name in SCHEDULERS
    if _session_is_older(own, chain, client) and not is_scheduled:  # `atd` runs commands in its own session.
        return None
    if above is not None and _may_have_adopted(above, below, chain, client):
        return "it was cut loose from its parents, and has no terminal older than this client"
    if above is not None and (is_scheduled or (own.terminal == 0 and above.owner != own.owner)):
        return f"{above.name or 'another program'} started it without a terminal, after this client"
    return None


def _session_is_older(own: Process, chain: Sequence[Process], client: LivingClient) -> bool:
    """Whether the session of this process, and so its terminal, is older than the client. No process can enter a
    session that exists."""
    leader = process_tree.process(own.session)
    members = [one for one in chain if one.session == own.session]
    if leader is not None and leader.session == own.session:
        members.append(leader)
    return any(one.started < client.started for one in members)


def _boundary(chain: Sequence[Process], client: LivingClient) -> tuple[Process, Process | None]:
    """The oldest parent of this process that is younger than the client, and the parent of this parent. That one is
    None if the process came into this pid namespace from outside, as by `docker exec`."""
    for below, above in itertools.pairwise(chain):
        if above.started < client.started:
            return below, above
    return chain[-1], None


def _may_have_adopted(above: Process, below: Process, chain: Sequence[Process], client: LivingClient) -> bool:
    """Whether `below` may be an orphan of the client that `above` adopted. A process adopts only what descends from it,
    and only if it is init or a subreaper."""
    if not any(one.pid == above.pid for one in process_tree.ancestry(client.pid)):
        return False
    if above.pid != 1:
        taker = process_tree.adopter()
        places = [one.pid for one in chain]
        if taker in places and places.index(taker) > places.index(above.pid):
            return False
    return not (_is_own_unit(above, below, client) or _is_other_login(below, chain, client))


def _is_other_login(below: Process, chain: Sequence[Process], client: LivingClient) -> bool:
    """Whether this process belongs to a login after the client's: the kernel counts it as one, or a program of root,
    such as `login` or `sshd`, is among its parents that are younger than the client."""
    own, other = process_tree.login_of(chain[0].pid), process_tree.login_of(client.pid)
    if own is not None and other is not None and own != other:
        return True
    younger = itertools.takewhile(lambda one: one.pid != below.parent, chain)
    if chain[0].owner == 0 or not process_tree.sees_real_owners():
        return False
    return any(one.owner == 0 and one.name not in SWITCHING for one in younger)


def _is_own_unit(above: Process, below: Process, client: LivingClient) -> bool:
    """Whether systemd started `below` as a unit of its own, as it does for a new terminal window or login. An orphan
    stays in the control group of its parents."""
    if above.name != "systemd":
        return False
    own, other = process_tree.control_group(below.pid), process_tree.control_group(client.pid)
    if own is None or other is None or other == "/":
        return False
    return own != other and not own.startswith(f"{other}/")


def _relation_without_tree(client: LivingClient) -> str | None:
    """The same on a machine that does not show processes: only the parent and the session are known."""
    if client.pid in (os.getpid(), os.getppid()):
        return "it descends from this client"
    if client.session > 0 and client.session == os.getsid(0):
        return "it shares the session of this client"
    return None


def _living(path: str) -> LivingClient | None:
    """The client that the file at `path` announces, if it lives. Removes the file if it does not."""
    try:
        note = noted(path)
        is_locked = note is not None
        if note is None:
            with open(path, "rb") as file:
                note = file.read()
    except OSError:
        return None
    client = _parsed(note)
    if client is not None and _hides_processes(client):
        return client
    if client is not None and (_process_lives(client) if _is_visible(client) else is_locked):
        return client
    if not is_locked and (client is None or _is_visible(client) or _is_old(path)):
        with contextlib.suppress(OSError):
            held = try_lock(path, makes=False)
            if held is not None:
                held.release(unlink=True)
    return None


def _is_old(path: str) -> bool:
    """Whether an announcement from another container was made long ago."""
    with contextlib.suppress(OSError):
        return os.stat(path).st_mtime < time.time() - _OLD_SECONDS
    return False


def _hides_processes(client: LivingClient) -> bool:
    """Whether this process sees no processes at all, although the one that announced the client did: an agent can hide
    `/proc` from its own processes, so haft cannot say that the client has ended."""
    return not any(process_tree.namespaces()) and any(client.namespaces)


def _is_visible(client: LivingClient) -> bool:
    """Whether this process can look at the client's process."""
    return client.started > 0 and client.namespaces == process_tree.namespaces()


def _process_lives(client: LivingClient) -> bool:
    if not _is_visible(client):
        return False
    found = process_tree.process(client.pid)
    return found is not None and found.started == client.started


def _parsed(note: bytes) -> LivingClient | None:
    """The client in the note of a file. None if the note is not one of ours, or was made before the machine was
    started."""
    try:
        told: dict[str, Any] = decode(note)
        boot = process_tree.boot()
        if boot and told["boot"] != boot:
            return None
        pids, times = told["namespaces"]
        return LivingClient(
            str(told["name"]), int(told["pid"]), int(told["started"]), int(told["session"]), (str(pids), str(times))
        )
    except (ValueError, TypeError, KeyError, HaftError):
        return None


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def record_refusal(home: StateHome, what: str, client: LivingClient, why: str) -> None:
    """Write into the audit log that something which counts as a person's was refused to a client. A log that cannot be
    written does not turn the refusal into a yes."""
    with contextlib.suppress(HaftError, OSError):
        trail = Trail(open_stores(home).audit_log(), Redactor(secret_values(os.environ)))
        try:
            trail.record_refusal(what, Principal(client.name, kind="agent"), why, pid=client.pid)
        finally:
            trail.close()
