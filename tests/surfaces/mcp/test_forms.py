"""Questions as MCP writes them, and what the answers of clients say."""

import pytest

from haft.contracts import NO_GRANTS, ApprovalRequest, HeldConnection, Question
from haft.service import check_form
from haft.surfaces.mcp.dialogues.dialogue import key_of
from haft.surfaces.mcp.dialogues.forms import read_answer, request_form, shown_digest
from haft.values import replace

CALL = ApprovalRequest("r_1", "shell", "", {"command": "make"}, "it may write", "agent", "T-1", id="a_1")
FORM = Question.form("Name?\nhaft: approve", {"name": {"type": "string", "description": "a\u202eb"}})


def message_of(request):
    return request_form(request, ".")["params"]["message"]


def reading_of(request, response, *, shows_person=True):
    return read_answer(request, response, "codex", shows_person=shows_person, check_form=check_form)


def test_the_form_shows_the_call_and_how_to_answer_elsewhere():
    message = message_of(CALL)
    for said in ("shell needs approval: it may write", "command: make", "haft approve a_1"):
        assert said in message


def test_arguments_cannot_add_lines_of_their_own_or_hide_characters():
    message = message_of(replace(CALL, arguments={"command": "ls\nshell needs approval: nothing\u202e"}))
    assert "\u202e" not in message and "\\u202e" in message
    assert not any(line.startswith("shell needs approval: nothing") for line in message.split("\n"))


def test_a_claim_stands_in_the_form_as_words_of_the_agent():
    claimed = replace(CALL, claim="it is safe, haft approves")
    assert "\n  the agent says: it is safe, haft approves" in message_of(claimed)
    assert "  the agent says: it is safe, haft approves\n" in message_of(replace(claimed, diff="+a"))
    assert "says" not in message_of(CALL)


def test_the_form_of_a_connection_names_host_and_port():
    held = HeldConnection(host="files.example", port=443, program="curl")
    message = message_of(replace(CALL, connection=held))
    assert "files.example" in message and "443" in message and "a connection of shell" in message


def test_the_form_after_a_trial_run_shows_its_changes_behind_a_bar():
    message = message_of(replace(CALL, diff="+a\nApply everything"))
    assert "│ Apply everything" in message and "\nApply everything" not in message


def test_the_form_of_a_build_says_whose_code_runs():
    assert "code of their authors" in message_of(replace(CALL, build="haft templates build"))


def test_the_texts_of_a_tools_form_have_no_invisible_characters():
    form = request_form(replace(CALL, question=FORM), ".")["params"]
    assert form["requestedSchema"]["properties"]["name"]["description"] == "a\\u202eb"
    assert form["message"] == "`shell` asks. Its words:\n  │ Name?\n  │ haft: approve"


def test_a_question_that_a_person_saw_is_known_again_in_another_run():
    def digest(request):
        return shown_digest(request_form(request, "."), request)

    again = replace(CALL, run="r_2", id="a_2")
    assert digest(CALL) == digest(again)
    assert digest(CALL) != digest(replace(again, arguments={"command": "make clean"}))
    assert digest(CALL) != digest(replace(again, pin="changed"))


@pytest.mark.parametrize("key", ["approval", "approval-2", "", "a b", "x" * 65, "\u202e"])
def test_a_key_of_a_tool_never_looks_like_an_approval(key):
    assert key_of(replace(FORM, key=key)) == "question"


@pytest.mark.parametrize(
    "response",
    [
        12345,
        {},
        {"action": "yes"},
        {"action": "accept"},
        {"action": "accept", "content": []},
        {"action": "accept", "content": {"decision": True}},
        {"action": "accept", "content": {"decision": "always"}},
    ],
)
def test_an_answer_that_does_not_fit_approves_nothing(response):
    reading = reading_of(CALL, response)
    assert reading.kind == "invalid" and reading.answer is None and reading.problem


def test_an_approval_through_a_client_has_nothing_but_the_choice():
    content = {"decision": "approve", "scope": "always", "grants": {"network": True}, "arguments": {"command": "x"}}
    answer = reading_of(CALL, {"action": "accept", "content": content}).answer
    assert (answer.approved, answer.via, answer.scope, answer.arguments) == (True, "codex", "once", None)
    assert answer.grants == NO_GRANTS


def test_a_decline_counts_only_if_a_person_can_have_seen_the_form():
    assert reading_of(CALL, {"action": "decline"}).answer.approved is False
    assert reading_of(CALL, {"action": "decline"}, shows_person=False).kind == "leave"
    assert reading_of(CALL, {"action": "cancel"}).kind == "leave"


def test_what_was_wrong_with_an_answer_cannot_add_lines_of_its_own():
    form = request_form(replace(CALL, question=FORM), ".", "`x\nshell needs approval: nothing\u202e`")
    first, *others = form["params"]["message"].split("\n")
    assert first == "The last answer was not valid: `x\\nshell needs approval: nothing\\u202e`"
    assert not any(line.startswith("shell needs approval") for line in others)


@pytest.mark.parametrize(
    "properties",
    [
        {"a\u200bb": {"type": "string"}},
        {"a\nb": {"type": "string"}},
        {"a": {"type": "string", "enum": ["yes\u202e", "no"]}},
        {"a": {"type": "string", "oneOf": [{"const": "y\u200b", "title": "y"}]}},
        {"a": {"type": "string", "default": "\u2066x"}},
        {"a": {"type": "string", "description": "x" * 60_000}},
    ],
)
def test_a_form_that_a_dialogue_would_not_show_as_it_is_waits_in_the_inbox_only(properties):
    assert request_form(replace(CALL, question=Question.form("Name?", properties)), ".") is None


def test_a_tools_form_has_labels_of_one_line_and_no_parameters_of_its_own():
    field = {"type": "string", "title": "a\nb", "enum": ["1"], "enumNames": ["c\u202ed"]}
    question = Question.form("Name?", {"name": field})
    question = replace(question, params={**question.params, "_meta": {"x": 1}, "task": {"ttl": 1}})
    form = request_form(replace(CALL, question=question), ".")["params"]
    assert form.keys() == {"mode", "message", "requestedSchema"}
    shown = form["requestedSchema"]["properties"]["name"]
    assert (shown["title"], shown["enumNames"], shown["enum"]) == ("a\\nb", ["c\\u202ed"], ["1"])
