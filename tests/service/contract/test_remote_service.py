"""What only the service of a server has: its address, its token, lost connections, restarts, an approver far away."""

import asyncio
import contextlib
import os
import re
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from contract_services import Loop, Server

from haft import Principal, ToolService
from haft.contracts import BadUsage, Grants, HaftError, Rejected, RunId, UnknownTool, UnknownWorkspace
from haft.service.remote.address import read_address
from haft.service.remote.not_remote import INSTEAD
from haft.service.remote.problems import ServerUnreachable, error_from, made_error
from haft.service.remote.run import RemotePause


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("remote")) as found:
        found.tokens = {
            "mia": found.token(),
            "ann": found.token("ann", roles=["approver", "caller"]),
            "bot": found.token("bot", kind="agent", roles=["caller"]),
        }
        yield found


def run(main):
    with Loop() as loop:
        return loop.wait(main())


@pytest.mark.parametrize(
    ("url", "base", "workspace"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000", None),
        ("http://localhost:8000/", "http://localhost:8000", None),
        ("https://tools.example/w/web", "https://tools.example", "web"),
        ("https://tools.example/team/a/w/web/", "https://tools.example/team/a", "web"),
        ("https://tools.example/api/v1/workspaces/web", "https://tools.example", "web"),
        ("https://tools.example/x/api/v1", "https://tools.example/x", None),
        ("http://[::1]:8000/w/a%20b", "http://[::1]:8000", "a b"),
    ],
)
def test_addresses(url, base, workspace):
    found = read_address(url, allow_http=False)
    assert (found.base, found.workspace) == (base, workspace)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("tools.example", "begins with"),
        ("ftp://tools.example", "begins with"),
        ("https://", "names a host"),
        ("https://mia:secret@tools.example", "no user"),
        ("https://tools.example/#token=secret", "no user"),
        ("http://tools.example", "unencrypted"),
        ("http://127.0.0.1.evil.example", "unencrypted"),
        ("https://tools.example:99999", "not valid"),
    ],
)
def test_addresses_that_are_refused(url, why):
    with pytest.raises(BadUsage, match=why) as error:
        ToolService.connect(url, token="secret")
    assert "secret" not in str(error.value)
    assert read_address("http://tools.example", allow_http=True).is_local is False


def test_the_token_is_given_or_in_the_environment_and_never_shown(server, monkeypatch, caplog):
    caplog.set_level("DEBUG")
    monkeypatch.setenv("HAFT_TOKEN", server.tokens["mia"])

    async def main():
        async with ToolService.connect(server.url) as service:
            assert (service.who, service.principal.kind) == ("mia", "person")
            run = service.call("add", {"a": 1, "b": 2})
            await run
            return repr((service, run, service._host.connection, service._host.connection.address))

    shown = run(main)
    secret = server.tokens["mia"]
    assert secret not in shown and secret not in caplog.text
    monkeypatch.delenv("HAFT_TOKEN")
    with pytest.raises(BadUsage, match="needs a token"):
        ToolService.connect(server.url)
    for wrong in ("ü", "a b", "a\nb"):
        with pytest.raises(BadUsage) as error:
            ToolService.connect(server.url, token=wrong)
        assert wrong not in str(error.value)


def test_a_wrong_token_and_no_server(server):
    async def main():
        with pytest.raises(Rejected) as error:
            async with ToolService.connect(server.url, token="haft_wrong"):
                pass
        assert error.value.code == "unauthenticated"
        with pytest.raises(ServerUnreachable, match="cannot be reached") as error:
            async with ToolService.connect("http://127.0.0.1:1", token="haft_x", retry_seconds=0):
                pass
        assert error.value.retryable and error.value.code == "server-unreachable"
        service = ToolService.connect(server.url, token="haft_x")
        with pytest.raises(HaftError, match="not open"):
            service.call("add")

    run(main)


def test_the_workspace_is_chosen_by_its_name(server):
    async def main():
        for url, more in ((server.url, {}), (f"{server.url}/w/default", {}), (server.url, {"workspace": "default"})):
            async with ToolService.connect(url, token=server.tokens["mia"], **more) as service:
                assert service.workspace_name == "default" and service.workspace.endswith("/workspace")
        with pytest.raises(UnknownWorkspace, match="defaul"):
            async with ToolService.connect(f"{server.url}/w/defaul", token=server.tokens["mia"]):
                pass
        with pytest.raises(BadUsage, match="names the workspace"):
            ToolService.connect(f"{server.url}/w/default", token="x", workspace="other")

    run(main)


