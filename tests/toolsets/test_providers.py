"""MCP servers as configuration files name them."""

import json
import os
import re
from types import SimpleNamespace

import pytest

from haft.config import load_config
from haft.contracts import BadConfig, Grants
from haft.storage import StateHome
from haft.toolsets import Host
from haft.toolsets.providers import (
    InputStore,
    configured_servers,
    provider_places,
    providers_of,
    read_server,
    read_server_file,
    server_name,
    start_trust,
)


@pytest.fixture
def place(tmp_path):
    """A workspace, the user's file, an environment, and a function that opens a host there."""
    workspace, user = tmp_path / "workspace", tmp_path / "config" / "haft" / "haft.toml"
    workspace.mkdir()
    user.parent.mkdir(parents=True)
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    home = StateHome(str(tmp_path / "state"))

    def host(passed=None):
        opened = Host(str(workspace), home, env, None, None)
        opened.configure(load_config(str(workspace), env, passed, trust_home=home.path))
        return opened

    return SimpleNamespace(workspace=workspace, user=user, env=env, home=home, host=host, tmp=tmp_path)


def only(host):
    (one,) = providers_of(host)
    return one


# Spellings


@pytest.mark.parametrize(
    ("table", "transport"),
    [
        ({"command": "x"}, "stdio"),
        ({"type": "stdio", "command": "x"}, "stdio"),
        ({"type": "local", "command": ["x", "-y"]}, "stdio"),
        ({"transport": "stdio", "command": "x"}, "stdio"),
        ({"type": "http", "url": "http://a.example/mcp"}, "http"),
        ({"type": "streamable-http", "url": "http://a.example/mcp"}, "http"),
        ({"type": "streamableHttp", "url": "http://a.example/mcp"}, "http"),
        ({"type": "remote", "url": "http://a.example/mcp"}, "http"),
        ({"type": "sse", "url": "http://a.example/mcp"}, "sse"),
        ({"url": "https://a.example/mcp"}, "http"),
        ({"url": "https://a.example/sse"}, "sse"),
        ({"httpUrl": "https://a.example/sse"}, "http"),
        ({"serverUrl": "https://a.example/mcp"}, "http"),
        ({"url": "${BASE:-https://a.example}/mcp"}, "http"),
    ],
)
def test_every_spelling_of_a_transport_is_understood(table, transport):
    assert read_server(table, is_own=False).transport == transport


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"type": "websocket", "url": "ws://x"}, "is no address of an HTTP server"),
        ({"type": "websocket", "url": "http://x"}, "has the type `websocket`, which haft does not know"),
        ({"type": 5, "url": "http://x"}, "has the type `5`"),
        ({}, "needs a `command` to start, or the `url`"),
        ({"command": "x", "url": "http://x"}, "has both `command` and `url`"),
        ({"type": "http", "command": "x"}, "has the type `http` and no `url`"),
        ({"type": "stdio", "url": "http://x"}, "has the type `stdio` and no `command`"),
        ({"command": ""}, "`command` that is not a text"),
        ({"command": []}, "empty `command`"),
        ({"command": "x 'y"}, "cannot be read: No closing quotation"),
        ({"command": "x", "args": "y"}, "`args` that is not a list of texts"),
        ({"command": "x", "args": [["y"]]}, "`args` that is not a list of texts"),
        ({"command": "x", "env": ["y"]}, "`env` that is not a table"),
        ({"command": "x", "env": {"A": {}}}, "a value for `A` that is not a text"),
        ({"command": "x", "timeout": -1}, "is no number of seconds"),
        ({"command": "x", "enabled_tools": 5}, "is not a list of texts"),
        ({"command": "x", "grant": {"network": ["*.com"]}}, "has a `grant` that cannot be used: `*.com`"),
        ({"command": "x", "grant": {"network": ["*.co.uk"]}}, "names below `co.uk` belong to many owners"),
        ({"command": "x", "grant": {"network": ["a b"]}}, "`a b` is no host"),
        ({"command": "x", "grant": {"writing": ["."]}}, "there is no grant `writing`"),
        ({"url": "http://x", "headers": {"a b": "c"}}, "which HTTP does not allow"),
        ({"url": "http://x", "headers": {"a": "b\nc: d"}}, "line break in the header `a`"),
        ({"url": "http://x y"}, "blanks"),
        ({"url": "http://x", "headersHelper": "make-headers"}, "has `headersHelper`, which haft does not use"),
        ([], "is not a table"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_a_sentence(table, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        read_server(table, is_own=False)


def test_unknown_keys_are_refused_in_haft_s_own_files_and_ignored_in_others():
    with pytest.raises(ValueError, match="has no key `includ`; did you mean `include`\\?"):
        read_server({"command": "x", "includ": ["a"]}, is_own=True)
    assert read_server({"command": "x", "gallery": True}, is_own=False).command == "x"


def test_programs_are_read_as_a_list_or_as_one_line():
    assert read_server({"command": ["npx", "-y", "a"], "args": ["b"]}, is_own=False).args == ("-y", "a", "b")
    one = read_server({"command": "npx -y 'a b'"}, is_own=True)
    assert (one.command, one.args) == ("npx", ("-y", "a b"))
    zed = read_server({"command": {"path": "x", "args": ["y"]}}, is_own=False)
    assert (zed.command, zed.args) == ("x", ("y",))


def test_the_words_of_other_programs_for_variables_headers_and_deadlines_are_understood():
    codex = read_server(
        {
            "url": "https://a.example",
            "http_headers": {"X": "1"},
            "env_http_headers": {"Y": "VAR_Y"},
            "bearer_token_env_var": "TOKEN",
            "enabled_tools": ["a"],
            "disabled_tools": ["b"],
            "tool_timeout_sec": 7,
        },
        is_own=False,
    )
    assert codex.headers == {"X": "1", "Y": "${VAR_Y}", "Authorization": "Bearer ${TOKEN}"}
    assert (codex.include, codex.exclude, codex.timeout) == (("a",), ("b",), 7)
    assert read_server({"command": "x", "env_vars": ["CI"]}, is_own=False).grant == {"env": ["CI"]}
    assert read_server({"command": "x", "environment": {"A": 1, "B": True, "C": None}}, is_own=False).env == {
        "A": "1",
        "B": "true",
    }
    assert read_server({"command": "x", "timeout": 60000}, is_own=False).timeout == 60, "opencode writes milliseconds"
    assert read_server({"command": "x", "timeout": 60}, is_own=False).timeout == 60, "Cline writes seconds"
    assert read_server({"command": "x", "timeout": 3600}, is_own=True).timeout == 3600
    assert read_server({"command": "x", "enabled": False}, is_own=False).is_disabled
    assert read_server({"command": "x", "disabled": True}, is_own=False).is_disabled
    oauth = read_server({"url": "http://x", "oauth": {"clientId": "i", "scopes": ["a", "b"]}}, is_own=False).oauth
    assert oauth == {"client_id": "i", "scope": "a b"}


def test_a_server_written_as_a_table_of_haft_means_the_same_server():
    written = read_server(
        {
            "command": "x",
            "args": ["y"],
            "env": {"A": "${B}"},
            "cwd": "c",
            "grant": {"write": ["."]},
            "include": ["a*"],
            "timeout": 5,
            "timeouts": {"t": 9},
            "trust_annotations": True,
            "enabled": False,
            "inputs": [{"id": "k"}],
        },
        is_own=True,
    )
    assert read_server(written.table(), is_own=True) == written


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("github", "github"),
        ("my__server", "my_server"),
        ("My Server (1)", "My_Server_1"),
        ("io.github.a/b", "io_github_a_b"),
        ("_x_", "x"),
    ],
)
def test_names_have_no_double_underscore_and_no_strange_characters(written, name):
    assert server_name(written) == name


