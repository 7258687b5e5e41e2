"""Calls that need approval: answers in the inbox, in every form, and answers of an approver."""

import pytest

from haft import ApprovalAnswer
from haft.contracts import BadUsage, Conflict, HaftError, UnknownRequest


def asked(service, run):
    while True:
        for waiting in service.inbox():
            if waiting.run == run:
                return waiting


def risky(service, text="x", **options):
    return service.call("risky", {"text": text}, **options)


def test_a_request_shows_the_call(service):
    run = risky(service, "shown", thread="T-shown", claim="the title needs it")
    waiting = asked(service, run.id)
    shown = waiting.shown
    assert shown["claim"] == "the title needs it"
    assert (shown["tool"], shown["arguments"], waiting.who, waiting.thread) == (
        "risky",
        {"text": "shown"},
        "mia",
        "T-shown",
    )
    assert waiting.digest and waiting.expires and waiting.expires_at > waiting.created_at > 0
    assert waiting.id in [each.id for each in service.inbox(all=True)]
    assert service.run(run.id).status == "blocked-on-user"
    event = next(event for event in service.run(run.id) if event.status == "blocked-on-user")
    assert event.facts["request"] == waiting.id
    reply = service.approve(waiting.id)
    assert (reply.waiting.id, reply.approved, reply.host_lives, reply.settle) == (waiting.id, True, True, False)
    outcome = run.wait()
    assert (outcome.result, outcome.decision.by, outcome.decision.layer) == ("SHOWN", "person", "approval")
    assert waiting.id not in [each.id for each in service.inbox()]


def test_the_name_of_the_run_answers_too(service):
    run = risky(service)
    asked(service, run.id)
    assert service.approve(run.id).waiting.run == run.id
    assert run.wait().ok


def test_a_rejection_reaches_the_model(service):
    run = risky(service)
    reply = service.reject(asked(service, run.id).id, message="use another word")
    assert reply.approved is False
    outcome = run.wait()
    assert (outcome.status, outcome.error.code, outcome.process_exit_code) == ("rejected-by-user", "rejected", 3)
    assert "use another word" in outcome.error.message and "use another word" in outcome.for_model().text


def test_the_second_answer_says_who_gave_the_first(service):
    run = risky(service)
    waiting = asked(service, run.id)
    service.approve(waiting.id)
    run.wait()
    with pytest.raises(Conflict, match="answered already: mia approved it"):
        service.reject(waiting.id)
    with pytest.raises(UnknownRequest):
        service.approve("a_nothing")


def test_an_approval_for_the_thread(service):
    run = risky(service, "thread", thread="T-1")
    waiting = asked(service, run.id)
    assert waiting.shown["toAllow"]
    service.approve(waiting.id, scope="thread")
    assert run.wait().ok
    assert risky(service, "thread", thread="T-1").wait().ok
    other = risky(service, "thread", thread="T-2")
    service.reject(asked(service, other.id).id)
    assert other.wait().status == "rejected-by-user"


def test_an_approval_for_always(service):
    run = risky(service, "always")
    service.approve(asked(service, run.id).id, scope="always", allow=0)
    assert run.wait().ok
    again = risky(service, "always", thread="T-other").wait()
    assert again.ok and service.permissions_test("risky", {"text": "always"}).action == "allow"


def test_an_approval_with_other_arguments(service):
    run = risky(service, "edited")
    service.approve(asked(service, run.id).id, arguments={"text": "better"})
    assert run.wait().result == "BETTER"


def test_an_approval_with_wrong_arguments(service):
    run = risky(service, "edited")
    service.approve(asked(service, run.id).id, arguments={"text": 3})
    outcome = run.wait()
    assert not outcome.ok and outcome.error.code in ("invalid-arguments", "rejected")


def test_an_approval_with_grants(service, monkeypatch):
    monkeypatch.setenv("CONTRACT_WORD", "granted")
    run = service.call("shell", {"command": "touch granted; echo ${CONTRACT_WORD:-nothing}"})
    service.approve(asked(service, run.id).id, grants={"env": ["CONTRACT_WORD"]})
    outcome = run.wait()
    assert outcome.output == "granted\n" and outcome.sandbox.env == ("CONTRACT_WORD",)
    again = service.call("shell", {"command": "touch more; true"})
    with pytest.raises(BadUsage):
        service.approve(asked(service, again.id).id, grants={"sky": True})
    assert again.cancel() and again.wait().status == "cancelled"


def test_an_answer_that_makes_no_sense(service):
    run = risky(service)
    waiting = asked(service, run.id)
    for wrong in ({"scope": "ever"}, {"scope": "always", "allow": 99}):
        with pytest.raises(BadUsage):
            service.approve(waiting.id, **wrong)
    service.reject(waiting.id)
    assert run.wait().error.code == "rejected"


def test_a_cancelled_call_leaves_the_inbox(service):
    run = risky(service)
    waiting = asked(service, run.id)
    assert service.cancel(run.id) and run.wait().status == "cancelled"
    assert waiting.id not in [each.id for each in service.inbox()]
    with pytest.raises(HaftError):
        service.approve(waiting.id)


def test_nobody_answers(kind, tmp_path):
    with kind.open(tmp_path, settings={"approval.expires_seconds": 0}) as service:
        outcome = service.call("risky", {"text": "x"}).wait()
        assert (outcome.error.code, outcome.process_exit_code) == ("rejected", 3)
        assert outcome.decision.by in ("nobody", "expiry")


def test_an_approver_answers(kind, tmp_path):
    seen = []

    async def approver(request):
        seen.append(request)
        word = request.arguments["text"]
        if word == "edit":
            return ApprovalAnswer(approved=True, arguments={"text": "edited"}, message="as you like")
        return ApprovalAnswer(approved=False, message="never") if word == "no" else word == "yes"

    with kind.open(tmp_path, approver=approver) as service:
        outcomes = {word: service.call("risky", {"text": word}).wait() for word in ("yes", "edit", "no", "other")}
    assert [each.ok for each in outcomes.values()] == [True, True, False, False]
    assert outcomes["edit"].result == "EDITED" and "never" in outcomes["no"].error.message
    assert [(each.tool, each.run) for each in seen][:1] == [("risky", outcomes["yes"].run_id)]
    assert seen[0].who == "mia" and seen[0].reason and seen[0].to_allow and seen[0].id


def test_an_approver_that_is_no_coroutine_and_one_that_is_wrong(kind, tmp_path):
    answers = {"yes": True, "odd": "maybe"}
    with kind.open(tmp_path, approver=lambda request: answers[request.arguments["text"]]) as service:
        assert service.call("risky", {"text": "yes"}).wait().ok
        assert service.call("risky", {"text": "odd"}).wait().error is not None


def test_an_approver_gets_the_diff_of_a_trial_run(kind, tmp_path):
    diffs = []

    def approver(request):
        diffs.append(request.diff)
        return True

    with kind.open(tmp_path, approver=approver) as service:
        outcome = service.call("write_file", {"path": "tried", "content": "hello\n"}, trial=True).wait()
    assert outcome.changes.state == "committed" and "+hello" in diffs[0]
    assert (tmp_path / "workspace" / "tried").read_text() == "hello\n"