def test_what_makes_no_sense_says_what_to_do_instead(server):
    with pytest.raises(BadUsage, match="no `connect") as error:
        ToolService.connect(server.url, token="x", tools=[print])
    assert "MCP server" in error.value.hint

    async def main():
        async with ToolService.connect(server.url, token=server.tokens["mia"]) as service:
            for name in INSTEAD:
                assert hasattr(ToolService, name)
                with pytest.raises(BadUsage, match=f"`{name}`"):
                    getattr(service, name)
            with pytest.raises(AttributeError):
                _ = service.nothing
            for refuses in (
                lambda: service.add(print),
                lambda: service.remove("add"),
                lambda: service.load("/tmp/tool"),
                lambda: service.changes.merge("r_1"),
                lambda: service.call("add", {}, key="k"),
                lambda: service.call("add", {}, who="ann"),
                lambda: service.undo("r_1", who=Principal("ann")),
            ):
                with pytest.raises(BadUsage):
                    refuses()
            with pytest.raises(BadUsage, match="key"):
                await service.runs(key="k")

    run(main)


def test_everything_else_of_a_service_is_there(server):
    async def main():
        async with ToolService.connect(server.url, token=server.tokens["mia"]) as service:
            names = {name for name in vars(ToolService) if not name.startswith("_")} - {
                *("open", "open_sync", "connect", "connect_sync"),
                *INSTEAD,
                "keyed_requests",
            }
            assert [name for name in sorted(names) if not hasattr(service, name)] == []

    run(main)


def test_a_batch_with_its_events_and_its_end(server):
    async def main():
        async with ToolService.connect(server.url, token=server.tokens["mia"]) as service:
            batch = service.batch([("add", {"a": n, "b": n}) for n in range(3)])
            ids = [each.id for each in batch.runs]
            ends = [event async for event in batch if event.type == "outcome"]
            assert {event.run for event in ends} == {*ids} and batch.ids == ("1", "2", "3")
            assert [each.result for each in await batch] == [0, 2, 4]
            assert batch.id_of(ids[1]) == "2" and batch.id.startswith("b_")
            assert await batch.cancel() is False
            live = service.batch([("waits", {}), ("waits", {})])
            while (await service.run(live.runs[0].id)).status != "in-progress":
                await asyncio.sleep(0.01)
            assert await live.cancel() is True
            assert [each.status for each in await live] == ["cancelled"] * 2

    run(main)


def test_the_audit_log(server):
    async def main():
        async with ToolService.connect(server.url, token=server.tokens["mia"]) as service:
            made = await service.call("add", {"a": 1, "b": 2})
            while made.run_id not in [each.get("run") for each in await service.audit.last(500)]:
                await asyncio.sleep(0.01)
            assert (await service.audit.verify()).intact
            entries = [each async for each in service.audit.entries()]
            assert entries[::-1][:5] == await service.audit.last(5)
        return made.run_id

    made = run(main)
    with ToolService.connect_sync(server.url, token=server.tokens["mia"]) as service:
        assert service.record.verify().intact and service.record.last(1)
        assert made in [each.get("run") for each in service.record.entries()]


def test_a_pause_is_answered_later_and_elsewhere(server):
    async def main():
        async with ToolService.connect(server.url, token=server.tokens["mia"], keeps_runs=True) as service:
            first = service.call("risky", {"text": "one"}, pauses=True)
            pause = await first.pause_or_outcome()
            assert isinstance(pause, RemotePause) and pause.run == first.id and pause.request.tool == "risky"
            assert pause.outlives_host
            assert await pause.answer(True) is True and await pause.answer(True) is False
            assert (await first.pause_or_outcome()).result == "ONE"
            second = service.call("risky", {"text": "two"}, pauses=True)
            pause = await second.pause_or_outcome()
        async with ToolService.connect(server.url, token=server.tokens["mia"]) as service:
            resumed = await service.resume(second.id, True, request=pause.request.id)
            assert resumed.id == second.id and (await resumed).result == "TWO"

    run(main)


