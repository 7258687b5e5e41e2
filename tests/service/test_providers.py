"""The MCP servers of a workspace and its user, for programs and surfaces."""

import asyncio
import tomllib

import pytest

from haft.config.toml_tables import table_text, with_table, without_table
from haft.contracts import BadUsage, NeedsPerson, Principal
from haft.service import ProvidersFacade, ToolService, TrustFacade
from haft.storage import StateHome

AGENT, PERSON = Principal("codex", kind="agent"), Principal("me")
FILE = """# mine
[limits]
max_seconds = 3

# about a
[providers.a]
command = "x" # starts it
[providers.a.env]
K = "v"

# about b
[providers."b c"]
command = "y"
"""


@pytest.fixture
def facade(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "workspace").mkdir()
    return lambda: ProvidersFacade(str(tmp_path / "workspace"), StateHome(str(tmp_path / "state")))


def test_an_agent_adds_trusts_and_removes_no_server(facade, tmp_path):
    (tmp_path / "workspace" / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    here = facade()
    with pytest.raises(NeedsPerson):
        here.add("b", here.written("b", {"command": "x"}), AGENT, in_workspace=False, replaces=False)
    with pytest.raises(NeedsPerson):
        here.trust(here.proposal("a"), AGENT)
    with pytest.raises(NeedsPerson):
        here.keep_input(here.named("a"), "key", "value", AGENT)
    with pytest.raises(NeedsPerson):
        here.remove("a", AGENT)
    assert here.proposal("a").why_not is not None and not (tmp_path / "config").exists()


def test_what_a_person_adds_may_start_also_if_it_runs_a_file_of_the_workspace(facade, tmp_path):
    (tmp_path / "workspace" / "server.py").write_text("1\n")
    here = facade()
    server = here.written("a", {"command": "python3", "args": ["server.py"]})
    here.add("a", server, PERSON, in_workspace=False, replaces=False)
    assert facade().proposal("a").why_not is None
    (tmp_path / "workspace" / "server.py").write_text("2\n")
    assert facade().proposal("a").changed_files == [str(tmp_path / "workspace" / "server.py")]


def test_a_server_in_the_workspace_s_file_keeps_what_else_is_there_and_needs_no_second_question(facade, tmp_path):
    file = tmp_path / "workspace" / "haft.toml"
    file.write_text("# ours\n[limits]\nmax_seconds = 5\n")
    here = facade()
    here.add("a", here.written("a", {"command": "x"}), PERSON, in_workspace=True, replaces=False)
    assert file.read_text().startswith("# ours\n[limits]\nmax_seconds = 5\n")
    assert facade().named("a").provider.provenance == "workspace" and facade().proposal("a").why_not is None
    facade().remove("a", PERSON)
    assert file.read_text() == "# ours\n[limits]\nmax_seconds = 5\n"


def test_what_was_trusted_and_typed_in_for_a_server_is_forgotten_with_it(facade, tmp_path):
    here = facade()
    for name, wanted in (("a", "${input:mine} ${input:shared}"), ("b", "${input:shared}")):
        here.add(
            name, here.written(name, {"command": "x", "env": {"K": wanted}}), PERSON, in_workspace=True, replaces=False
        )
    for name in ("mine", "shared"):
        facade().keep_input(facade().named("a"), name, f"the value of {name}", PERSON)
    facade().trust(facade().proposal("a"), PERSON)
    facade().trust(facade().proposal("b"), PERSON)
    kept = tmp_path / "state" / "providers"
    assert len([*(kept / "trust").iterdir()]) == 2 and "the value of mine" in (kept / "inputs.json").read_text()
    file = tmp_path / "workspace" / "haft.toml"
    text = file.read_text()
    facade().remove("a", PERSON)
    assert len([*(kept / "trust").iterdir()]) == 1
    assert "the value of mine" not in (kept / "inputs.json").read_text()
    assert facade().named("b").missing_inputs == () and facade().proposal("b").why_not is None
    file.write_text(text)
    again = facade().proposal("a")
    assert again.why_not is not None
    assert [each.name for each in again.inputs] == ["mine"]


def test_a_name_of_the_user_s_own_server_is_not_given_to_one_of_the_workspace(facade):
    here = facade()
    here.add("a", here.written("a", {"command": "x"}), PERSON, in_workspace=False, replaces=False)
    with pytest.raises(BadUsage, match="already names a server `a`"):
        facade().add("a", here.written("a", {"command": "y"}), PERSON, in_workspace=True, replaces=False)


def test_annotations_are_believed_only_if_the_person_says_so_and_until_the_server_changes(facade, tmp_path):
    file = tmp_path / "workspace" / ".mcp.json"
    file.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    here = facade()
    here.trust(here.proposal("a"), PERSON)
    assert not facade().named("a").provider.trusts_annotations
    here.trust(here.proposal("a"), PERSON, annotations=True)
    assert facade().named("a").provider.trusts_annotations
    here.trust(facade().proposal("a"), PERSON)
    assert facade().named("a").provider.trusts_annotations, "trusting the start again leaves it as it was"
    file.write_text('{"mcpServers": {"a": {"command": "y"}}}')
    assert not facade().named("a").provider.trusts_annotations


def test_a_table_is_added_and_removed_and_everything_else_stays():
    assert with_table(FILE, ("providers", "z"), {"command": "n", "args": ["1"]}) == (
        FILE + '\n[providers.z]\ncommand = "n"\nargs = ["1"]\n'
    )
    assert without_table(FILE, ("providers", "a")) == FILE.replace(
        '[providers.a]\ncommand = "x" # starts it\n[providers.a.env]\nK = "v"\n\n', "\n"
    )
    assert without_table(FILE, ("providers", "b c")).endswith('K = "v"\n\n# about b\n')
    assert without_table(with_table("", ("providers", "z"), {"a": 1}), ("providers", "z")) == ""
    windows = FILE.replace("\n", "\r\n")
    assert with_table(windows, ("providers", "z"), {"a": 1}).endswith("[providers.z]\r\na = 1\r\n")


@pytest.mark.parametrize(
    "text", ['providers = {a = {command = "x"}}\n', 'providers.a.command = "x"\n', '[providers]\na = {command = "x"}\n']
)
def test_a_table_that_has_no_header_of_its_own_is_not_removed(text):
    with pytest.raises(BadUsage, match="cannot be changed line by line"):
        without_table(text, ("providers", "a"))


def test_texts_in_a_table_are_written_so_that_they_mean_the_same():
    values = {"args": ['"', "\\", "\n", "\u202e", "${X}"], "env": {"a b": "c"}, "timeout": 1.5, "on": True}
    assert tomllib.loads(table_text(("providers", "x.y"), values)) == {"providers": {"x.y": values}}


def test_a_host_without_servers_has_no_resources_and_no_prompts(facade, tmp_path):
    async def ask():
        async with ToolService.open(tmp_path / "workspace", home=tmp_path / "state") as service:
            assert service.providers.names() == []
            assert await service.providers.resources() == await service.providers.prompts() == []
            with pytest.raises(BadUsage, match="there is no MCP server `x`"):
                await service.providers.restart("x")

    asyncio.run(ask())


def test_trust_covers_the_files_as_they_were_shown_not_as_they_are_when_the_person_answers(facade, tmp_path):
    server = tmp_path / "workspace" / "server.py"
    server.write_text("good\n")
    (tmp_path / "workspace" / ".mcp.json").write_text(
        '{"mcpServers": {"a": {"command": "python3", "args": ["server.py"]}}}'
    )
    here = facade()
    shown = here.proposal("a")
    server.write_text("evil\n")
    here.trust(shown, PERSON)
    assert "changed since you trusted it" in facade().proposal("a").why_not


def test_a_file_that_changes_while_it_is_trusted_lets_no_server_start(facade, tmp_path):
    file = tmp_path / "workspace" / "haft.toml"
    file.write_text('[providers.a]\ncommand = "good"\n')
    trust = TrustFacade(str(tmp_path / "workspace"), StateHome(str(tmp_path / "state")))
    seen = trust.look()
    file.write_text('[providers.a]\ncommand = "evil"\n')
    trust.trust(seen, PERSON)
    assert facade().proposal("a").why_not is not None


def test_a_server_that_is_added_while_a_service_is_open_is_there_and_is_gone_when_it_is_removed(facade, tmp_path):
    async def ask():
        async with ToolService.open(tmp_path / "workspace", home=tmp_path / "state") as service:
            here = facade()
            here.add("late", here.written("late", {"command": "x"}), PERSON, in_workspace=False, replaces=False)
            async with asyncio.timeout(60):
                while not any(one.spec.name == "mcp__late" for one in service.tools(all=True)):
                    await service.look_again("mcp__late")
            facade().remove("late", PERSON)
            async with asyncio.timeout(60):
                while any(one.spec.name == "mcp__late" for one in service.tools(all=True)):
                    await service.look_again("mcp__late")

    asyncio.run(ask())
