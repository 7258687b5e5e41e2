"""The OpenAPI document, and the server held against it: schemathesis follows the links, and sends what a client could
send. No answer is a failure of the server, and none is one that the document does not name."""

import contextlib
import copy
import random
from collections import Counter

import httpx
import hypothesis
import pytest
import schemathesis
from hypothesis.errors import FlakyStrategyDefinition
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

import sampling
from haft import tool
from haft.service import Delivery, StateHome, deliveries_of
from haft.surfaces.http.api.openapi import document
from haft.surfaces.http.api.table import ENDPOINTS

from .conftest import serving

W = "/api/v1/workspaces/default"
CHECKED = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
SCENARIOS = 60 * sampling.MORE if sampling.IS_WHOLE else 2
TOOLS = ["add", "write_file", "read_file", "list_directory", "no-such-tool"]
SETTINGS = hypothesis.settings(
    max_examples=6,
    stateful_step_count=12,
    deadline=None,
    database=None,
    derandomize=False,
    phases=[hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)


@tool(readonly=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        with serving(tmp_path_factory.mktemp("served"), tools=[add]) as found:
            yield found


@pytest.fixture(scope="module")
def token(running):
    return running.token("olga", kind="person", roles=["operator"])


@pytest.fixture(scope="module")
def schema(running, token):
    found = schemathesis.openapi.from_dict(copy.deepcopy(document()))  # It adds links of its own.
    found.config.update(base_url=running.url, headers={"Authorization": f"Bearer {token}"})
    return found


def test_every_operation_of_the_table_is_in_the_document():
    told = [operation for path in document()["paths"].values() for operation in path.values()]
    assert sorted(each["operationId"] for each in told) == sorted(each.name for each in ENDPOINTS)
    for each in told:
        for link in (link for answer in each["responses"].values() for link in answer.get("links", {}).values()):
            assert link["operationId"] in {other.name for other in ENDPOINTS}


def test_the_document_is_served(running, token):
    answer = httpx.get(
        f"{running.url}/api/v1/openapi.json", headers={"Authorization": f"Bearer {token}"}, trust_env=False
    )
    assert answer.json() == document()


def wait_for(found):
    while not (value := found()):
        pass
    return value


class Walk:
    """One good request of each operation, in an order in which each can succeed."""

    def __init__(self, schema, token):
        self.schema, self.token = schema, token
        self.operations = {each.ok().definition.raw["operationId"]: each.ok() for each in schema.get_all_operations()}
        self.reached = set()

    def __call__(self, name, /, *, query=None, body=None, **path):
        operation = self.operations[name]
        if "{workspace}" in operation.path:
            path["workspace"] = "default"
        given = {} if body is None else {"body": body, "media_type": "application/json"}
        case = operation.Case(path_parameters=path, query=query or {}, **given)
        answer = case.call_and_validate(checks=CHECKED, headers={"Authorization": f"Bearer {self.token}"})
        assert answer.status_code in (200, 201), (name, answer.status_code, answer.text)
        self.reached.add(name)
        return answer.json() if answer.headers["content-type"] == ["application/json"] else answer.text


def test_every_operation_reaches_success(running, schema, token):
    walk = Walk(schema, token)
    for name in ("whoAmI", "listWorkspaces", "listTools", "listRules", "examine", "examineHere", "showStore"):
        walk(name)
    walk("showTool", tool="add")
    walk("previewCall", tool="add", body={"args": {"a": 1, "b": 2}})
    walk("defineTools", query={"form": "openai"})
    walk("testCall", body={"tool": "add", "args": {"a": 1, "b": 2}})
    source = walk("addRule", body={"rule": {"tool": "write_file", "action": "ask"}})["source"]
    walk("removeRule", body={"source": source})
    walk("replayRules", body={})
    text = '[[permissions]]\ntool = "read_file"\naction = "ask"\n'
    source = walk("writeRule", body={"text": text})["source"]
    walk("showRule", query={"source": source})
    walk("replayChange", body={"text": text})
    walk("countDecisions")
    walk("removeRule", body={"source": source})

    run = walk("callTool", body={"tool": "add", "args": {"a": 1, "b": 2}})["run"]
    calls = {"calls": [{"tool": "add", "args": {"a": 1, "b": 2}}]}
    walk("planBatch", body=calls)
    batch = walk("startBatch", body=calls)["batch"]
    walk("showBatch", batch=batch)
    walk("cancelBatch", batch=batch)
    for name in ("showRun", "listChildren", "readOutput", "showDiff", "cancelRun"):
        walk(name, run=run)
    walk("listRuns", query={"limit": 1, "text": "a"})

    def write(path, **how):
        body = {"tool": "write_file", "args": {"path": path, "content": "x\n"}, "wait": 0, **how}
        return walk("callTool", body=body)["run"]

    def asked(run):
        return wait_for(lambda: [each for each in walk("listInbox")["requests"] if each["run"] == run])[0]

    def ended(run):
        wait_for(lambda: walk("showRun", run=run)["endedAt"])

    rejected, approved = write("a"), write("b")
    walk("reject", request=asked(rejected)["id"], body={"message": "no"})
    walk("showRequest", request=asked(approved)["id"])
    assert walk("listAllInboxes")["requests"]
    walk("approve", request=asked(approved)["id"], body={})
    ended(approved)
    walk("undo", body={"runs": [approved], "plan": True})
    walk("undo", body={"runs": [approved]})
    walk("redo", body={"runs": [approved]})
    walk("blameFile", query={"path": "b"})
    walk("listFileHistory", query={"path": "b"})
    applied, dropped = write("c", trial=True), write("d", trial=True)
    for run in (applied, dropped):
        asked(run)
    walk("listHeld")
    walk("applyChanges", run=applied, body={"wait": 20})
    walk("dropChanges", run=dropped, body={"wait": 20})

    walk("listTokens")
    walk("makeToken", body={"name": "zoe"})
    walk("revokeToken", name="zoe")
    with httpx.Client(base_url=running.url, trust_env=False) as browser:
        assert browser.post("/sign-in/session", json={"token": token}).status_code == 200
    walk("endSession", session=walk("listSessions")["sessions"][0]["id"])
    message = Delivery("msg_" + "0" * 24, "w", "pager", "call.waits", "{}", 1.0)
    deliveries_of(StateHome(str(running.home))).add(message)
    walk("sendAgain", delivery=walk("listDeliveries")["deliveries"][0]["id"])
    walk("verifyAudit", body={})
    for suffix in ("", "Here"):
        walk(f"listAudit{suffix}")
        walk(f"exportAudit{suffix}")
    assert {each.name for each in ENDPOINTS} - walk.reached == set()


@pytest.mark.first
def test_no_request_breaks_the_server_or_gets_an_answer_that_is_not_documented(schema, token):
    chance = random.Random(sampling.SEED)

    @schema.hook
    def map_path_parameters(_context, path):
        return path and {**path, **({"workspace": "default"} if "workspace" in path else {})}

    @schema.hook
    def map_body(_context, body):
        if isinstance(body, dict):
            body = {**body, **({"wait": 0} if isinstance(body.get("wait"), int | float) else {})}
            if "tool" in body and chance.random() < 0.8:
                body["tool"] = chance.choice(TOOLS)
                body["wait"] = 0
        return body

    Machine = schema.as_state_machine()

    answered = Counter()

    class Checked(Machine):
        def get_call_kwargs(self, case):
            if (case.path_parameters or {}).get("name") == "olga":  # Everything else needs this token.
                case.path_parameters["name"] = "nobody"
            return super().get_call_kwargs(case)

        def validate_response(self, response, case, **options):
            case.validate_response(response, checks=CHECKED)
            answered[response.status_code] += 1

    for _ in range(SCENARIOS):
        # What the server knows differs from scenario to scenario, which hypothesis may take for a flaw of the test.
        with contextlib.suppress(FlakyStrategyDefinition):
            run_state_machine_as_test(Checked, settings=SETTINGS)
    assert answered[200] and answered[422] and not answered[401], answered