def test_an_approver_needs_the_right_to_approve(server):
    async def main():
        with pytest.raises(Rejected, match="bot may not approve"):
            async with ToolService.connect(server.url, token=server.tokens["bot"], approver=lambda _request: True):
                pass
        async with ToolService.connect(server.url, token=server.tokens["bot"]) as service:
            waits = service.call("risky", {"text": "x"})
            with pytest.raises(Rejected):
                await service.approve(waits.id)

    run(main)


def test_an_approver_answers_only_what_its_own_calls_ask(server):
    seen = []

    async def approver(request):
        seen.append(request)
        return True

    async def main():
        async with (
            ToolService.connect(server.url, token=server.tokens["ann"], approver=approver) as ann,
            ToolService.connect(server.url, token=server.tokens["mia"]) as mia,
        ):
            other = mia.call("risky", {"text": "mine"})
            outcome = await ann.call("risky", {"text": "hers"})
            assert (outcome.result, outcome.who) == ("HERS", "ann")
            assert [request.run for request in seen] == [outcome.run_id]
            assert (await mia.reject(other.id)).approved is False

    run(main)


def test_somebody_else_answers_before_the_approver(server):
    asked, cancelled = asyncio.Event(), []

    async def never(_request):
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def main():
        async with (
            ToolService.connect(server.url, token=server.tokens["ann"], approver=never) as ann,
            ToolService.connect(server.url, token=server.tokens["mia"]) as mia,
        ):
            waits = ann.call("risky", {"text": "x"})
            await asked.wait()
            await mia.approve(waits.id)
            assert (await waits).ok
            while not cancelled:
                await asyncio.sleep(0.01)

    run(main)


class Cable:
    """A connection to the server that can be cut."""

    def __init__(self, port):
        self._port = port
        self.cuts_answers = 0
        self.requests = []
        self._open = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        self.cut()

    def cut(self):
        for writer in [*self._open]:
            writer.close()

    async def _carry(self, reader, writer):
        upstream, server = await asyncio.open_connection("127.0.0.1", self._port)
        self._open |= {writer, server}

        async def there():
            while data := await reader.read(65_536):
                self.requests.append(data)
                server.write(data)

        async def back():
            while data := await upstream.read(65_536):
                if self.cuts_answers and b"/calls" in self.requests[-1].split(b"\r\n")[0]:
                    self.cuts_answers -= 1
                    break
                writer.write(data)

        tasks = [asyncio.create_task(there()), asyncio.create_task(back())]
        with contextlib.suppress(OSError):
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in tasks:
            each.cancel()
        writer.close()
        server.close()
        self._open -= {writer, server}


def test_a_call_whose_answer_is_lost_runs_once(server):
    async def main():
        async with Cable(server.port) as cable:
            async with ToolService.connect(cable.url, token=server.tokens["mia"]) as service:
                cable.cuts_answers = 2
                outcome = await service.call("add", {"a": 20, "b": 22}, thread="T-lost")
                assert outcome.result == 42 and cable.cuts_answers == 0
                assert [each.id for each in await service.runs(thread="T-lost")] == [outcome.run_id]

    run(main)


def test_a_stream_goes_on_after_a_lost_connection(server, tmp_path):
    first, last = tmp_path / "first", tmp_path / "last"
    words = {"words": ["one", "two", "last"], "first": str(first), "last": str(last)}

    async def main():
        async with Cable(server.port) as cable:
            async with ToolService.connect(cable.url, token=server.tokens["mia"]) as service:
                run = service.call("speaks", words)
                events = []
                async for event in run:
                    events.append(event)
                    if event.status == "in-progress" and not first.exists():
                        first.touch()
                        cable.cut()
                    if "two" in event.text and event.type == "stdout" and not last.exists():
                        last.touch()
                        cable.cut()
                numbers = [event.seq for event in events]
                assert numbers == sorted(set(numbers))
                assert "".join(each.text for each in events if each.type in ("stdout", "stderr")) == "one\ntwo\nlast"
                assert events[-1].facts["outcome"] == (await run).to_json()

    run(main)


