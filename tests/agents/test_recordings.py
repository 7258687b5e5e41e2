"""The recordings of what agents give their hooks are of the versions that haft's facts about agents name."""

import json
from pathlib import Path

import pytest

from haft.connecting import AGENTS

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))


@pytest.fixture(params=RECORDED, ids=lambda path: path.stem)
def recording(request):
    return json.loads(request.param.read_text())


def test_a_recording_is_of_the_version_that_haft_was_tried_with(recording):
    assert recording["version"] == AGENTS[recording["agent"]].version


def test_a_recording_has_calls_before_and_after_and_names_no_place_of_a_machine(recording):
    assert {event["event"] for event in recording["events"]} == {"before", "after"}
    text = json.dumps(recording)
    assert "/workspaces/person/project" in text and "/root" not in text and "pytest-of" not in text


def test_the_list_of_packages_names_the_same_versions_and_no_address_to_download_from():
    lists = Path(__file__).parent / "npm"
    wanted = json.loads((lists / "package.json").read_text())
    named = {**wanted["dependencies"], **wanted["optionalDependencies"]}
    assert named["@anthropic-ai/claude-code"] == AGENTS["claude-code"].version
    assert named["@openai/codex"] == AGENTS["codex"].version
    assert named["@google/gemini-cli"] == AGENTS["gemini"].version
    assert named["opencode-linux-x64"] == named["opencode-linux-arm64"] == AGENTS["opencode"].version
    lock = json.loads((lists / "package-lock.json").read_text())
    assert lock["packages"] and not any("resolved" in entry for entry in lock["packages"].values())
