"""Traces of calls, as a real collector receives them over OTLP."""

import asyncio
import socket
import subprocess
import sys

import pytest

from haft import Context, ToolService, tool
from haft.contracts import in_trace
from otlp_collector import collecting

CALLERS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE, SPAN = CALLERS.split("-")[1:3]


@pytest.fixture
def collector():
    with collecting() as found:
        yield found


def opened(tmp_path, collector=None, settings=None, **options):
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    endpoint = {} if collector is None else {"telemetry.endpoint": collector.endpoint}
    options = {"environ": {"PATH": "/usr/bin:/bin"}, **options}
    return ToolService.open(workspace, home=tmp_path / "home", settings={**endpoint, **(settings or {})}, **options)


@tool(readonly=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_one_call_is_one_span_with_its_approval_and_its_commit(tmp_path, collector):
    async def approve(_request):
        await asyncio.sleep(0.01)
        return True

    async def main():
        async with opened(tmp_path, collector, approver=approve, thread="T-talk") as service:
            outcome = await service.call("write_file", {"path": "secret-name.txt", "content": "a text nobody sees"})
            record = service.run(outcome.run_id)
            return outcome, [one for one in service.record.entries() if one.get("run") == outcome.run_id], record

    outcome, entries, record = asyncio.run(main())
    span = collector.named("execute_tool write_file")
    assert span.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "write_file",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": span.attributes["gen_ai.tool.description"],
        "gen_ai.tool.call.id": outcome.run_id,
        "gen_ai.conversation.id": "T-talk",
        "user.name": outcome.who,
        "haft.tool.kind": "builtin",
        "haft.status": "done",
        "haft.decision": "allow",
        "haft.decision.by": outcome.decision.by,
        "haft.cached": False,
        "haft.changed_files": 1,
    }
    assert (span.parent, span.is_error, span.resource["service.name"]) == ("", False, "haft")
    assert [one.name for one in collector.below(span)][:1] == ["haft.approval"]
    assert {one.name for one in collector.below(span)} >= {"haft.approval", "haft.commit"}
    for part in collector.below(span):
        assert span.start <= part.start <= part.end <= span.end and part.trace == span.trace
    assert {one.get("trace") for one in entries if one["type"] in ("start", "end")} == {span.trace}
    assert record.to_json()["trace"] == span.trace
    sent = b"".join(collector.bodies)
    assert b"nobody sees" not in sent and b"secret-name" not in sent and str(tmp_path).encode() not in sent


def test_a_call_that_waits_for_its_place_says_so(tmp_path, collector):
    async def main():
        begun, go_on = asyncio.Event(), asyncio.Event()

        @tool(readonly=True)
        async def hold() -> str:
            """Hold the only place."""
            begun.set()
            await go_on.wait()
            return "done"

        settings = {"limits.max_concurrent": 1}
        async with opened(tmp_path, collector, settings, tools=[hold, add]) as service:
            first = service.call("hold")
            await begun.wait()
            second = service.call("add", {"a": 1, "b": 2})
            await asyncio.sleep(0.02)
            go_on.set()
            assert (await first).ok and (await second).ok

    asyncio.run(main())
    (waited,) = collector.below(collector.named("execute_tool add"))
    assert waited.name == "haft.queue" and waited.end - waited.start >= 10_000_000


def test_calls_that_a_tool_makes_are_its_children(tmp_path, collector):
    @tool(readonly=True)
    async def outer(context: Context) -> str:
        """Call another tool."""
        return (await context.call("add", {"a": 1, "b": 2})).output

    async def main():
        async with opened(tmp_path, collector, tools=[outer, add]) as service:
            with in_trace(CALLERS):
                assert (await service.call("outer")).ok

    asyncio.run(main())
    above, below = collector.named("execute_tool outer"), collector.named("execute_tool add")
    assert (above.trace, above.parent) == (TRACE, SPAN)
    assert (below.trace, below.parent) == (TRACE, above.id)


def test_errors_and_rejections_have_their_code(tmp_path, collector):
    @tool(readonly=True)
    def fail() -> str:
        """Fail."""
        raise ValueError("a text nobody sees")

    async def main():
        async with opened(tmp_path, collector, tools=[fail], approver=lambda _request: False) as service:
            assert (await service.call("fail")).error.code == "tool-failed"
            assert (await service.call("write_file", {"path": "a", "content": "b"})).status == "rejected-by-user"
            assert (await service.call("no_such_tool")).error.code == "unknown-tool"

    asyncio.run(main())
    failed = collector.named("execute_tool fail")
    assert (failed.is_error, failed.attributes["error.type"]) == (True, "tool-failed")
    assert collector.named("execute_tool write_file").attributes["error.type"] == "rejected"
    assert collector.named("execute_tool no_such_tool").attributes["error.type"] == "unknown-tool"
    assert b"nobody sees" not in b"".join(collector.bodies)