def test_names_that_are_too_long_or_have_no_letter_stay_distinct():
    one, other = server_name("a" * 100), server_name("a" * 101)
    assert one != other and len(one) <= 40 and len(other) <= 40
    assert server_name("日本") != server_name("本日") and server_name("日本").isascii()


# Files of other programs


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".mcp.json", '{"mcpServers": {"a": {"command": "x"}}}'),
        ("settings.json", '{"amp.mcpServers": {"a": {"command": "x"}}, "amp.other": 1}'),
        ("mcp.json", '{"servers": {"a": {"command": "x"}}, // a comment\n "inputs": [{"id": "k"}],}'),
        ("settings.json", '{"mcp": {"servers": {"a": {"command": "x"}}}}'),
        ("opencode.json", '{"mcp": {"a": {"type": "local", "command": ["x"]}}}'),
        ("config.toml", '[mcp_servers.a]\ncommand = "x"\n'),
        ("settings.json", '{"context_servers": {"a": {"command": {"path": "x"}}}}'),
        ("haft.toml", '[providers.a]\ncommand = "x"\n'),
        ("seed.json", '{"external": {"toolProviders": {"a": {"type": "stdio", "command": "x"}}}}'),
        ("bare.json", '{"a": {"command": "x"}}'),
        ("bom.json", '\ufeff{"a": {"command": "x"}}'),
    ],
)
def test_servers_are_found_in_the_files_of_other_programs(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    found = read_server_file(str(path))
    assert {each: read_server(table, is_own=False).command for each, table in found.servers.items()} == {"a": "x"}


def test_the_servers_of_one_project_in_claude_code_s_file_are_found(tmp_path):
    path = tmp_path / ".claude.json"
    path.write_text(
        json.dumps(
            {
                "mcpServers": {"a": {"command": "x"}},
                "projects": {"/here": {"mcpServers": {"b": {"command": "y"}}}, "/there": {"mcpServers": {"c": {}}}},
            }
        )
    )
    assert list(read_server_file(str(path), "/here").servers) == ["a", "b"]


def test_placeholders_of_opencode_and_gemini_become_haft_s(tmp_path):
    opencode = tmp_path / "opencode.json"
    opencode.write_text('{"mcp": {"a": {"type": "remote", "url": "http://x", "headers": {"K": "Bearer {env:T}"}}}}')
    assert read_server_file(str(opencode)).servers["a"]["headers"] == {"K": "Bearer ${env:T}"}
    gemini = tmp_path / ".gemini" / "settings.json"
    gemini.parent.mkdir()
    gemini.write_text('{"mcpServers": {"a": {"command": "x", "env": {"K": "$T", "L": "${U}"}}}}')
    assert read_server_file(str(gemini)).servers["a"]["env"] == {"K": "${T}", "L": "${U}"}


@pytest.mark.parametrize("text", ["{}", "[]", '{"mcpServers": {}}', "{", "\0", "[" * 100_000])
def test_a_file_without_servers_is_refused(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(BadConfig):
        read_server_file(str(path))


# Places


def test_servers_come_from_the_program_the_user_the_workspace_and_skills(place):
    place.user.write_text('[providers.mine]\ncommand = "a"\n')
    (place.workspace / "haft.toml").write_text('[providers.theirs]\ncommand = "b"\n')
    (place.workspace / ".mcp.json").write_text('{"mcpServers": {"project": {"command": "c"}}}')
    skill = place.workspace / ".agents" / "skills" / "helper"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: helper\ndescription: d\n---\n")
    (skill / "mcp.json").write_text('{"helping": {"command": "./serve"}}')
    host = place.host({"providers": {"passed": {"url": "http://x.example"}}})
    found = providers_of(host)
    assert [(one.name, one.provenance) for one in found] == [
        ("passed", "user"),
        ("mine", "user"),
        ("theirs", "workspace"),
        ("project", "workspace"),
        ("helping", "workspace"),
    ]
    assert all(one.problem is None for one in found)
    assert found[-1].skill == ("helper", str(skill)) and found[-1].command == str(skill / "serve")
    assert {str(place.workspace / ".mcp.json"), str(skill / "mcp.json")} <= set(provider_places(host))


def test_a_wrong_server_never_disturbs_another(place):
    place.user.write_text(
        'providers.text = 5\n[providers.good]\ncommand = "a"\n[providers.bad]\ntype = "carrier-pigeon"\ncommand = "a"\n'
        '[providers.grant]\ncommand = "a"\ngrant = {network = ["*.com"]}\n[providers.unset]\ncommand = "${NOT_SET}"\n'
    )
    (place.workspace / ".mcp.json").write_text("{broken")
    found = {one.name: one.problem for one in providers_of(place.host())}
    assert found.pop("good") is None
    assert "has the type `carrier-pigeon`, which haft does not know" in found.pop("bad")
    assert "the server `grant` in" in found["grant"] and "`*.com`" in found.pop("grant")
    assert "needs the environment variable `NOT_SET`, which is not set" in found.pop("unset")
    assert "is not a table" in found.pop("text")
    assert ".mcp.json cannot be understood" in found.pop("mcp_json") and not found


def test_a_name_that_is_taken_displaces_nobody_and_is_reported(place):
    place.user.write_text('[providers.a]\ncommand = "mine"\n')
    (place.workspace / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "theirs"}, "a_": {"command": "t"}}}')
    first, second, third = providers_of(place.host())
    assert (first.name, first.command, first.problem) == ("a", "mine", None)
    assert second.name == "a-2" and f"{place.user} already names a server `a`" in second.problem
    assert third.name == "a-3" and third.problem is not None


