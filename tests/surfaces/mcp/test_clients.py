"""What is known of a client: what it answers, and how long it waits."""

import pytest
from mcp_types import ClientCapabilities

from haft.surfaces.mcp.dialogues.clients import MARGIN, answered_kinds, limit_of


@pytest.mark.parametrize(
    ("software", "seconds"),
    [("codex-mcp-client", 300), ("gemini-cli-mcp-client", 600), ("claude-code", 1800), ("somebody", 60), ("", 60)],
)
def test_a_client_gets_an_answer_before_its_limit(software, seconds):
    limit, is_known = limit_of(software, has_token=True)
    assert limit == seconds - MARGIN
    assert is_known == (seconds != 60)


def test_progress_makes_opencode_wait_if_it_asked_for_progress():
    assert limit_of("opencode", has_token=True) == (None, True)
    assert limit_of("opencode", has_token=False) == (60 - MARGIN, False)


@pytest.mark.parametrize(
    ("capabilities", "kinds"),
    [
        ({}, set()),
        ({"elicitation": {}}, {"elicitation/create"}),
        ({"elicitation": {"url": {}}}, {"elicitation/create url"}),
        ({"elicitation": {"form": {}, "url": {}}}, {"elicitation/create", "elicitation/create url"}),
        ({"sampling": {}, "roots": {}}, {"sampling/createMessage", "roots/list"}),
    ],
)
def test_a_client_answers_what_it_declares(capabilities, kinds):
    assert answered_kinds(ClientCapabilities.model_validate(capabilities)) == kinds
