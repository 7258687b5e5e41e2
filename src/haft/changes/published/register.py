"""The register of one workspace: which views are in use, and which layers are published. All processes share it.

    AREA/views/lock                      taken shared to take a view; exclusively to publish and to commit
    AREA/views/number                    the number of the last event
    AREA/views/taken/N.HOST.RUN          a view: it includes what was committed up to event N. The name of a torn view
                                         ends in `.torn`. It ends in `.over` if nobody looks through the view any more,
                                         but the call has not committed yet
    AREA/views/layers/N.RUN[.F[.R]]      a layer that was published at event N, flushed at F, and whose files were
                                         removed at R; the file says what the layer changes
    AREA/views/files/N/                  the files of that layer
    AREA/views/persons/HOST.RUN          the call, or one that it made, waits for a person

A layer's files stay until no view uses them. Its record stays until no call is left that began before the files were
removed: such a call needs the record to tell haft's changes from those of others.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from haft.changes.commit.read_entry import CallStopped
from haft.files import owner_only, remove
from haft.storage import decode, encode
from haft.values import dataclass

_SHORTEST, _LONGEST = 0.0005, 0.01
_TORN: Final = ".torn"
_OVER: Final = ".over"
FILES: Final = "files"


@dataclass(frozen=True, slots=True)
class TakenView:
    """A view of some call, as the register knows it."""

    name: str
    number: int
    host: str
    run: str
    is_used: bool
    """Whether somebody may look through the view, and must not see half of a commit."""


@dataclass(frozen=True, slots=True)
class PublishedLayer:
    """A layer, as the register knows it."""

    name: str
    number: int
    run: str
    flushed: int | None
    removed: int | None

    @property
    def is_open(self) -> bool:
        """Whether the workspace's own files do not have its changes yet."""
        return self.flushed is None


