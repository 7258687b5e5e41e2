"""One token for each client: shown once, stored hashed, gone at once when it is revoked."""

import json
import os
import stat

import pytest

from haft.contracts import BadUsage, NeedsPerson, Principal
from haft.service import Tokens, user_name

PERSON = Principal("ana")


@pytest.fixture
def tokens(tmp_path):
    return Tokens(tmp_path / "state")


def files_of(tmp_path):
    return sorted((tmp_path / "state/tokens").iterdir())


def test_a_token_names_its_client_and_only_its_digest_is_stored(tokens, tmp_path):
    made, token = tokens.add("codex", PERSON)
    assert tokens.find(token) == made and (made.name, made.by) == ("codex", "ana")
    (file,) = files_of(tmp_path)
    assert token not in file.read_text() and token.split("_", 2)[2] not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_no_umask_opens_the_file_to_others(tokens, tmp_path, umask):
    (tmp_path / "state").mkdir(mode=0o700)
    before = os.umask(umask)
    try:
        tokens.add("codex", PERSON)
    finally:
        os.umask(before)
    assert not stat.S_IMODE(files_of(tmp_path)[0].stat().st_mode) & 0o077


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token[:-1] + ("A" if token[-1] != "A" else "B"),
        lambda token: token + "A",
        lambda token: token[:-1],
        lambda token: token.upper(),
        lambda token: f" {token}",
        lambda token: token.replace("haft_", "haft_../"),
        lambda token: f"haft_{'0' * 16}_{token.rpartition('_')[2]}",
        lambda token: "",
        lambda token: "\udcff" * 40,
    ],
)
def test_any_other_text_is_no_token(tokens, spoil):
    _, token = tokens.add("codex", PERSON)
    assert tokens.find(spoil(token)) is None


def test_a_client_has_one_token_and_another_only_after_the_first_is_revoked(tokens):
    first, old = tokens.add("codex", PERSON)
    with pytest.raises(BadUsage, match="has a token already") as raised:
        tokens.add("codex", PERSON)
    assert "haft tokens revoke codex" in raised.value.hint
    assert tokens.revoke("codex", PERSON) == first
    assert tokens.find(old) is None and not tokens.is_valid(first) and tokens.all() == []
    second, new = tokens.add("codex", PERSON)
    assert tokens.find(new) == second and tokens.find(old) is None
    assert second.id != first.id and tokens.is_valid(second) and not tokens.is_valid(first)


def test_a_revoked_token_is_gone_for_every_process_that_looks_again(tokens, tmp_path):
    _, token = tokens.add("codex", PERSON)
    elsewhere = Tokens(tmp_path / "state")
    assert elsewhere.find(token) is not None
    tokens.revoke("codex", PERSON)
    assert elsewhere.find(token) is None


def test_an_agent_neither_makes_nor_revokes_a_token(tokens):
    agent = Principal("codex", kind="agent")
    with pytest.raises(NeedsPerson):
        tokens.add("codex", agent)
    tokens.add("codex", PERSON)
    with pytest.raises(NeedsPerson):
        tokens.revoke("codex", agent)
    assert [each.name for each in tokens.all()] == ["codex"]


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x" * 65, "a\nb", "ä"])
def test_a_name_that_could_be_misread_is_refused(tokens, name):
    with pytest.raises(BadUsage, match="is not a name"):
        tokens.add(name, PERSON)


def test_no_client_has_the_name_of_the_person(tokens):
    with pytest.raises(BadUsage, match="your own name"):
        tokens.add(user_name(), PERSON)


def test_revoking_an_unknown_client_names_the_one_that_was_meant(tokens):
    with pytest.raises(BadUsage, match="has no token") as raised:
        tokens.revoke("codex", PERSON)
    assert raised.value.hint == "nobody has a token"
    tokens.add("codex", PERSON)
    with pytest.raises(BadUsage) as raised:
        tokens.revoke("codx", PERSON)
    assert raised.value.hint == "did you mean `codex`?"


@pytest.mark.parametrize("content", ["", "[]", "{", '{"digest": null}', json.dumps({"name": "codex"}), "[" * 5000])
def test_a_damaged_file_lets_nobody_in(tokens, tmp_path, content):
    _, token = tokens.add("codex", PERSON)
    files_of(tmp_path)[0].write_text(content)
    assert tokens.find(token) is None and tokens.all() == []


def test_a_token_of_an_earlier_version_is_that_of_an_agent_that_calls(tokens, tmp_path):
    made, token = tokens.add("codex", PERSON)
    (file,) = files_of(tmp_path)
    kept = ("name", "id", "createdAt", "by", "digest")
    file.write_text(json.dumps({key: value for key, value in json.loads(file.read_text()).items() if key in kept}))
    found = tokens.find(token)
    assert found == made and (found.kind, found.roles, found.expires_at) == ("agent", {"caller"}, None)


@pytest.mark.parametrize(
    "spoiled", [{"kind": "god"}, {"roles": ["god"]}, {"roles": "operator"}, {"tools": [1]}, {"expires": "never"}]
)
def test_a_damaged_right_lets_nobody_in(tokens, tmp_path, spoiled):
    _, token = tokens.add("codex", PERSON)
    (file,) = files_of(tmp_path)
    file.write_text(json.dumps({**json.loads(file.read_text()), **spoiled}))
    assert tokens.find(token) is None and tokens.all() == []


def test_a_token_ends_when_it_is_expired(tokens, tmp_path):
    made, token = tokens.add("codex", PERSON, seconds=3600)
    assert tokens.find(token) == made and tokens.is_valid(made)
    (file,) = files_of(tmp_path)
    file.write_text(json.dumps({**json.loads(file.read_text()), "expires": 1.0}))
    assert tokens.find(token) is None and not tokens.is_valid(made)
    assert [each.name for each in tokens.all()] == ["codex"]  # Still listed, so that somebody can revoke it.


def test_it_is_noted_when_a_token_was_used(tokens, tmp_path):
    made, token = tokens.add("codex", PERSON)
    assert tokens.last_used(made) is None
    (file,) = files_of(tmp_path)
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "createdAt": "2020-01-01T00:00:00.000Z"}))
    os.utime(file, (0, 0))
    assert tokens.last_used(tokens.all()[0]) is None
    found = tokens.find(token)
    assert tokens.last_used(found) == file.stat().st_mtime > 1_600_000_000


@pytest.mark.parametrize("tools", [["a b"], ["mcp:*"], [""], ["../x"]])
def test_a_pattern_that_can_match_no_tool_is_refused(tokens, tools):
    with pytest.raises(BadUsage, match="can match no tool"):
        tokens.add("codex", PERSON, tools=tools)
