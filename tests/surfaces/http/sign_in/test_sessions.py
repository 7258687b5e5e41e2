"""Signing in with a token or the link of a server, and what the cookie is good for."""

import json
import time

import httpx
import pytest

from haft import Principal
from haft.contracts import BadUsage, NeedsPerson
from haft.service import ALLOWED, Delivery, Sessions, SignInLinks, StateHome, Tokens, deliveries_of, user_name
from haft.surfaces.http.sign_in import SignIn

ME = Principal(user_name())
ANA = Principal("ana")
RUNS = "/api/v1/workspaces/default/runs"
OWN = {"Sec-Fetch-Site": "same-origin"}


def browser(running, **options):
    return httpx.Client(base_url=running.url, timeout=60, trust_env=False, headers=OWN, **options)


def signed_in(client, token):
    return client.post("/sign-in/session", json={"token": token})


def new_link(running):
    return SignInLinks(running.home).make(ME)


def test_a_link_signs_the_person_of_the_server_in_once_as_operator(running):
    link = new_link(running)
    with browser(running) as first, browser(running) as second:
        assert first.get(RUNS).status_code == 401
        answer = signed_in(first, link)
        assert (answer.status_code, answer.json()) == (200, {"name": user_name()})
        assert first.get(RUNS).status_code == 200
        again = signed_in(second, link)
        assert again.status_code == 401 and "used before" in again.json()["detail"]
        assert second.get(RUNS).status_code == 401


def test_no_script_reads_the_cookie_and_no_other_site_sends_it(running):
    with browser(running) as client:
        cookie = signed_in(client, new_link(running)).headers["set-cookie"]
    name, _, attributes = cookie.partition("=")
    port = running.url.rpartition(":")[2]
    assert name == f"haft_session_{port}"
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {each.strip() for each in attributes.split(";")}


def test_over_tls_no_other_host_can_have_set_the_cookie(tmp_path, serve):
    with serve(tmp_path, sign_in=lambda home: SignIn(home, has_tls=True)) as running:
        with browser(running) as client:
            answer = signed_in(client, new_link(running))
            assert answer.headers["set-cookie"].startswith("__Host-haft_session_")
            assert "Secure" in answer.headers["set-cookie"] and "Domain" not in answer.headers["set-cookie"]


def test_a_link_is_good_for_minutes_and_only_its_digest_is_stored(running):
    link = new_link(running)
    (file,) = [each for each in (running.home / "sign-in-links").iterdir() if link not in each.name]
    assert link.removeprefix("haftlink_") not in file.read_text() + file.name
    assert 0 < json.loads(file.read_text())["expires"] - time.time() <= 600
    file.write_text(json.dumps({"by": user_name(), "expires": time.time() - 1}))
    with browser(running) as client:
        assert signed_in(client, link).status_code == 401
    assert not file.exists()


def test_only_the_person_of_the_server_makes_a_link(tmp_path):
    with pytest.raises(NeedsPerson):
        SignInLinks(tmp_path).make(Principal(user_name(), kind="agent"))
    with pytest.raises(BadUsage):
        SignInLinks(tmp_path).make(Principal("somebody-else"))


def test_a_session_of_a_token_may_what_the_token_may_and_ends_with_it(running):
    token = Tokens(running.home).add("rita", ANA, kind="person", roles=["reader"])[1]
    with browser(running) as client:
        assert signed_in(client, token).json() == {"name": "rita"}
        assert client.get(RUNS).status_code == 200
        call = client.post("/api/v1/workspaces/default/calls", json={"tool": "read_file", "args": {"path": "a"}})
        assert (call.status_code, call.json()["code"]) == (403, "forbidden")
        Tokens(running.home).revoke("rita", ANA)
        assert client.get(RUNS).status_code == 401


def test_a_session_is_good_after_a_restart_and_ends_when_it_is_revoked(tmp_path, serve):
    with serve(tmp_path) as running, browser(running) as client:
        signed_in(client, new_link(running))
        (value,) = client.cookies.jar
    with serve(tmp_path) as running:
        name = f"haft_session_{running.url.rpartition(':')[2]}"  # A restarted server usually has the same port.
        with browser(running, cookies={name: value.value}) as client:
            assert client.get(RUNS).status_code == 200
            sessions = Sessions(running.home)
            (session,) = sessions.all()
            assert session.name == user_name() and sessions.end(session.id) == session
            assert client.get(RUNS).status_code == 401
            assert sessions.end(session.id) is None


def test_signing_out_ends_the_session_for_everyone_who_has_the_cookie(running):
    with browser(running) as client:
        signed_in(client, new_link(running))
        copied = dict(client.cookies)
        answer = client.post("/sign-in/out")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        assert "Max-Age=0" in answer.headers["set-cookie"]
    with browser(running, cookies=copied) as client:
        assert client.get(RUNS).status_code == 401


def test_signing_in_again_ends_the_session_before(running):
    with browser(running) as client:
        signed_in(client, new_link(running))
        copied = dict(client.cookies)
        signed_in(client, new_link(running))
        assert client.get(RUNS).status_code == 200
    with browser(running, cookies=copied) as client:
        assert client.get(RUNS).status_code == 401


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value: value[:-1] + ("A" if value[-1] != "A" else "B"),
        lambda value: value[:-1],
        lambda value: "0" * 16 + value[16:],
        lambda value: f"../{value}",
        lambda value: "",
    ],
)
def test_any_other_cookie_is_no_session(running, spoil):
    with browser(running) as client:
        signed_in(client, new_link(running))
        spoiled = {name: spoil(value) for name, value in client.cookies.items()}
    with browser(running, cookies=spoiled) as client:
        assert client.get(RUNS).status_code == 401


