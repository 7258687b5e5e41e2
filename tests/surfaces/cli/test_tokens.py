"""`haft tokens`: what a person types to let agents and people in, and to lock them out."""

from haft.service import Sessions


def test_a_token_is_printed_once_alone_on_stdout(haft):
    added = haft("tokens", "add", "codex")
    token = added.out.removesuffix("\n")
    assert added.code == 0 and token.startswith("haft_") and "\n" not in token
    assert "cannot show it again" in added.err and token not in added.err
    listed = haft("tokens", "list")
    assert listed.out.startswith("codex") and token not in listed.out + listed.err
    assert not any(token.encode() in path.read_bytes() for path in haft.home.rglob("*") if path.is_file())


def test_a_client_without_a_token_is_told_how_to_get_one(haft):
    assert haft("tokens", "list", "--json").json == []
    assert "haft tokens add NAME" in haft("tokens", "list").err
    refused = haft("tokens", "revoke", "codex")
    assert refused.code == 2 and "`codex` has no token" in refused.err


def test_a_token_is_revoked_by_the_name_of_its_client(haft):
    haft("tokens", "add", "codex")
    assert haft("tokens", "add", "codex").code == 2
    assert haft("tokens", "revoke", "codex").out == "the token of `codex` is revoked\n"
    assert haft("tokens", "list", "--json").json == []
    assert haft("tokens", "add", "codex", "-q").err == ""


def test_a_persons_token_has_roles_an_end_and_bounds(haft):
    added = haft(
        *("tokens", "add", "ben", "--person", "--role", "caller", "--role", "approver", "--expires", "2h"),
        *("--workspace-name", "web", "--tools", "read_*", "--json"),
    ).json
    assert (added["kind"], added["roles"]) == ("person", ["caller", "approver"])
    assert (added["workspaces"], added["tools"]) == (["web"], ["read_*"])
    assert added["createdAt"] < added["expiresAt"]
    assert "good until" in haft("tokens", "list").out


def test_an_agent_gets_no_role_that_approves(haft):
    refused = haft("tokens", "add", "codex", "--role", "approver")
    assert refused.code == 2 and "could then approve its own calls" in refused.err and "--person" in refused.err
    assert haft("tokens", "add", "codex", "--role", "god").code == 2
    assert haft("tokens", "add", "codex", "--expires", "soon").code == 2
    assert haft("tokens", "list", "--json").json == []


def test_a_link_for_a_running_server_is_printed_alone(haft):
    link = haft("tokens", "link", "http://127.0.0.1:8000/").out
    assert link.startswith("http://127.0.0.1:8000/sign-in#haftlink_") and link.count("\n") == 1


def test_a_session_is_listed_and_ended(haft):
    assert "nobody is signed in" in haft("tokens", "sessions").err
    made, _ = Sessions(haft.home).begin("ana", "token", subject="x")
    assert f"{made.id}  ana  with a token" in haft("tokens", "sessions").out
    assert haft("tokens", "sessions", "--end", made.id).out == "the session of `ana` has ended\n"
    assert haft("tokens", "sessions", "--end", made.id).code == 2