def test_a_run_is_followed_across_a_restart_of_the_server(tmp_path):
    async def main(loop):
        first = Server(tmp_path).__enter__()
        token = first.token()
        async with ToolService.connect(first.url, token=token, keeps_runs=True) as service:
            waits = service.call("waits")
            events = aiter(waits)
            while (await anext(events)).status != "in-progress":
                pass
            await loop.run_in_executor(None, first.__exit__)
            second = await loop.run_in_executor(None, Server(tmp_path, port=first.port).__enter__)
            rest = [event async for event in events]
            assert rest[-1].type == "outcome" and (await waits).status == "cancelled"
            assert (await service.call("add", {"a": 1, "b": 1})).result == 2
        await loop.run_in_executor(None, second.__exit__)

    with Loop() as loop:
        loop.wait(main(loop.loop))


def test_ids_that_a_client_makes(server):
    async def main():
        async with ToolService.connect(server.url, token=server.tokens["mia"]) as service:
            outcome = await service.call("add", {"a": 1, "b": 2})
            ask = service._host.ask
            body = {"tool": "add", "args": {"a": 1, "b": 2}, "runId": outcome.run_id}
            for key, wrong, why in (
                ("other", {}, "already"),
                ("x1", {"runId": "r_" + "0" * 24}, "time of now"),
                ("x2", {"runId": "nothing"}, "match"),
                (None, {"runId": service._host.new_id()}, "Idempotency-Key"),
            ):
                with pytest.raises(HaftError, match=why):
                    await ask("POST", "/calls", body={**body, **wrong}, key=key)
            service._host.connection.skew = 3600.0
            with pytest.raises(BadUsage, match="time of now"):
                await service.call("add", {"a": 1, "b": 2})

    run(main)


def test_a_private_authority(tmp_path):
    certificate, key = (str(tmp_path / name) for name in ("cert.pem", "key.pem"))
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=haft"
    names = ["-keyout", key, "-out", certificate, "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made.split(), *names], check=True, capture_output=True)
    with Server(tmp_path, scheme="https", ssl_certfile=certificate, ssl_keyfile=key) as server:

        async def main():
            token = server.token()
            for verify in (certificate, ssl.create_default_context(cafile=certificate)):
                async with ToolService.connect(server.url, token=token, verify=verify) as service:
                    assert (await service.call("add", {"a": 1, "b": 2})).result == 3
            with pytest.raises(ServerUnreachable, match="certificate"):
                async with ToolService.connect(server.url, token=token, retry_seconds=0):
                    pass

        run(main)


def test_problems_become_the_same_errors():
    assert type(made_error("unknown-tool", "m", "h", is_retryable=False)) is UnknownTool
    error = made_error("busy", "m", "h", is_retryable=True)
    assert (error.code, error.hint, error.retryable, error.exit_code) == ("busy", "h", True, 6)
    assert made_error("of-a-newer-server", "m", None, is_retryable=True).code == "of-a-newer-server"
    odd = error_from(502, b"<html>Bad Gateway</html>")
    assert isinstance(odd, ServerUnreachable) and "Bad Gateway" in str(odd)


def test_grants_travel(server):
    async def main():
        async with ToolService.connect(server.url, token=server.tokens["mia"]) as service:
            assert service._host.how({"grants": Grants(env=("A",))})["grants"] == {"env": ["A"]}
            assert RunId(service.call("add", {"a": 1, "b": 1}, grants={"env": ["CI"]}).id)

    run(main)


GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "remote.md"


def test_the_programs_of_the_guide_run(tmp_path):
    allowed = {"permissions": [{"tool": "shell", "action": "allow"}]}
    with Server(tmp_path, settings=allowed) as found:
        (tmp_path / "workspace" / "Makefile").write_text("test:\n\techo tested | tee report.txt\n")
        (tmp_path / "workspace" / "README.md").write_text("read me\n")
        token = found.token()
        programs = re.findall(r"^```python server\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
        own = (("https://tools.example:8750", found.url), ("/w/web", "/w/default"), ("haft_…", token))
        said = []
        for program in programs:
            for shown, real in own:
                program = program.replace(shown, real)
            command, environ = [sys.executable, "-c", program], os.environ | {"HAFT_TOKEN": token}
            ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
            assert (ended.returncode, ended.stderr) == (0, "")
            said.append(ended.stdout)
        assert "done ['report.txt']" in said[0]
        assert said[1] == "read me\n\n"
        assert not (tmp_path / "workspace" / "report.txt").exists()