class Register:
    """The register of one workspace."""

    def __init__(self, area: str, host: str, is_alive: Callable[[str], bool]) -> None:
        """`host` is this host; `is_alive` says whether another host is alive."""
        self._host = host
        self._is_alive = is_alive
        self.path = os.path.join(area, "views")
        self._taken = os.path.join(self.path, "taken")
        self._layers = os.path.join(self.path, "layers")
        self._files = os.path.join(self.path, FILES)
        self._persons = os.path.join(self.path, "persons")
        self._number = os.path.join(self.path, "number")
        self._lock = os.path.join(self.path, "lock")

    # The lock.

    def try_lock(self, *, exclusive: bool) -> int | None:
        """Take the register's lock and return its descriptor; None if others hold it. Closing the descriptor releases
        the lock."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            for path in (self._taken, self._files, self._layers):
                os.makedirs(path, mode=0o700, exist_ok=True)
            return self.try_lock(exclusive=exclusive)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise

    @contextlib.contextmanager
    def locked(self, *, exclusive: bool = True) -> Iterator[None]:
        """Hold the register's lock. Waits in the thread, which must not be that of the event loop."""
        descriptor = self.wait_for_lock(exclusive=exclusive)
        try:
            yield
        finally:
            os.close(descriptor)

    def wait_for_lock(self, *, exclusive: bool, stopped: Callable[[], bool] = lambda: False) -> int:
        """Take the lock, and wait for it if necessary. Raises `CallStopped` if `stopped` returns True."""
        pause = _SHORTEST
        while (descriptor := self.try_lock(exclusive=exclusive)) is None:
            if stopped():
                raise CallStopped
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST)
        return descriptor

    def note_holder(self, descriptor: int, run: str) -> None:
        """Write into the lock file which run holds the lock for long, so that those who wait can say so."""
        with contextlib.suppress(OSError):  # The disk is full: those who wait are not told.
            os.pwrite(descriptor, run.encode().ljust(64), 0)

    @staticmethod
    def unlock(descriptor: int) -> None:
        """Release a lock whose holder was noted."""
        try:
            with contextlib.suppress(OSError):
                os.pwrite(descriptor, b" " * 64, 0)
        finally:
            os.close(descriptor)

    def holder(self) -> str | None:
        """The run that holds the lock for long, if one does."""
        with contextlib.suppress(OSError), open(self._lock, "rb") as file:
            return file.read(64).decode(errors="replace").strip() or None
        return None

    # Persons.

    def set_person(self, run: str, *, waits: bool) -> None:
        """Show to all processes whether a call of this host waits for a person."""
        path = os.path.join(self._persons, f"{self._host}.{run}")
        with contextlib.suppress(OSError):  # The disk is full: those who wait for the call are not told.
            if waits:
                os.makedirs(self._persons, mode=0o700, exist_ok=True)
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            else:
                os.unlink(path)

    def waiting_for_person(self) -> set[str]:
        """The calls that wait for a person, of all hosts that are alive. Removes what dead hosts left."""
        found = set()
        with contextlib.suppress(OSError):
            for name in os.listdir(self._persons):
                host, _, run = name.partition(".")
                if host == self._host or self._is_alive(host):
                    found.add(run)
                else:
                    os.unlink(os.path.join(self._persons, name))
        return found

    # Numbers.

    def number(self) -> int:
        """The number of the last event."""
        with contextlib.suppress(OSError, ValueError), open(self._number, "rb") as file:
            return int(file.read())
        # There was no event yet, or the file is damaged.
        known = [number or 0 for each in self.layers() for number in (each.number, each.flushed, each.removed)]
        return max([*known, *(view.number for view in self.views())], default=0)

    def next_number(self) -> int:
        """The number of a new event. Call it under the exclusive lock."""
        number = self.number() + 1
        temporary = f"{self._number}.{self._host}"
        with open(temporary, "wb", opener=owner_only) as file:
            file.write(b"%d" % number)
        os.rename(temporary, self._number)
        return number

    # Views.

    def take(self, run: str, replaces: str | None = None) -> str:
        """Register a view of the committed state as it is now, and return its name. Call it under the lock. If
        `replaces` is given, that view of the same call ends."""
        name = f"{self.number()}.{self._host}.{run}"
        if name != replaces:
            os.close(os.open(os.path.join(self._taken, name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            if replaces is not None:
                self.release(replaces)
        return name

    def release(self, name: str) -> str | None:
        """End a view. If it was torn, return the run whose changes tore it."""
        path = os.path.join(self._taken, name)
        for each in (path, path + _OVER):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(each)
                return None
        torn = None
        with contextlib.suppress(OSError), open(path + _TORN, "rb") as file:
            torn = file.read().decode(errors="replace")
        with contextlib.suppress(OSError):
            os.unlink(path + _TORN)
        return torn

    def stop_using(self, name: str) -> None:
        """Note that nobody looks through a view any more. It stays registered until its call has ended, because the
        call's commit is compared with those since the view was taken."""
        path = os.path.join(self._taken, name)
        with contextlib.suppress(OSError):  # It was torn.
            os.rename(path, path + _OVER)

    def is_torn(self, name: str) -> bool:
        return os.path.exists(os.path.join(self._taken, name + _TORN))

    def tear(self, view: TakenView, run: str) -> None:
        """Mark a view as torn: the changes of `run` are about to be written beneath it."""
        path = os.path.join(self._taken, view.name)
        with contextlib.suppress(FileNotFoundError):  # The view has ended meanwhile.
            os.rename(path, path + _TORN)
            with open(path + _TORN, "wb", opener=owner_only) as file:
                file.write(run.encode())

    def views(self) -> list[TakenView]:
        """The views of calls whose host is alive. Removes those of dead hosts."""
        found = []
        alive = {self._host: True}
        try:
            names = os.listdir(self._taken)
        except FileNotFoundError:
            return []
        for name in names:
            number, _, rest = name.partition(".")
            host, _, run = rest.partition(".")
            if host not in alive:
                alive[host] = self._is_alive(host)
            if alive[host]:
                plain = name.removesuffix(_TORN).removesuffix(_OVER)
                run = run.removesuffix(_TORN).removesuffix(_OVER)
                found.append(TakenView(plain, int(number), host, run, plain == name))
            else:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self._taken, name))
        return found

    def older_views(self, number: int, exempt: Collection[str] = ()) -> list[TakenView]:
        """The used, untorn views that do not include event `number`, except those of the calls in `exempt`."""
        return [view for view in self.views() if view.number < number and view.is_used and view.name not in exempt]

    # Layers.

    def layers(self) -> list[PublishedLayer]:
        """All layers that the register knows, oldest first."""
        try:
            names = os.listdir(self._layers)
        except FileNotFoundError:
            return []
        found = []
        for name in names:
            words = name.split(".")
            if len(words) in (2, 3, 4) and words[0].isdigit():
                flushed, removed = ([int(word) for word in words[2:]] + [None, None])[:2]
                found.append(PublishedLayer(name, int(words[0]), words[1], flushed, removed))
        return sorted(found, key=lambda layer: layer.number)

    def open_layers(self) -> list[PublishedLayer]:
        """The layers that are not flushed, oldest first."""
        return [layer for layer in self.layers() if layer.is_open]

    def files(self, layer: PublishedLayer) -> str:
        """The directory with the files of a layer. Its path stays the same."""
        return os.path.join(self._files, str(layer.number))

    def record(self, layer: PublishedLayer) -> dict[str, Any]:
        """What the layer changes; see `conflicts`. Empty if the layer is gone."""
        with contextlib.suppress(OSError, ValueError), open(os.path.join(self._layers, layer.name), "rb") as file:
            return dict(decode(file.read()))
        return {}

    def age(self, layer: PublishedLayer) -> float:
        """How many seconds ago a layer was published."""
        try:
            return time.time() - os.stat(os.path.join(self._layers, layer.name)).st_mtime
        except OSError:
            return 0.0

    def place_for(self, run: str) -> str:
        """The path at which the files of a new layer are made."""
        return os.path.join(self._files, f"new-{self._host}-{run}")

    def publish(self, prepared: str, run: str, record: dict[str, Any]) -> PublishedLayer:
        """Publish a layer whose files are at `prepared`: from now on, new views include it. Call it under the exclusive
        lock."""
        number = self.next_number()
        os.rename(prepared, os.path.join(self._files, str(number)))
        return self._add(f"{number}.{run}", record)

    def add_record(self, run: str, record: dict[str, Any]) -> None:
        """Record changes that are written into the workspace at once. Call it under the exclusive lock."""
        number = self.next_number()
        self._add(f"{number}.{run}.{number}.{number}", record)

    def _add(self, name: str, record: dict[str, Any]) -> PublishedLayer:
        temporary = os.path.join(self._layers, f"new-{self._host}")
        with open(temporary, "wb", opener=owner_only) as file:
            file.write(encode(record))
        os.rename(temporary, os.path.join(self._layers, name))
        words = name.split(".")
        return PublishedLayer(name, int(words[0]), words[1], None, None)

    def mark_flushed(self, layer: PublishedLayer) -> None:
        """Note that a layer's changes are in the workspace. Call it under the exclusive lock."""
        self._rename(layer, f"{layer.name}.{self.next_number()}")

    def _rename(self, layer: PublishedLayer, name: str) -> None:
        os.rename(os.path.join(self._layers, layer.name), os.path.join(self._layers, name))

    def collect(self) -> None:
        """Remove the files and records that nobody needs any more. Call it under the exclusive lock."""
        layers = self.layers()
        self._remove_orphans({str(layer.number) for layer in layers})
        if not layers:
            return
        numbers = [view.number for view in self.views()]
        for layer in layers:
            flushed = layer.flushed
            if flushed is None or any(layer.number <= number < flushed for number in numbers):
                continue
            if layer.removed is None:
                remove(self.files(layer))  # This changes the ctime of files that the workspace has, too.
                removed = self.next_number()
                self._rename(layer, f"{layer.name}.{removed}")
                layer = PublishedLayer(f"{layer.name}.{removed}", layer.number, layer.run, flushed, removed)
            if not any(number < (layer.removed or 0) for number in numbers):
                os.unlink(os.path.join(self._layers, layer.name))

    def _remove_orphans(self, known: Collection[str]) -> None:
        """Remove files that a host left when it was killed while it published them."""
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self._files):
                host = name.removeprefix("new-").rpartition("-")[0]
                if name not in known and (name.isdigit() or (host != self._host and not self._is_alive(host))):
                    remove(os.path.join(self._files, name))
        for directory, prefix in ((self._layers, "new-"), (self.path, "number.")):
            with contextlib.suppress(FileNotFoundError):
                for name in os.listdir(directory):
                    if name.startswith(prefix) and not self._is_alive(name.removeprefix(prefix)):
                        os.unlink(os.path.join(directory, name))
