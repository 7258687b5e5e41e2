"""`/metrics` of a real server; and the dashboard and alert rules, which may only name what `/metrics` has."""

import asyncio
import json
import re
import time
from pathlib import Path

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

import sampling
from haft import Principal, tool
from haft.service import Tokens
from haft.service.telemetry.metrics import METRICS
from otlp_collector import collecting

DEPLOY = Path(__file__).parents[3] / "deploy"
CALLERS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE, SPAN = CALLERS.split("-")[1:3]


@tool(readonly=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def labelled(family, *names):
    """The values of a metric by its labels, in this order."""
    return {tuple(sample.labels[name] for name in names): sample.value for sample in family.samples}


def scraped(running):
    secret = Tokens(running.home).add(f"reader{time.monotonic_ns()}", Principal("tester"), roles=["reader"])[1]
    answer = httpx.get(f"{running.url}/metrics", headers={"Authorization": f"Bearer {secret}"}, trust_env=False)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return answer.text


def call(running, name, arguments=None, **options):
    (workspace,) = running.server.workspaces

    async def made():
        return await workspace.service.call(name, arguments or {}, **options)

    return running.run(made())


def test_metrics_count_calls_requests_and_state(own_server):
    running = own_server(tools=[add], approver=lambda _request: True)
    assert call(running, "add", {"a": 1, "b": 2}).ok
    assert call(running, "write_file", {"path": "a", "content": "b"}).ok
    assert call(running, "no_such_tool").error.code == "unknown-tool"
    with running.client(f"caller{time.monotonic_ns()}") as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/no/such/page").status_code == 404
    text = scraped(running)
    found = families(text)
    calls = labelled(found["haft_calls"], "kind", "status", "decision")
    assert calls["python", "done", "allow"] == calls["builtin", "done", "allow"] == calls["other", "error", "none"] == 1
    assert found["haft_changed_files"].samples[0].value == 1
    (errors,) = found["haft_call_errors"].samples
    assert (errors.labels, errors.value) == ({"code": "unknown-tool"}, 1)
    waits = {
        each.labels["reason"]: each.value
        for each in found["haft_call_wait_seconds"].samples
        if each.name.endswith("_count")
    }
    assert waits["approval"] == 1 and waits["queue"] >= 2
    requests = labelled(found["haft_http_requests"], "route", "method", "status").keys()
    assert {("/healthz", "GET", "200"), ("other", "GET", "404")} <= requests
    assert found["haft_audit_intact"].samples[0].value == 1
    assert found["haft_audit_records"].samples[0].value >= 3
    assert found["haft_undoable_runs"].samples[0].value == 1
    for name, spec in METRICS.items():
        family = found[name.removesuffix("_total")]
        assert family.type == spec.kind and family.documentation == spec.what, name
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                assert set(sample.labels) - {"le"} == set(spec.labels), name


def test_metrics_need_a_token_that_may_see_the_machine(own_server):
    running = own_server()
    with running.client(f"caller{time.monotonic_ns()}") as client:
        assert client.get("/metrics", headers={"Authorization": ""}).status_code == 401
        assert client.get("/metrics").status_code == 403  # A caller calls tools, and sees no machine.


def test_many_tools_users_and_threads_add_no_time_series(own_server):
    """What agents choose is no label: neither names of tools and threads, nor paths of requests."""
    running = own_server(tools=[add])

    def series(text):
        return {line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")}

    def burden(first, last):
        (workspace,) = running.server.workspaces

        async def many():
            for begin in range(first, last, 100):
                numbers = range(begin, begin + 100)
                calls = [workspace.service.call(f"odd_{n}", thread=f"T-{n}", who=f"user{n}") for n in numbers]
                await asyncio.gather(*calls)

        running.run(many())
        with running.client(f"caller{time.monotonic_ns()}") as client:
            for number in range(first, first + 20):
                client.get(f"/runs/{number}")
                client.request(f"ODD{number}", "/healthz")

    scraped(running)
    burden(0, 100)
    before = series(scraped(running))
    burden(100, 10_000 if sampling.IS_WHOLE else 200)
    assert series(scraped(running)) == before


def test_a_request_and_its_calls_have_one_trace(own_server, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    with collecting() as collector:
        running = own_server(tools=[add], settings={"telemetry.endpoint": collector.endpoint})
        calls, made = "/api/v1/workspaces/default/calls", {"tool": "add", "args": {"a": 1, "b": 2}}
        with running.client() as client:
            answer = client.get("/no/such/page", headers={"traceparent": CALLERS})
            assert answer.json()["trace"] == TRACE
            assert re.fullmatch(r"[0-9a-f]{32}", client.get("/no/such/page").json()["trace"])
            first = client.post(calls, json=made, headers={"traceparent": CALLERS}).json()["run"]
            second = client.post(calls, json=made).json()["run"]
            assert first != second
        spans = collector.several("execute_tool add", 2)
    assert [(span.trace, span.parent) for span in spans if span.attributes["gen_ai.tool.call.id"] == first] == [
        (TRACE, SPAN)
    ]
    (own,) = [span for span in spans if span.attributes["gen_ai.tool.call.id"] == second]
    (workspace,) = running.server.workspaces
    assert own.parent == "" and own.trace != TRACE
    assert workspace.service.run(second).to_json()["trace"] == own.trace


QUERY_NAME = re.compile(r"\b(haft_[a-z_]+|process_[a-z_]+|up)\b(?:\{([^}]*)\})?")


def queries():
    dashboard = json.loads((DEPLOY / "grafana/haft.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield f"dashboard: {panel['title']}", target["expr"]
    for group in yaml.safe_load((DEPLOY / "prometheus/haft.rules.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield f"alert: {rule['alert']}", rule["expr"]


def test_every_query_names_a_metric_and_labels_that_metrics_have(own_server):
    found = families(scraped(own_server()))
    samples = {"up": ()}
    for name, spec in METRICS.items():
        names = [f"{name}_{part}" for part in ("bucket", "sum", "count")] if spec.kind == "histogram" else [name]
        samples.update(dict.fromkeys(names, spec.labels))
        assert name.removesuffix("_total") in found
    samples |= {
        sample.name: tuple(sample.labels)
        for name in found
        if name.startswith("process_")
        for sample in found[name].samples
    }
    asked = list(queries())
    assert len(asked) > 30
    for place, query in asked:
        names = QUERY_NAME.findall(query)
        assert names, place
        labels = set()
        for name, conditions in names:
            assert name in samples, f"{place}: {name}"
            labels |= {"instance", "job", *(["le"] if name.endswith("_bucket") else []), *samples[name]}
            chosen = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", conditions))
            assert chosen <= {"instance", "job", *samples[name]}, f"{place}: {chosen}"
        for grouped in re.findall(r"\bby \(([^)]*)\)", query):
            assert {one.strip() for one in grouped.split(",")} <= labels, f"{place}: {grouped}"


def test_the_guide_lists_every_metric_with_its_labels():
    guide = (DEPLOY.parent / "docs/guides/observability.md").read_text()
    for name, spec in METRICS.items():
        labels = ", ".join(f"`{label}`" for label in spec.labels) or "–"
        assert f"| `{name}` | {spec.kind} | {labels} | {spec.what} |" in guide
