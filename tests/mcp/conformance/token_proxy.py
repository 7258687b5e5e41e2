"""A proxy that adds the token of a client to each request, because the conformance suite can send none. Host and Origin
reach haft as the suite sent them. One answer it cuts off, as a network would that is lost in the middle of a call."""

import asyncio
import contextlib
import threading

HEAD_BYTES = 65_536
LOST = b'"test_reconnection"'
"""A request with these words loses its connection after the first event of the answer."""
LAST_CHUNK = b"0\r\n\r\n"


class TokenProxy:
    """`with TokenProxy(port, token) as url`: requests to `url` reach this port of the machine, with the token."""

    def __init__(self, port: int, token: str, path: str = "/mcp") -> None:
        self._target = port
        self._token = token
        self._path = path
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.Task] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        opening = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._carry, "127.0.0.1", 0), self._loop)
        self._server = opening.result()
        return f"http://localhost:{self._server.sockets[0].getsockname()[1]}{self._path}"

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection is one request: `Connection: close` lets everything after the head pass as it is."""
        task = asyncio.current_task()
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            lines = [
                line
                for line in head.decode("latin-1").split("\r\n")[:-2]
                if not line.lower().startswith(("connection:", "authorization:"))
            ]
            lines += ["Connection: close", f"Authorization: Bearer {self._token}"]
            back, onward = await asyncio.open_connection("127.0.0.1", self._target)
            onward.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
            sent = await reader.read(HEAD_BYTES) if _has_body(lines) else b""
            onward.write(sent)
            sending = asyncio.create_task(self._pass(reader, onward))
            try:
                await self._pass(back, writer, until=b"retry:" if LOST in sent else None)
            finally:
                sending.cancel()
                onward.close()
        writer.close()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, until: bytes | None = None
    ) -> None:
        """Pass data on to its end, or to the first chunk that has `until`."""
        with contextlib.suppress(OSError):
            while data := await reader.read(HEAD_BYTES):
                writer.write(data)
                if until is not None and until in data:
                    writer.write(LAST_CHUNK)
                    return
                await writer.drain()


def _has_body(head: list[str]) -> bool:
    return any(line.lower().startswith("content-length:") and line.split(":")[1].strip() != "0" for line in head)
