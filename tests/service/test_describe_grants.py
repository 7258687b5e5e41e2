"""What a tool may have when it is asked what it is: what a rule grants to every call of it, and nothing else."""

import asyncio
import socket

import pytest

from haft.service import ToolService

pytestmark = pytest.mark.every_user

VALUE = "tok-51f3a9e07b"
NEEDY = """#!/bin/sh
if [ "$TOOLBOX_ACTION" = describe ]; then
  [ -n "$LOOKUP_TOKEN" ] || {{ echo "LOOKUP_TOKEN is required" >&2; exit 1; }}
  printf 'name: lookup\\ndescription: Looks things up with %s.\\n' "$LOOKUP_TOKEN"
  exit 0
fi
echo "called{more}"
"""
RULE = {"tool": "tb__lookup", "action": "allow", "grant": {"env": ["LOOKUP_TOKEN"]}}


async def yes(_request):
    return True


class Place:
    def __init__(self, tmp_path):
        self.home, self.workspace, self.box = (tmp_path / name for name in ("home", "workspace", "box"))
        for each in (self.workspace, self.box):
            each.mkdir()

    def put(self, directory, more=""):
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "lookup"
        path.write_text(NEEDY.format(more=more))
        path.chmod(0o755)
        return path

    def with_service(self, work, *rules):
        settings = {"permissions": list(rules), "toolbox.paths": [str(self.box)]}

        async def main():
            async with ToolService.open(
                self.workspace, approver=yes, home=self.home, installed=False, settings=settings
            ) as service:
                return await work(service)

        return asyncio.run(main())

    def listed(self, *rules):
        async def work(service):
            return next(one for one in service.tools(all=True) if one.spec.name == "tb__lookup")

        return self.with_service(work, *rules)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOKUP_TOKEN", VALUE)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Place(tmp_path)


def test_a_rule_for_all_calls_of_a_tool_holds_when_it_describes_itself(place):
    place.put(place.box)
    broken = place.listed()
    assert broken.state == "broken"
    assert "`haft permissions add allow tb__lookup --env LOOKUP_TOKEN`" in broken.reason
    ready = place.listed(RULE)
    assert ready.state == "ready"
    assert ready.spec.description.strip() == "Looks things up with [secret removed by haft]."
    kept = b"".join(path.read_bytes() for path in place.home.rglob("*") if path.is_file())
    assert VALUE.encode() not in kept
    assert place.listed().state == "broken"  # Without the rule it is asked again, without.


@pytest.mark.parametrize(
    "rule",
    [
        {**RULE, "action": "ask"},
        {**RULE, "matches": {"what": "x*"}},
        {**RULE, "context": "subagent"},
        {**RULE, "tool": "tb__other"},
    ],
)
def test_a_rule_that_does_not_allow_every_call_gives_nothing(place, rule):
    place.put(place.box)
    assert place.listed(rule).state == "broken"


def test_a_rule_that_rejects_leaves_nothing(place):
    place.put(place.box)
    assert place.listed({"tool": "tb__*", "action": "reject", "matches": {"what": "x"}}, RULE).state == "broken"


def test_what_a_workspace_brings_is_given_nothing_before_somebody_agreed_to_it(place):
    path = place.put(place.workspace / ".agents" / "tools")
    broken = place.listed(RULE)
    assert broken.state == "broken" and f"`haft tools use {path} --env LOOKUP_TOKEN`" in broken.reason

    async def by_path(service):
        listing = await service.load(str(path), grants={"env": ["LOOKUP_TOKEN"]})
        return await service.call(listing.spec.name, {}, grants={"env": ["LOOKUP_TOKEN"]})

    assert place.with_service(by_path, RULE).ok
    assert place.listed(RULE).state == "ready"
    place.put(place.workspace / ".agents" / "tools", more=" anew")
    assert place.listed(RULE).state == "broken"


def test_a_file_of_the_workspace_does_not_get_what_the_users_own_of_that_name_gets(place):
    place.put(place.box)

    async def call(service):
        return await service.call("tb__lookup", {})

    assert place.with_service(call, RULE).ok
    (place.box / "lookup").unlink()
    place.put(place.workspace / ".agents" / "tools")
    assert place.listed(RULE).state == "broken"


ONLINE = """#!/usr/bin/env python3
import os, socket
if os.environ["TOOLBOX_ACTION"] == "describe":
    socket.create_connection(("127.0.0.1", {port})).close()
    print("name: lookup\\ndescription: Looks things up.")
"""


def test_a_rule_that_grants_the_network_to_all_calls_of_a_tool_grants_it_when_it_describes_itself(place):
    with socket.create_server(("127.0.0.1", 0)) as server:
        path = place.put(place.box)
        path.write_text(ONLINE.format(port=server.getsockname()[1]))
        assert place.listed().state == "broken"
        rule = {"tool": "tb__lookup", "action": "allow", "grant": {"network": True}}
        assert place.listed(rule).state == "ready"
        assert place.listed({**rule, "action": "ask"}).state == "broken"


def test_a_tool_that_may_have_failed_to_fetch_its_packages_says_what_to_type(place):
    path = place.put(place.box)
    path.write_text("#!/usr/bin/env -S uv run --script\nraise SystemExit(1)\n")
    assert "`haft permissions add allow tb__lookup --network`" in place.listed().reason


def test_what_a_workspace_brings_is_given_the_network_first_by_whoever_names_its_file_and_then_by_a_rule(place):
    rule = {"tool": "tb__lookup", "action": "allow", "grant": {"network": True}}
    with socket.create_server(("127.0.0.1", 0)) as server:
        path = place.put(place.workspace / ".agents" / "tools")
        path.write_text(ONLINE.format(port=server.getsockname()[1]))
        assert place.listed(rule).state == "broken"

        async def by_name(service):
            return await service.call("tb__lookup", {}, grants={"network": True})

        assert not place.with_service(by_name).ok, "a call is not described with what it asks for"

        async def by_path(service):
            listing = await service.load(str(path), grants={"network": True})
            return await service.call(listing.spec.name, {}, grants={"network": True})

        assert place.with_service(by_path).ok
        assert place.listed(rule).state == "ready"


def test_a_tool_of_the_workspace_that_may_have_failed_to_fetch_its_packages_says_what_to_type(place):
    path = place.put(place.workspace / ".agents" / "tools")
    path.write_text("#!/usr/bin/env -S uv run --script\nraise SystemExit(1)\n")
    reason = place.listed().reason
    assert f"`haft tools use {path} --network` once" in reason
    assert "then `haft permissions add allow tb__lookup --network`" in reason
