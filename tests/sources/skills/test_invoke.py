"""The tool `skill`, as an agent calls it."""

import asyncio

import pytest

from haft.contracts import InvalidArguments, Listing, Tool, ToolSpec
from haft.sources.skills import Activations, SkillTool


@pytest.fixture
def active(place, tmp_path):
    return Activations(str(tmp_path / "state"), str(place.workspace))


@pytest.fixture
def changes():
    return []


@pytest.fixture
def listings():
    """What the catalogue has."""
    return []


@pytest.fixture
def tool(place, active, changes, listings):
    return SkillTool(place.skills(), active, lambda: changes.append(active.anywhere()), lambda _thread: listings)


def call(tool, context, **arguments):
    return asyncio.run(tool.invoke(arguments, context))


def test_it_is_a_builtin_that_only_reads(tool):
    spec = tool.spec
    assert isinstance(tool, Tool)
    assert (spec.name, spec.kind, spec.provenance, spec.hosting) == ("skill", "builtin", "builtin", "in-process")
    assert spec.effects.readonly and not spec.effects.network
    assert list(spec.input_schema["properties"]) == ["name", "reference"] and spec.input_schema["required"] == ["name"]


def test_its_description_lists_what_can_be_used_and_nothing_else(place, tool):
    place.make(".agents/skills/deploy", description="Deploy the site. Use when asked to publish.")
    place.make(".agents/skills/broken", "nothing")
    place.make("~/.claude/skills/deploy", description="shadowed words")
    description = tool.spec.description
    assert "- deploy: Deploy the site. Use when asked to publish." in description
    assert "- haft-tool-creator: Make tools for haft" in description
    assert "broken" not in description and "shadowed words" not in description


def test_its_description_is_bounded_and_on_plain_lines(place, tool):
    for number in range(60):
        place.make(f".agents/skills/s{number:02}", description="long " * 100)
    hostile = '---\nname: aaa\ndescription: "red \\e[31m\\nand\\nlines \\u202e"\n---\n'
    place.make(".agents/skills/aaa", hostile)
    lines = tool.spec.description.split("\n")
    listed = [line for line in lines if line.startswith("- ")]
    assert len(listed) == 51 and listed[-1] == "- and 12 more"
    assert listed[0] == "- aaa: red \\x1b[31m and lines \\u202e"
    assert all(len(line) <= 210 for line in listed)


def test_its_description_and_digest_follow_what_is_found(place, active):
    skills = place.skills()
    tool = SkillTool(skills, active, lambda: None)
    first = tool.spec
    assert tool.spec is first
    place.make(".agents/skills/later")
    skills.found()
    assert "- later: " in tool.spec.description and tool.spec.digest != first.digest


def listing(name, folder, state="ready", reason=None):
    return Listing(ToolSpec(name, "amp-toolbox", "", {}, meta={"skillFolder": str(folder)}), state, reason)


def test_it_gives_the_text_activates_in_the_callers_thread_and_says_which_tools_are_ready(
    place, tool, context, active, changes, listings
):
    folder = place.make(".agents/skills/deploy")
    (folder / "mcp.json").write_text('{"db": {}}')
    listings += [
        listing("tb__publish", folder),
        listing("tb__sick", folder, "broken", "out of\norder"),
        listing("tb__foreign", "elsewhere"),
    ]
    (folder / "references").mkdir()
    (folder / "references/setup.md").write_text("the set-up")
    answer = call(tool, context, name="deploy")
    assert answer.text.startswith((folder / "SKILL.md").read_text().rstrip("\n"))
    assert "by `reference`: references/setup.md." in answer.text
    assert answer.text.endswith(
        "[These tools of this skill can be called now: `tb__publish`.]\n\n"
        "[The tool `tb__sick` of this skill cannot be called, it is broken: out of order.]\n\n"
        "[MCP servers of this skill: `db`. A server starts only after the person has trusted it.]"
    )
    assert answer.result["tools"] == ["tb__publish"] and answer.result["mcpServers"] == ["db"]
    assert answer.result["notReady"] == {"tb__sick": "broken: out of order"}
    assert active.of("T-test") == {str(folder)} and active.of("T-other") == frozenset()
    assert changes == [{str(folder)}]
    call(tool, context, name="deploy")
    assert changes == [{str(folder)}], "it was active already"


def test_it_answers_when_the_tools_are_there(place, active, context):
    place.make(".agents/skills/deploy")
    said = []

    async def changed():
        await asyncio.sleep(0)
        said.append("changed")

    call(SkillTool(place.skills(), active, changed), context, name="deploy")
    assert said == ["changed"]


def test_a_reference_is_given_alone(place, tool, context, active):
    folder = place.make(".agents/skills/deploy")
    (folder / "setup.md").write_text("the set-up\n")
    assert call(tool, context, name="deploy", reference="setup").text == "the set-up"
    assert active.of("T-test") == {str(folder)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "deplyo"}, "there is no skill called `deplyo`"),
        ({"name": "broken"}, "no front matter"),
        ({"name": "deploy", "reference": "../broken/SKILL.md"}, "leads out of the folder"),
        ({"name": "deploy", "reference": "nothing"}, "no reference `nothing`"),
        ({"name": "../deploy"}, "there is no skill"),
    ],
)
def test_what_cannot_be_given_is_an_error_that_the_agent_can_mend(place, tool, context, active, arguments, words):
    place.make(".agents/skills/deploy")
    place.make(".agents/skills/broken", "nothing")
    with pytest.raises(InvalidArguments, match=words):
        call(tool, context, **arguments)
    assert active.anywhere() == frozenset()


def test_a_name_spelled_wrongly_gets_the_right_one(place, tool, context):
    place.make(".agents/skills/deploy")
    with pytest.raises(InvalidArguments) as caught:
        call(tool, context, name="deplyo")
    assert caught.value.hint == "did you mean `deploy`?"