@pytest.mark.parametrize(
    "spoiled",
    [{"expires": 1.0}, {"expires": "never"}, {"how": "magic"}, {"groups": "all"}, {"name": 1}, {"digest": ""}],
)
def test_a_session_that_is_over_or_damaged_lets_nobody_in(tmp_path, spoiled):
    sessions = Sessions(tmp_path)
    session, secret = sessions.begin("ana", "link")
    assert sessions.find(secret) == session
    file = tmp_path / "sessions" / f"{session.id}.json"
    assert secret not in file.read_text() and file.stat().st_mode & 0o077 == 0
    file.write_text(json.dumps({**json.loads(file.read_text()), **spoiled}))
    assert sessions.find(secret) is None


def test_a_session_of_somebody_elses_link_is_nobodys(tmp_path):
    sign_in = SignIn(StateHome(str(tmp_path)))
    session, _ = sign_in.sessions.begin("not-the-person-of-this-server", "link")
    assert sign_in.identity_in(session) is None
    mine, _ = sign_in.sessions.begin(user_name(), "link")
    identity = sign_in.identity_in(mine)
    assert (identity.kind, identity.roles) == ("person", {"operator"})
    assert all(identity.may(action) for action in ALLOWED["operator"])


def test_an_agent_that_signs_in_stays_an_agent(tmp_path):
    made, _ = Tokens(tmp_path).add("codex", ANA)
    sign_in = SignIn(StateHome(str(tmp_path)))
    session, _ = sign_in.sessions.begin("codex", "token", subject=made.id)
    assert sign_in.identity_in(session).kind == "agent" and not sign_in.identity_in(session).may("answer")


@pytest.mark.parametrize("body", [b"", b"[]", b'{"token": 1}', b"token=haft_x", b"\xff"])
def test_something_else_than_a_token_is_refused(running, body):
    with browser(running) as client:
        answer = client.post("/sign-in/session", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422
        assert client.post("/sign-in/session", data={"token": "x"}).status_code == 422
        assert client.post("/sign-in/session", content=b" " * 5000).status_code == 413


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_a_page_of_another_site_neither_signs_in_nor_out(running, site):
    with browser(running) as client:
        assert signed_in(client, new_link(running)).status_code == 200
        for path in ("/sign-in/session", "/sign-in/out"):
            answer = client.post(path, json={"token": "x"}, headers={"Sec-Fetch-Site": site})
            assert (answer.status_code, answer.json()["code"]) == (403, "foreign-page")
        assert client.get(RUNS).status_code == 200


def test_the_page_has_no_inline_script_and_goes_nowhere_else(running):
    with browser(running) as client:
        page = client.get("/sign-in", params={"to": "/w/default/runs?tool=<b>"})
        assert page.status_code == 200 and 'src="/sign-in/sign_in.js"' in page.text
        assert "<b>" not in page.text and "/w/default/runs?tool=&lt;b&gt;" in page.text
        for elsewhere in ("//evil.example", "https://evil.example", "/\\evil.example", "/a\nb", "/sign-in?to=/"):
            assert "evil" not in client.get("/sign-in", params={"to": elsewhere}).text
        assert client.get("/sign-in/sign_in.js").headers["content-type"].startswith("text/javascript")


def test_an_operator_sees_the_sessions_and_ends_one(running):
    token = Tokens(running.home).add("rosa", ANA, kind="person", roles=["reader"])[1]
    with browser(running) as operator, browser(running) as rosa:
        signed_in(operator, new_link(running))
        signed_in(rosa, token)
        assert rosa.get("/api/v1/me").json()["roles"] == ["reader"]
        assert rosa.get("/api/v1/sessions").status_code == 403
        (session,) = [each for each in operator.get("/api/v1/sessions").json()["sessions"] if each["name"] == "rosa"]
        assert session["how"] == "token" and rosa.post(f"/api/v1/sessions/{session['id']}/end").status_code == 403
        assert operator.post(f"/api/v1/sessions/{session['id']}/end").json() == {"ended": session}
        assert rosa.get("/api/v1/me").status_code == 401
        assert operator.post(f"/api/v1/sessions/{session['id']}/end").status_code == 404


def test_an_operator_sees_what_webhooks_delivered_and_sends_it_again(running):
    log = deliveries_of(StateHome(str(running.home)))
    made = Delivery("msg_" + "0" * 24, "hook", "chat", "run.failed", '{"type": "run.failed"}', time.time())
    log.add(made)
    log.keep(made.tried(time.time(), 200, None))
    with browser(running) as operator:
        signed_in(operator, new_link(running))
        (shown,) = operator.get("/api/v1/webhooks/deliveries?state=delivered").json()["deliveries"]
        assert (shown["id"], shown["webhook"], shown["attempts"][0]["status"]) == (made.id, "chat", 200)
        assert operator.post(f"/api/v1/webhooks/deliveries/{made.id}/send").json()["state"] == "pending"
        assert operator.get("/api/v1/webhooks/deliveries?state=delivered").json() == {"deliveries": []}
        assert operator.post(f"/api/v1/webhooks/deliveries/msg_{'1' * 24}/send").status_code == 404