def test_the_same_server_in_two_files_is_one_server(place):
    place.user.write_text('[providers.a]\ncommand = "x"\n')
    (place.workspace / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    assert only(place.host()).provenance == "user"


def test_a_server_that_its_file_turns_off_is_no_provider(place):
    place.user.write_text('[providers.a]\ncommand = "x"\nenabled = false\n')
    assert providers_of(place.host()) == [] and configured_servers(place.host())[0].is_disabled


def test_a_host_without_configuration_has_the_servers_of_the_workspace(place):
    (place.workspace / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    assert only(Host(str(place.workspace), place.home, place.env, None, None)).name == "a"


def test_the_servers_of_an_open_host_follow_the_files(place):
    host = place.host({"providers": {"passed": {"command": "x"}}})

    def names():
        return [one.name for one in providers_of(host)]

    assert names() == ["passed"]
    place.user.write_text('[providers.mine]\ncommand = "a"\n')
    (place.workspace / ".mcp.json").write_text('{"mcpServers": {"project": {"command": "c"}}}')
    assert names() == ["passed", "mine", "project"]
    place.user.write_text("[providers.mine\n")
    assert names() == ["passed", "mine", "project"], "somebody is editing the file"
    place.user.write_text('[providers.other]\ncommand = "a"\n[limits]\nmax_seconds = 1\n')
    (place.workspace / ".mcp.json").unlink()
    assert names() == ["passed", "other"] and host.config.limits.max_seconds == 120


NASTY = [
    5,
    -1,
    1e400,
    True,
    None,
    "",
    "\0",
    "\ud800",
    "\u202e",
    "x" * 10_000,
    [],
    [[]],
    [5, None],
    {},
    {"": 5},
    {"a": {}},
]
KEYS = (
    *("type", "command", "args", "env", "cwd", "url", "httpUrl", "headers", "grant", "include", "exclude", "timeout"),
    *("timeouts", "inputs", "oauth", "enabled", "disabled", "env_vars", "bearer_token_env_var", "env_http_headers"),
)


def test_no_value_of_any_key_disturbs_another_server(place):
    servers = {
        f"{kind}-{key}-{number}": {**base, key: value}
        for kind, base in (("local", {"command": "x"}), ("remote", {"url": "http://a.example/mcp"}))
        for key in KEYS
        for number, value in enumerate(NASTY)
    }
    names = list(servers)
    for start in range(0, len(names), 150):
        part = {name: servers[name] for name in names[start : start + 150]}
        (place.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {**part, "good": {"command": "x"}}}))
        found = configured_servers(place.host())
        assert len(found) == len(part) + 1 and found[-1].provider.name == "good" and found[-1].provider.problem is None
        problems = [one.provider.problem for one in found if one.provider.problem is not None]
        assert all(each.isprintable() and len(each) < 1_000 for each in problems)


