"""Denials as the person reads them: in the outcome's notes and in its error, with a grant that works."""

import asyncio
import os

import pytest

from haft.contracts import ApprovalAnswer
from haft.service import ToolService

pytestmark = pytest.mark.every_user


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Calls `shell`, approved, for a person with a home of their own."""
    person = tmp_path / "person"
    person.mkdir()
    (person / ".netrc").write_text("machine api.example login me\n")
    (tmp_path / "workspace").mkdir()
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(person / "config"))

    def call(command, **options):
        async def main():
            async with ToolService.open(
                tmp_path / "workspace", approver=lambda _request: True, home=tmp_path / "home", installed=False
            ) as service:
                outcome = await service.call("shell", {"command": command}, **options)
                if "namespaces" not in outcome.sandbox.layers:
                    pytest.skip("there are no namespaces here")
                return outcome

        return asyncio.run(main())

    call.person = person
    return call


def test_a_network_failure_that_a_script_swallows_is_noted(call):
    script = (
        "python3 -c 'import urllib.request as u; u.urlopen(\"http://api.example\")' 2>&1 | tail -1 || true; touch x"
    )
    outcome = call(script)
    assert outcome.ok and "name resolution" in outcome.output
    (note,) = outcome.notes
    assert "it has no network" in note and "`--network=HOST`" in note


def test_curl_that_says_nothing_is_known_by_its_exit_code(call):
    (call.person.parent / "workspace" / "curl").write_text("#!/bin/sh\nexit 6\n")
    (call.person.parent / "workspace" / "curl").chmod(0o755)
    outcome = call("touch x; ./curl -s http://api.example")
    assert outcome.error.code == "sandbox-denied" and "`--network=HOST`" in outcome.error.hint
    assert call("touch x; exit 6").error.code == "tool-failed"


def test_a_file_with_credentials_that_was_not_seen_is_noted_and_the_grant_shows_it(call):
    look = 'touch x; if [ -e ~/.netrc ]; then cat ~/.netrc; else echo "~/.netrc not found, going on without"; fi'
    outcome = call(look)
    (note,) = outcome.notes
    path = str(call.person / ".netrc")
    assert outcome.ok and f"`--read {path}`" in note
    shown = call(look, grants={"read": [path]})
    assert "machine api.example" in shown.output and shown.notes == ()


def test_a_call_that_failed_for_the_network_also_names_the_variable_that_it_went_without(call, monkeypatch):
    monkeypatch.setenv("API_TOKEN", "t-1357902468")
    outcome = call(
        'touch x; echo "as $API_TOKEN"; echo "  0  0 --:--:--  0curl: (6) Could not resolve host: x"; exit 1'
    )
    assert "(curl: (6) Could not resolve host: x)" in outcome.error.message
    (note,) = outcome.notes
    assert "`--env API_TOKEN`" in note


def test_what_only_reads_is_not_believed(call):
    (call.person.parent / "workspace" / "log").write_text("curl: (6) Could not resolve host: x\n~/.netrc not found\n")
    outcome = call("cat log")
    assert outcome.decision.unasked and outcome.notes == ()


def test_a_timeout_does_not_suggest_the_network(call):
    outcome = call("touch x; sleep 60", timeout=0.5)
    assert outcome.error.code == "timed-out" and "network" not in outcome.error.hint
    said = call("touch x; echo 'Could not resolve host: api.example'; sleep 60", timeout=0.5)
    assert "`--network=HOST`" in said.error.hint


@pytest.mark.skipif(os.geteuid() != 0, reason="others cannot write there anyway")
def test_a_directory_of_the_system_is_not_suggested(call):
    outcome = call("touch /etc/foo")
    assert outcome.error.code == "sandbox-denied" and "--write" not in outcome.error.hint


def test_a_failure_shows_the_line_that_matters(call):
    script = "touch x; echo begun; python3 - <<'E'\nimport sys\ntry:\n  {}['city']\nfinally:\n  print('bye')\nE"
    outcome = call(script)
    assert outcome.error.message == "`bash` exited 1: KeyError: 'city'"
    assert call("touch x; no_such_program; echo bye; exit 3").error.message.endswith(
        "no_such_program: command not found"
    )
    assert call("touch x; echo some words; exit 3").error.message == "`bash` exited 3"


def test_a_granted_variable_has_the_value_of_the_moment_and_an_unset_one_is_told(tmp_path, monkeypatch):
    (tmp_path / "workspace").mkdir()

    async def main():
        async with ToolService.open(
            tmp_path / "workspace", approver=lambda _request: True, home=tmp_path / "home", installed=False
        ) as service:

            async def said():
                grants = {"env": ["LATE_WORD"]}
                return await service.call("shell", {"command": 'touch x; echo "<$LATE_WORD>"'}, grants=grants)

            for value in ("one", "two"):
                monkeypatch.setenv("LATE_WORD", value)
                assert f"<{value}>" in (await said()).output
            monkeypatch.delenv("LATE_WORD")
            outcome = await said()
            assert "<>" in outcome.output
            assert any("is not set here: set LATE_WORD" in note for note in outcome.notes)

    asyncio.run(main())


def test_a_yes_with_a_variable_that_is_not_set_is_not_followed(tmp_path):
    (tmp_path / "workspace").mkdir()

    async def main():
        answer = ApprovalAnswer(approved=True, grants={"env": ["NOT_SET_HERE"]})
        async with ToolService.open(
            tmp_path / "workspace", approver=lambda _request: answer, home=tmp_path / "home", installed=False
        ) as service:
            return await service.call("shell", {"command": "touch x"})

    outcome = asyncio.run(main())
    assert outcome.error.code == "rejected" and "set NOT_SET_HERE there" in outcome.error.message