def test_content_leaves_only_if_configured_and_masked(tmp_path, collector):
    @tool(readonly=True)
    def say(text: str) -> str:
        """Say a text."""
        return f"you said {text}"

    async def main():
        settings = {"telemetry.content": True}
        async with opened(tmp_path, collector, settings, tools=[say], secrets=["hunter2hunter2"]) as service:
            assert (await service.call("say", {"text": "hello hunter2hunter2"})).ok

    asyncio.run(main())
    attributes = collector.named("execute_tool say").attributes
    assert attributes["gen_ai.tool.call.arguments"].startswith('{"text":"hello ')
    assert attributes["gen_ai.tool.call.result"].startswith("you said hello ")
    assert b"hunter2hunter2" not in b"".join(collector.bodies)


def test_a_collector_that_is_gone_or_never_answers_costs_no_call(tmp_path, caplog):
    async def calls(endpoint):
        settings = {"telemetry.endpoint": endpoint}
        async with opened(tmp_path, settings=settings, tools=[add]) as service:
            outcomes = await asyncio.gather(*(service.call("add", {"a": 1, "b": 2}) for _ in range(50)))
            assert all(outcome.result == 3 for outcome in outcomes)

    with socket.create_server(("127.0.0.1", 0)) as silent:  # It accepts, and never answers.
        asyncio.run(calls(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        gone = silent.getsockname()[1]
    asyncio.run(calls(f"http://127.0.0.1:{gone}"))
    ours = [record for record in caplog.records if "traces cannot be sent" in record.message]
    assert ours and all(record.name == "haft" for record in caplog.records), caplog.text


def test_the_standard_variables_turn_traces_on_and_the_setting_off(tmp_path, collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "my-agent")

    async def main(settings, value):
        async with opened(tmp_path, None, settings, tools=[add], environ=None) as service:
            assert (await service.call("add", {"a": value, "b": 0})).ok

    asyncio.run(main({"telemetry.traces": "off"}, 1))
    assert not collector.spans
    asyncio.run(main({}, 2))
    assert collector.named("execute_tool add").resource["service.name"] == "my-agent"


def test_the_callers_trace_is_in_the_audit_log_without_telemetry(tmp_path):
    async def main():
        async with opened(tmp_path, tools=[add]) as service:
            with in_trace(CALLERS):
                traced = await service.call("add", {"a": 1, "b": 2})
            with in_trace("no traceparent"):
                plain = await service.call("add", {"a": 1, "b": 2})
            return [service.run(one.run_id).to_json()["trace"] for one in (traced, plain)]

    assert asyncio.run(main()) == [TRACE, None]


PROGRAM = """
import asyncio, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from haft import Context, ToolService, tool

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("program")

@tool(readonly=True)
def add(a: int, b: int) -> int:
    '''Add.'''
    with tracer.start_as_current_span("within"):
        return a + b

async def main():
    async with ToolService.open(sys.argv[1], home=sys.argv[2], tools=[add], environ={}) as service:
        with tracer.start_as_current_span("around"):
            assert (await service.call("add", {"a": 1, "b": 2})).ok

asyncio.run(main())
by_name = {span.name: span for span in spans.get_finished_spans()}
print({name: span.parent and next(n for n, s in by_name.items() if s.context.span_id == span.parent.span_id)
       for name, span in sorted(by_name.items())})
"""


def test_spans_go_to_what_the_embedding_program_has_set_up(tmp_path):
    (tmp_path / "workspace").mkdir()
    words = [sys.executable, "-c", PROGRAM, tmp_path / "workspace", tmp_path / "home"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str({"around": None, "execute_tool add": "around", "within": "execute_tool add"})


def test_a_setting_that_needs_the_extra_says_which(tmp_path):
    program = (
        "import asyncio, sys; sys.modules['opentelemetry.sdk'] = None\n"
        "from haft import ToolService\n"
        "from haft.contracts import BadConfig\n"
        "async def main(settings, env):\n"
        "    async with ToolService.open(sys.argv[1], home=sys.argv[2], settings=settings, environ=env) as service:\n"
        "        assert (await service.call('list_directory', {'path': '.'})).ok\n"
        "try: asyncio.run(main({'telemetry.traces': 'on'}, {}))\n"
        "except BadConfig as error: print(error.hint)\n"
        "asyncio.run(main({}, {'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:9'}))\n"
    )
    (tmp_path / "workspace").mkdir()
    words = [sys.executable, "-c", program, tmp_path / "workspace", tmp_path / "home"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'pip install "haft[telemetry]"' in done.stdout


def test_without_telemetry_nothing_of_it_is_imported(tmp_path):
    program = (
        "import asyncio, sys\n"
        "from haft import ToolService\n"
        "async def main():\n"
        "    async with ToolService.open(sys.argv[1], home=sys.argv[2], environ={}) as service:\n"
        "        assert (await service.call('list_directory', {'path': '.'})).ok\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'prometheus_client'))])\n"
    )
    (tmp_path / "workspace").mkdir()
    words = [sys.executable, "-c", program, tmp_path / "workspace", tmp_path / "home"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