def test_settings_of_a_server_arrive(place):
    place.user.write_text(
        '[providers.a]\ncommand = "x"\ncwd = "~/there"\ninclude = ["get_*"]\nexclude = ["get_x"]\ntimeout = 5\n'
        'trust_annotations = true\nenv = {A = "b"}\n'
        '[providers.a.timeouts]\nslow = 90\n[providers.a.grant]\nnetwork = ["a.example"]\nwrite = ["."]\nenv = ["CI"]\n'
    )
    one = only(place.host())
    assert one.cwd == os.path.expanduser("~/there") and one.include == ("get_*",) and one.exclude == ("get_x",)
    assert one.timeout == 5 and one.timeouts == {"slow": 90} and one.env == {"A": "b"} and one.trusts_annotations
    assert one.grants == Grants(network=("a.example",), write=(".",), env=("CI",))


# Placeholders


def test_placeholders_are_filled_and_secrets_known(place):
    place.env |= {"TOKEN": "the-token-itself", "WORD": "the-word-itself", "EMPTY": ""}
    (place.workspace / ".mcp.json").write_text(
        json.dumps(
            {
                "mcpServers": {
                    "a": {
                        "command": "${workspaceFolder}/x",
                        "args": ["${env:WORD}", "${NOT_SET:-the default}", "${EMPTY:-e}", "--api-key", "literal-key"],
                        "env": {"API_TOKEN": "${TOKEN}", "PASSWORD": "Basic literal-password"},
                    },
                    "b": {
                        "url": "http://x.example/?key=the-key-in-url",
                        "headers": {"Authorization": "Bearer ${env:WORD}"},
                    },
                }
            }
        )
    )
    a, b = providers_of(place.host())
    assert a.command == f"{place.workspace}/x"
    assert a.args == ("the-word-itself", "the default", "e", "--api-key", "literal-key")
    assert a.env == {"API_TOKEN": "the-token-itself", "PASSWORD": "Basic literal-password"}
    assert a.secrets.values == {"the-token-itself", "literal-key", "literal-password", "Basic literal-password"}
    assert b.headers == {"Authorization": "Bearer the-word-itself"}
    assert b.secrets.values == {"the-word-itself", "Bearer the-word-itself", "the-key-in-url"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("${command:pick}", "contains `${command:pick}`, which haft does not know"),
        ("${A:-${B}}", "contains a placeholder that haft cannot read"),
        ("${A", "contains a placeholder that haft cannot read"),
    ],
)
def test_a_placeholder_that_haft_does_not_know_is_a_problem(place, text, says):
    place.user.write_text(f'[providers.a]\ncommand = "{text}"\n')
    assert says in only(place.host()).problem


