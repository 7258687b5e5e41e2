"""The audit log in files: `record.log`, `head` (which writers lock), `key` and `checkpoint`."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from haft.contracts import StorageFailed
from haft.files import locked
from haft.storage.append_only_file import AppendOnlyFile, read_between
from haft.storage.ports.audit_log import AuditLog

LOCK_SECONDS: Final = 10.0


class FileLog(AuditLog):
    def __init__(self, directory: str, check: Callable[[], None] = lambda: None) -> None:
        """`check` raises `LeaseLost` if the lease of the writer was lost."""
        self.directory = directory
        self._check = check
        self._turn = threading.Lock()
        self._log: AppendOnlyFile | None = None
        self._head = -1

    def exists(self) -> bool:
        return os.path.exists(self._path("record.log"))

    def begin(self) -> None:
        self._log = AppendOnlyFile(self._path("record.log"))
        self._head = os.open(self._path("head"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @contextmanager
    def turn(self) -> Iterator[None]:
        # The lock on the head excludes other processes, the other lock excludes threads of this process.
        with self._turn:
            head, is_mine = (self._head, False) if self._head >= 0 else (self._head_to_read(), True)
            try:
                if head < 0:
                    yield  # Without a head there is no writer.
                    return
                with locked(head, LOCK_SECONDS):
                    self._check()
                    yield
            except TimeoutError as error:
                raise StorageFailed("the audit log is locked by another process", error) from error
            finally:
                if is_mine and head >= 0:
                    os.close(head)

    def _head_to_read(self) -> int:
        try:
            return os.open(self._path("head"), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return -1

    def size(self) -> int:
        return os.path.getsize(self._path("record.log")) if self._log is None else self._log.size()

    def read(self, start: int, end: int) -> bytes:
        if self._log is not None:
            return self._log.read(start, end)
        with open(self._path("record.log"), "rb", buffering=0) as file:
            return read_between(file.fileno(), start, end)

    def append(self, data: bytes) -> None:
        assert self._log is not None, "`begin` comes first"
        self._log.append(data)

    def head(self) -> bytes:
        try:
            with open(self._path("head"), "rb") as file:
                return file.read(1000)
        except FileNotFoundError:
            return b""

    def set_head(self, data: bytes) -> None:
        os.pwrite(self._head, data, 0)

    def key(self) -> bytes | None:
        try:
            with open(self._path("key"), "rb") as file:
                return file.read(64)
        except FileNotFoundError:
            return None

    def set_key(self, key: bytes) -> None:
        self._replace("key", key, 0o400)

    def checkpoint(self) -> bytes:
        try:
            with open(self._path("checkpoint"), "rb") as file:
                return file.read(1000)
        except FileNotFoundError:
            return b""

    def set_checkpoint(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            for name in ("record.log", "head"):  # The verified part must survive power loss before the checkpoint does.
                descriptor = os.open(self._path(name), os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            self._replace("checkpoint", data, 0o600)

    def _replace(self, name: str, data: bytes, mode: int) -> None:
        fresh = self._path(f"{name}.{os.urandom(8).hex()}.new")
        descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
        try:
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
            os.rename(fresh, self._path(name))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            raise

    def sync(self) -> None:
        if self._log is not None:
            self._log.sync()
            os.fsync(self._head)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._head >= 0:
            os.close(self._head)
            self._head = -1

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)
