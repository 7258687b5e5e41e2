"""The server is killed with `kill -9` while many calls are in flight, again and again.

The oracle is the list of the clients themselves: which runs the server acknowledged, which events arrived, and how
often each call acted, counted in a file of its own. Clients do what every good client does: they send a request again,
under the same idempotency key, until they get an answer, and come back to a stream with the id of the last event.
"""

import asyncio
import json
import signal
from dataclasses import dataclass, field

import httpx

from sampling import IS_WHOLE, chance

from .conftest import W
from .server import LINES

KILLS = 100 if IS_WHOLE else 5
IN_FLIGHT = 50 if IS_WHOLE else 20
"""How many acknowledged calls have not ended when the server is killed, at least."""
CLIENTS = IN_FLIGHT + IN_FLIGHT // 4
TERMINAL = {"done", "error", "cancelled", "rejected-by-user"}


@dataclass
class Acknowledged:
    """One call, as its client saw it."""

    key: str
    path: str
    runs: set = field(default_factory=set)
    """The runs that the server named for its key."""
    seen: list = field(default_factory=list)
    """The number and the type of each event."""
    text: str = ""
    outcome: dict | None = None


class Clients:
    """Many clients of one server."""

    def __init__(self, restarted, tmp_path):
        self.restarted = restarted
        self.directory = tmp_path / "acts"
        self.directory.mkdir()
        self.drawn = chance("moments of servers")
        self.calls: list[Acknowledged] = []
        self.is_over = False
        self.in_flight = 0
        limits = httpx.Limits(max_connections=None)
        headers = {"Authorization": f"Bearer {restarted.token}"}
        self.http = httpx.AsyncClient(
            base_url=restarted.url, headers=headers, timeout=30, trust_env=False, limits=limits
        )

    async def persist(self, method, path, **more):
        """The answer to a request, which is sent until there is one."""
        while True:
            try:
                answer = await self.http.request(method, path, **more)
            except httpx.TransportError:
                await asyncio.sleep(0.02)
                continue
            if answer.status_code not in (503, 429):
                return answer
            await asyncio.sleep(0.05)

    async def caller(self, name):
        """Makes calls, one after the other."""
        number = 0
        while not self.is_over:
            number += 1
            key = f"{name}-{number}"
            call = Acknowledged(key, str(self.directory / key))
            self.calls.append(call)
            tool = "effect" if self.drawn.random() < 0.3 else "look"
            body = {"tool": tool, "args": {"path": call.path, "seconds": self.drawn.uniform(0.0, 1.5)}, "wait": 0}
            for _ in range(self.drawn.choice([1, 1, 2])):  # Some send it twice, as if the answer had been lost.
                answer = await self.persist("POST", f"{W}/calls", json=body, headers={"Idempotency-Key": key})
                assert answer.status_code == 200, answer.text
                call.runs.add(answer.json()["run"])
            self.in_flight += 1
            await self.follow(call)
            self.in_flight -= 1

    async def follow(self, call):
        """Follow the run to its end, wherever the stream breaks."""
        [run] = call.runs
        while call.outcome is None:
            headers = {"Last-Event-ID": str(call.seen[-1][0])} if call.seen else {}
            try:
                async with self.http.stream("GET", f"{W}/runs/{run}/events", headers=headers) as answer:
                    if answer.status_code == 200:
                        data = None
                        async for line in answer.aiter_lines():
                            field_, _, value = line.partition(": ")
                            if field_ == "data":
                                data = value
                            elif line == "" and data is not None:
                                self.heard(call, json.loads(data))
                                data = None
                    else:
                        assert answer.status_code in (503, 429), answer.status_code
            except httpx.TransportError:
                pass
            if call.outcome is None:
                await asyncio.sleep(0.02)

    def heard(self, call, event):
        if "seq" not in event:
            return  # The end of a stream, or a gap.
        call.seen.append((event["seq"], event["type"]))
        if event["type"] == "stdout":
            call.text += event["text"]
        if event["type"] == "outcome":
            call.outcome = event["outcome"]

    async def approver(self):
        """Approves what waits, a moment later."""
        while not self.is_over or any(call.outcome is None for call in self.calls):
            for request in (await self.persist("GET", f"{W}/inbox")).json()["requests"]:
                await self.persist("POST", f"{W}/inbox/{request['id']}/approve", json={})
            await asyncio.sleep(0.05)

    async def killer(self):
        """Kills the server while many calls are in flight."""
        for _ in range(KILLS):
            while self.in_flight < IN_FLIGHT:
                await asyncio.sleep(0.005)
            await asyncio.sleep(self.drawn.uniform(0.0, 0.3))
            await asyncio.to_thread(self.restarted.end, signal.SIGKILL)
            await asyncio.to_thread(self.restarted.begin)
        self.is_over = True

    async def run(self):
        async with self.http:
            tasks = [self.approver(), self.killer(), *(self.caller(f"client-{n}") for n in range(CLIENTS))]
            async with asyncio.TaskGroup() as group:
                for each in tasks:
                    group.create_task(each)
            return [await self.whole(call) for call in self.calls]

    async def whole(self, call):
        """The run as the server knows it in the end, and all its events."""
        [run] = call.runs
        record = (await self.persist("GET", f"{W}/runs/{run}")).json()
        again = Acknowledged(call.key, call.path, {run})
        await self.follow(again)
        return record, again


def test_after_every_kill_acknowledged_runs_end_once_streams_miss_nothing_and_no_key_acts_twice(restarted, tmp_path):
    restarted.begin()
    clients = Clients(restarted, tmp_path)
    found = asyncio.run(clients.run())
    assert restarted.end(signal.SIGTERM) == 0
    expected = "".join(f"{number}\n" for number in range(LINES))
    ends = {"done": 0, "interrupted": 0}
    for call, (record, again) in zip(clients.calls, found, strict=True):
        statuses = [state["status"] for state in record["states"]]
        assert [status for status in statuses if status in TERMINAL] == [statuses[-1]], call
        assert call.outcome == again.outcome
        assert call.outcome["status"] == record["status"] == statuses[-1]

        numbers = [number for number, _ in call.seen]
        assert numbers == sorted(set(numbers)), call
        assert {*again.seen} <= {*call.seen}, call
        assert [kind for _, kind in call.seen].count("outcome") == 1
        assert expected.startswith(call.text) and call.text == again.text

        acts = _acts(call.path)
        error = (call.outcome["error"] or {}).get("code")
        if call.outcome["status"] == "done":
            assert (acts, call.text) == (1, expected)
        else:
            assert (acts <= 1, error) == (True, "interrupted"), call
        ends[error or "done"] += 1
    assert ends["done"], "no call came to its end"
    assert ends["interrupted"], "no call was in flight when the server was killed"


def _acts(path):
    try:
        with open(path) as file:
            return len(file.readlines())
    except FileNotFoundError:
        return 0