def test_the_value_of_a_variable_is_not_searched_for_placeholders(place):
    place.env |= {"A": "${B}", "B": "secret"}
    place.user.write_text('[providers.a]\ncommand = "x"\nargs = ["${A}"]\n')
    assert only(place.host()).args == ("${B}",)


def test_an_input_is_needed_until_a_person_gave_it_and_then_is_a_secret_of_this_file_alone(place):
    server = {"command": "x", "env": {"K": "${input:key}"}}
    declared = [{"type": "promptString", "id": "key", "description": "Your key", "password": True}]
    file = place.workspace / ".mcp.json"
    file.write_text(json.dumps({"servers": {"a": server}, "inputs": declared}))
    place.user.write_text('[providers.b]\ncommand = "x"\nargs = ["${input:key}"]\n')
    by_name = {one.provider.name: one for one in configured_servers(place.host())}
    assert "needs the input `key`: `haft providers trust a` asks for it" in by_name["a"].provider.problem
    (missing,) = by_name["a"].missing_inputs
    assert (missing.name, missing.description) == ("key", "Your key")

    InputStore(place.home.path).keep(str(file), "key", "the-value-given")
    by_name = {one.name: one for one in providers_of(place.host())}
    assert by_name["a"].env == {"K": "the-value-given"} and by_name["a"].problem is None
    assert by_name["a"].secrets.values == {"the-value-given"}
    assert by_name["b"].problem is not None, "the value was given for another file"
    kept = place.tmp / "state" / "providers" / "inputs.json"
    assert kept.stat().st_mode & 0o777 == 0o600 and kept.parent.stat().st_mode & 0o777 == 0o700
    InputStore(place.home.path).forget(str(file), ["key"])
    assert providers_of(place.host())[-1].problem is not None


# Trust in the start

AT_A = {"url": "http://a.example/mcp"}


def trusted(host, provider, **how):
    start_trust(host).trust(provider, {}, "me", by_person=True, annotations=False, **how)


