"""The catalogue, previews, and tests of permissions."""

import pytest

from haft.contracts import HaftError, UnknownTool

BUILT_IN = {"read_file", "write_file", "edit_file", "list_directory", "find_files", "search", "shell"}


def test_tools_are_listed(service):
    listings = {each.spec.name: each for each in service.tools()}
    assert {*listings} >= BUILT_IN | {"add", "risky"}
    add = listings["add"]
    assert (add.enabled, add.state, add.spec.kind, add.spec.summary) == (True, "ready", "python", "Add two numbers.")
    assert add.spec.effects.readonly and not listings["risky"].spec.effects.readonly
    assert add.spec.input_schema["required"] == ["a", "b"] and add.spec.digest
    assert {each.spec.name for each in service.tools(all=True)} >= {*listings}


@pytest.mark.parametrize("form", ["openai", "openai-responses", "anthropic", "mcp"])
def test_definitions_for_the_apis_of_models(service, form):
    names = {each["function"]["name"] if form == "openai" else each["name"] for each in service.tools_as(form)}
    assert names >= BUILT_IN | {"add", "risky"}


def test_an_unknown_form(service):
    with pytest.raises(HaftError):
        service.tools_as("fax")


def test_a_tool_is_searched_for_again(service, files):
    assert service.look_again("add").spec.name == "add"
    assert service.look_again("nothing") is None


def test_the_catalogue_is_watched(service):
    catalogues = iter(service.watch_tools())
    assert {each.spec.name for each in next(catalogues)} >= BUILT_IN


def test_a_preview(service):
    assert service.preview("add", {"a": 1, "b": 2}) is None
    with pytest.raises(UnknownTool):
        service.preview("nothing")


def test_permissions_are_tested(service):
    allowed = service.permissions_test("write_file", {"path": "a", "content": ""})
    assert (allowed.action, allowed.layer) == ("allow", "rules") and allowed.source
    asks = service.permissions_test("risky", {"text": "x"}, thread="T-permissions")
    assert asks.action == "ask" and asks.reason and len(asks.steps) > 0
    assert asks.steps[0].layer and asks.steps[0].outcome
    parts = service.permissions_test("shell", {"command": "ls; rm -rf /"}, cwd=".")
    assert [part.command for part in parts.parts] == ["ls", "rm -rf /"] and parts.action != "allow"
    assert parts.decision.to_json()["parts"] == [part.to_json() for part in parts.parts]
    rejected = service.permissions_test("repeats", {"text": "forbidden", "times": 1})
    assert (rejected.action, rejected.rule != "") == ("reject", True)
    with pytest.raises(UnknownTool, match="nothing"):
        service.permissions_test("nothing", {})
