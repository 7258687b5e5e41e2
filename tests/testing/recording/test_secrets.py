"""No secret gets into a recording, wherever it was in the run, and every place is named."""

import base64
import html
import json
from pathlib import Path
from urllib.parse import quote_plus

import pytest

from haft.testing.reading import read_scenario_file
from haft.testing.recording.secret_finder import PLACEHOLDER, SecretFinder, is_secret_file, secrets_in

ENVIRONMENT = "correct-horse-battery"
GIVEN = "staple-of-the-caller"
ARGUMENT = "tr0ub4dor-and-three"
IN_FILE = "a-value-of-dot-env"
HEADER = "value-of-a-header-77"
SPLIT = "ghp_0123456789abcdefghijABCDEFGHIJ"
ARGV = "argv-of-a-program-12"
ALL = (ENVIRONMENT, GIVEN, ARGUMENT, IN_FILE, HEADER, SPLIT, ARGV)


def assert_no_secret(path):
    text = Path(path).read_text()
    forms = {form for each in ALL for form in (each, each[::-1], base64.b64encode(each.encode()).decode()[:-4])}
    assert not [each for each in forms if each in text]
    return text


def test_planted_secrets_are_in_no_recording(past, monkeypatch):
    monkeypatch.setenv("DEPLOY_PASSWORD", ENVIRONMENT)
    past.write(".env", f"PLAIN_NAME={IN_FILE}\n# PLAIN=not\n")
    server = {"type": "http", "url": "https://mcp.example", "headers": {"Authorization": f"Bearer {HEADER}"}}
    past.write(".mcp.json", json.dumps({"mcpServers": {"far": server}}))
    past.write("notes.txt", f"deploy with {ENVIRONMENT}\nheader {HEADER}\n")
    past.write("curl", "#!/bin/sh\nexit 0\n", 0o755)
    command = f"""
        . ./.env; echo "from the file: $PLAIN_NAME"
        ./curl --token {ARGV} -u 'me' https://user:{ARGUMENT}@host.example/
        printf '{SPLIT[:12]}'; echo between >&2; printf '{SPLIT[12:]}\\n'
        echo "given $DEPLOY_KEY" | tee given.txt; cat notes.txt
        printf %s '{ENVIRONMENT}' | base64 >encoded.txt
        echo the end
    """
    past.call("shell", {"command": command}, env={"DEPLOY_KEY": GIVEN})
    recorded = past.record(to="one.scenario.yaml", files=[".env", "notes.txt"])
    text = assert_no_secret(recorded.path)
    (scenario,) = read_scenario_file(recorded.path)
    assert f"--token {PLACEHOLDER}" in scenario.args["command"]
    assert scenario.files[".env"].content.decode() == f"PLAIN_NAME={PLACEHOLDER}\n"
    assert scenario.files["notes.txt"].content.decode() == f"deploy with {PLACEHOLDER}\nheader {PLACEHOLDER}\n"
    assert scenario.env["DEPLOY_KEY"] == PLACEHOLDER
    assert scenario.expect.files["given.txt"].content.equals == f"given {PLACEHOLDER}\n"
    for place in ("the arguments", "the file .env", "the file notes.txt", "the output", "the file encoded.txt"):
        assert any(place in note for note in recorded.notes), f"{place} is not named"
    assert all(f"# {note}" in text for note in recorded.notes)
    assert past.replay(recorded).passed


def test_a_secret_that_was_split_over_two_streams_is_masked(past):
    past.write("token.txt", "")
    command = f"printf '{SPLIT[:12]}'; sleep 0.2; echo between >&2; sleep 0.2; printf '{SPLIT[12:]}\\n'; echo end"
    past.call("shell", {"command": command.replace("'; s", "' ; s")})
    recorded = past.record(to="one.scenario.yaml")
    text = assert_no_secret(recorded.path)
    assert SPLIT[12:] not in text.partition("expect:")[2]
    assert past.replay(recorded).passed


def test_a_file_of_secrets_is_left_out_and_named(past):
    past.write("id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\nabcd\n-----END OPENSSH PRIVATE KEY-----\n")
    past.call("shell", {"command": "test -e id_rsa; echo done"})
    recorded = past.record(to="one.scenario.yaml")
    (scenario,) = read_scenario_file(recorded.path)
    assert scenario.files == {}
    assert any("the file id_rsa is left out" in note for note in recorded.notes)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("API_TOKEN=hunter22", ["hunter22"]),
        ('password: "correcthorse"', ["correcthorse"]),
        ("X-Api-Key: abcdefgh", ["abcdefgh"]),
        ("Authorization: Bearer abcdef123456", ["abcdef123456"]),
        ("run --password s3cr3t! now", ["s3cr3t!"]),
        ("tool --api-key=abcd1234", ["abcd1234"]),
        ("https://bob:pa55word@host/", ["pa55word"]),
        ("AKIAABCDEFGHIJKLMNOP", ["AKIAABCDEFGHIJKLMNOP"]),
        ("token = read_token()", []),
        ("password = prompt", []),
        ('{"key": "customer_name"}', []),
        ("sha256 3b09aeb6f5f5336beb205d7f720371bc927cd46c21922e334d47ba264acb5ba4", []),
        ("550e8400-e29b-41d4-a716-446655440000", []),
    ],
)
def test_what_looks_like_a_secret(text, found):
    assert set(secrets_in(text)) == set(found)


def test_known_values_are_also_found_in_other_encodings():
    finder = SecretFinder([ENVIRONMENT])
    for before in ("", "a", "ab"):
        encoded = base64.b64encode(f"{before}{ENVIRONMENT}:more".encode()).decode()
        assert PLACEHOLDER in finder.masked(encoded, "here")
    assert finder.masked(ENVIRONMENT.encode().hex(), "here") == PLACEHOLDER


def test_names_of_files_that_hold_secrets():
    assert [*map(is_secret_file, (".env", "a/.env.local", "key.pem", "id_ed25519", ".netrc"))] == [True] * 5
    assert [*map(is_secret_file, (".env.example", "id_rsa.pub", "main.py", "environment.txt"))] == [False] * 4


SECRET = 'tok"en\\é/with+odd <chars> & 42'
FORMS = {
    "json": json.dumps(SECRET),
    "json in json": json.dumps(json.dumps(SECRET, ensure_ascii=False)),
    "upper hexadecimal": SECRET.encode().hex().upper(),
    "form": quote_plus(SECRET),
    "lower url": quote_plus(SECRET).replace("%2B", "%2b").replace("%3C", "%3c").replace("%3E", "%3e").lower(),
    "html": html.escape(SECRET),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_known_secret_is_found_in_other_spellings(form):
    masked = SecretFinder([SECRET]).masked(f"before {FORMS[form]} after", "the output")
    assert PLACEHOLDER in masked
    assert "odd" not in masked
    assert SECRET.encode().hex().upper()[8:16] not in masked