def test_a_server_of_the_workspace_starts_only_after_a_person_trusted_it(place):
    (place.workspace / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x", "args": ["1"]}}}')
    host = place.host()
    why = start_trust(host).why_not(only(host))
    assert (
        why.startswith("new, or no longer trusted: the workspace's .mcp.json names it")
        and "`haft providers trust a`" in why
    )
    trusted(host, only(host))
    assert start_trust(host).why_not(only(host)) is None
    (place.workspace / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x", "args": ["2"]}}}')
    assert "changed since you trusted it" in start_trust(host).why_not(only(place.host()))


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ({"env": {"A": "1"}}, {"env": {"A": "2"}}, False),
        ({"env": {"A": "${X}"}}, {"env": {"A": "${Y}"}}, False),
        ({"cwd": "a"}, {"cwd": "b"}, False),
        ({}, {"grant": {"network": True}}, False),
        ({"command": "x"}, {"command": "y"}, False),
        ({"args": ["1"]}, {"args": ["2"]}, False),
        (AT_A, {"url": "http://b.example/mcp"}, False),
        (AT_A, {**AT_A, "type": "sse"}, False),
        (AT_A, {**AT_A, "headers": {"A": "1"}}, False),
        ({**AT_A, "headers": {"A": "${X}"}}, {**AT_A, "headers": {"A": "${Y}"}}, False),
        (AT_A, {**AT_A, "oauth": {"scope": "write"}}, False),
        ({"include": ["a"]}, {"include": ["b"]}, True),
        ({"timeout": 5}, {"timeout": 6}, True),
    ],
)
def test_trust_is_bound_to_what_is_written(place, before, after, is_same):
    place.env |= {"X": "1", "Y": "1"}
    file = place.workspace / ".mcp.json"
    program = {} if "url" in before else {"command": "x"}
    file.write_text(json.dumps({"mcpServers": {"a": {**program, **before}}}))
    host = place.host()
    trusted(host, only(host))
    assert start_trust(host).why_not(only(host)) is None
    file.write_text(json.dumps({"mcpServers": {"a": {**program, **after}}}))
    assert (start_trust(host).why_not(only(place.host())) is None) == is_same


def test_a_renewed_secret_asks_nobody(place):
    place.env |= {"TOKEN": "old-token"}
    (place.workspace / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x", "env": {"T": "${TOKEN}"}}}}')
    host = place.host()
    trusted(host, only(host))
    place.env |= {"TOKEN": "new-token"}
    again = only(place.host())
    assert again.env == {"T": "new-token"} and start_trust(host).why_not(again) is None


def test_changed_bytes_of_a_named_file_or_of_what_it_loads_ask_again(place):
    server, module = place.workspace / "server.py", place.workspace / "other.py"
    server.write_text("import other\n")
    module.write_text("x = 1\n")
    (place.workspace / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "python3", "args": ["server.py"]}}}')
    host = place.host()
    assert only(host).files == (str(server),)
    trusted(host, only(host))
    assert start_trust(host).why_not(only(host)) is None
    module.write_text("x = 2\n")
    assert f"{module} changed since you trusted it" in start_trust(host).why_not(only(host))
    module.write_text("x = 1\n")
    assert start_trust(host).why_not(only(host)) is None
    server.unlink()
    assert f"{server} changed" in start_trust(host).why_not(only(host))


def test_a_server_of_the_user_starts_at_once_and_its_changed_file_asks(place):
    server = place.tmp / "server.py"
    server.write_text("1\n")
    place.user.write_text(f'[providers.a]\ncommand = "python3"\nargs = ["{server}"]\n')
    host = place.host()
    assert start_trust(host).why_not(only(host)) is None
    server.write_text("2\n")
    assert f"{server} changed since it first started" in start_trust(host).why_not(only(host))
    trusted(host, only(host))
    assert start_trust(host).why_not(only(host)) is None


def test_a_server_of_the_user_that_runs_a_file_of_the_workspace_needs_a_person(place):
    (place.workspace / "server.py").write_text("1\n")
    place.user.write_text('[providers.a]\ncommand = "python3"\nargs = ["./server.py"]\n')
    host = place.host()
    assert "which is part of this workspace" in start_trust(host).why_not(only(host))
    trusted(host, only(host))
    assert start_trust(host).why_not(only(host)) is None


def test_trust_in_one_workspace_is_none_in_another(place, tmp_path):
    text = '{"mcpServers": {"a": {"command": "x"}}}'
    (place.workspace / ".mcp.json").write_text(text)
    other = tmp_path / "other"
    other.mkdir()
    (other / ".mcp.json").write_text(text)
    host = place.host()
    trusted(host, only(host))
    elsewhere = Host(str(other), place.home, place.env, None, None)
    assert start_trust(elsewhere).why_not(only(elsewhere)) is not None


def test_a_server_of_a_skill_needs_a_person_wherever_the_skill_lies(place):
    skill = place.tmp / ".config" / "agents" / "skills" / "helper"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: helper\ndescription: d\n---\n")
    (skill / "mcp.json").write_text('{"a": {"command": "x"}}')
    host = place.host()
    one = only(host)
    assert one.provenance == "user" and "the skill `helper` names it" in start_trust(host).why_not(one)


