"""Errors as answers over HTTP."""

import json

from haft.contracts import ERROR_CODES, Bug, Busy, UnknownRun
from haft.surfaces.http.api.problems import STATUSES, TITLES, HttpError, problem


def told(error):
    answer = problem(error, "ab" * 16)
    return answer, json.loads(answer.body)


def test_every_code_has_a_status_and_every_status_a_title():
    assert set(STATUSES) >= ERROR_CODES
    assert set(TITLES) >= set(STATUSES.values())


def test_an_error_says_what_to_do_and_where_to_look():
    answer, facts = told(UnknownRun("r_1"))
    assert (answer.status_code, answer.media_type) == (404, "application/problem+json")
    assert facts == {
        "type": "urn:haft:error:unknown-run",
        "title": "Not found",
        "status": 404,
        "detail": "there is no run called `r_1`",
        "code": "unknown-run",
        "hint": "`haft log` lists the runs",
        "retryable": False,
        "trace": "ab" * 16,
    }


def test_who_should_come_back_learns_when():
    answer, facts = told(Busy("too many calls wait"))
    assert (answer.status_code, answer.headers["retry-after"], facts["retryable"]) == (503, "1", True)
    assert told(HttpError("too-many-requests", "too many"))[0].status_code == 429


def test_a_bug_is_an_internal_error():
    assert told(Bug(ValueError("x")))[0].status_code == 500