def test_a_workspace_cannot_say_that_its_annotations_are_believed(place):
    (place.workspace / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x", "trust_annotations": true}}}')
    host = place.host()
    assert not only(host).trusts_annotations
    start_trust(host).trust(only(host), {}, "me", by_person=True, annotations=True)
    assert only(place.host()).trusts_annotations


@pytest.mark.parametrize(
    ("command", "args", "files"),
    [
        ("./run.sh", [], ["run.sh"]),
        ("node", ["build/index.js", "--config=conf.json"], ["build/index.js", "conf.json"]),
        ("uv", ["--directory", "sub", "run", "server.py"], ["sub/pyproject.toml", "sub/server.py"]),
        ("python3", ["-m", "pkg"], ["pkg/__init__.py", "pkg/__main__.py"]),
        ("node", ["app"], ["app/package.json", "app/main.js"]),
        ("npx", ["-y", "@scope/server", "data"], []),
        ("python3", ["-mpkg"], ["pkg/__init__.py", "pkg/__main__.py"]),
        ("node", ["-r./conf.json", "app"], ["conf.json", "app/package.json", "app/main.js"]),
        ("sh", ["-c", "cd sub && exec python3 server.py; true"], ["sub/server.py"]),
        ("npm", ["--prefix", "app", "start"], ["app/package.json", "app/main.js"]),
    ],
)
def test_the_files_that_a_command_names_are_found(place, command, args, files):
    for name in (
        *("run.sh", "build/index.js", "conf.json", "sub/server.py", "sub/pyproject.toml"),
        *("pkg/__init__.py", "pkg/__main__.py", "app/main.js", "data/file"),
    ):
        path = place.workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    (place.workspace / "app" / "package.json").write_text('{"main": "main.js", "scripts": {"start": "node main.js"}}')
    (place.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": command, "args": args}}}))
    assert set(only(place.host()).files) == {str(place.workspace / name) for name in files}


@pytest.mark.parametrize(
    ("command", "env", "files"),
    [
        ("node", {"NODE_OPTIONS": "--require ./hook.js"}, ["hook.js"]),
        ("x", {"LD_PRELOAD": "lib/a.so:lib/b.so"}, ["lib/a.so", "lib/b.so"]),
        ("tool", {"PATH": "bin:/usr/bin"}, ["bin/tool"]),
        ("python3", {"PYTHONPATH": "lib"}, ["lib/sitecustomize.py"]),
    ],
)
def test_trust_covers_the_files_that_the_server_s_variables_name(place, command, env, files):
    for name in ("hook.js", "lib/a.so", "lib/b.so", "bin/tool", "lib/sitecustomize.py"):
        path = place.workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
        path.chmod(0o755)
    (place.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": command, "env": env}}}))
    host = place.host()
    assert set(only(host).files) == {str(place.workspace / name) for name in files}
    trusted(host, only(host))
    (place.workspace / files[0]).write_text("changed")
    assert f"{files[0]} changed since you trusted it" in start_trust(host).why_not(only(host))


def test_a_link_of_the_workspace_opens_no_file_to_a_server_of_the_user(place):
    (place.tmp / "secret").write_text("x")
    (place.workspace / "serve").symlink_to(place.tmp / "secret")
    place.user.write_text('[providers.a]\ncommand = "x"\nargs = ["serve"]\n')
    host = place.host()
    assert "which is part of this workspace" in start_trust(host).why_not(only(host))


def test_a_directory_to_start_in_that_is_a_link_out_of_the_workspace_is_a_problem(place):
    (place.tmp / ".aws").mkdir()
    (place.workspace / "docs").symlink_to(place.tmp / ".aws")
    (place.workspace / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x", "cwd": "docs"}}}')
    assert "a link that leads out of the workspace" in only(place.host()).problem


def test_a_server_that_names_a_file_of_haft_s_own_state_is_refused(place):
    login = place.tmp / "state" / "logins" / "a.json"
    login.parent.mkdir(parents=True)
    login.write_text("token")
    (place.workspace / "config.json").symlink_to(login)
    table = {"command": "x", "args": ["config.json"]}
    (place.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": table}}))
    assert "no server may read the files that haft keeps for itself" in only(place.host()).problem
