"""What is vague and what is not. The good and the bad ones that the protocol's own page names come first."""

import pytest

from haft.builtin import builtin_tools
from haft.sources.checks.descriptions import FRESH, check_description, why_vague

GOOD = [
    "Run project tests. Use this tool instead of Bash for running tests in this workspace.",
    "Query the development PostgreSQL database. Safer than raw psql commands.",
    "Build and deploy to staging environment. Handles all necessary steps.",
    "Format Python files with the project's settings before committing.",
    "Create a pull request from the current branch. Never pushes to main.",
    "Fetch the logs of a Kubernetes pod. Read-only.",
    "Return the current weather for a city; needs an API key in WEATHER_KEY.",
    "Restart the dev server when it no longer answers.",
    "Search the company wiki. Prefer this over web search for internal questions.",
    "Send a message to a Slack channel. Asks before posting to #general.",
    "Generates TypeScript types from the OpenAPI schema, for use after changes to api.yaml.",
    "A tool that converts Markdown to PDF with pandoc. Use it for reports.",
    "Find TODO comments in the source tree. Use it before a release.",
    "Rotate the log files of the web server; refuses while a backup runs.",
    "Erzeugt einen Bericht über die Testabdeckung. Nur für dieses Projekt.",
    "Adds a to-do to the user's Things inbox, never to a project.",
    "Restart an Internet-of-Things device by its address; needs VPN.",
    "在数据库中执行只读查询，用于调试。",
    "Look up a ticket by its number. Read only.",
    "Add two integers.\nUse for exact sums of large numbers.",
    "Read /etc/hosts and show the names in it. Changes nothing.",
    "Explain what this tool does, and every other tool here, to people who have just joined. Use it when they ask.",
]
BAD = {
    "Runs tests": "2 words: too vague",
    "A utility": "only names a thing",
    "Do stuff with the database": "`stuff`",
    "Helper": "only names a thing",
    "My tool": "placeholder",
    "Misc things": "only names a thing",
    "A helper script": "only names a thing",
    "The database tool.": "only names a thing",
    "Does various tasks": "`various tasks`",
    "TODO": "`TODO`",
    "What the tool does and when to use it.": "placeholder",
    "Deploy": "1 word: too vague",
    "Git helper": "only names a thing",
    "This is a tool": "only names a thing",
    "Manage users": "2 words",
    "Database management": "only names a thing",
    "Whatever you need": "`Whatever`",
    "Process the file": "3 words",
    "Send mail to the team": "neither the use",
    "...": "0 words",
    "查询": "too short",
}


@pytest.mark.parametrize("description", GOOD)
def test_a_good_description_has_nothing_against_it(description):
    assert not list(check_description(description))


@pytest.mark.parametrize("description", BAD)
def test_a_bad_description_is_vague_for_a_reason_of_its_own(description):
    (finding,) = check_description(description)
    assert finding.code == "vague-description"
    assert BAD[description] in finding.message


@pytest.mark.parametrize("description", ["", " \n "])
def test_nothing_is_no_description(description):
    assert [finding.code for finding in check_description(description)] == ["no-description"]


def test_a_clear_one_that_does_not_say_when_gets_a_note_only():
    (finding,) = check_description("Render the architecture diagrams of this repository as SVG files")
    assert (finding.code, finding.level) == ("description-without-use", "note")


@pytest.mark.parametrize(
    "description",
    [
        "This tool checks spelling in Markdown files.",
        "The tool searches arXiv papers by title, author or abstract.",
        "This tool can draw a graph of modules.",
        "Lists files in a directory, recursively.",
        "Deploy the current branch to staging.",
        "Generate a UUID v4.",
        "Script that rotates the staging credentials.",
    ],
)
def test_a_short_one_that_says_what_it_does_is_not_vague(description):
    assert why_vague(description) is None


@pytest.mark.parametrize(
    "description", ["This tool is great", "The tool has uses.", "Things to do here", "Sort things out now"]
)
def test_a_verb_that_says_nothing_and_things_that_are_no_name_stay_vague(description):
    assert why_vague(description) is not None


def test_no_tool_of_ours_is_vague():
    assert {tool.spec.name: why_vague(tool.spec.description) for tool in builtin_tools()} == {
        tool.spec.name: None for tool in builtin_tools()
    }


@pytest.mark.parametrize("text", FRESH)
def test_the_text_of_a_template_is_no_description(text):
    """That fresh tools and skills say these is tested where they are made."""
    for written in (text, "  " + text.replace(". ", ".\n") + "\n"):
        assert [finding.code for finding in check_description(written)] == ["unchanged-template"]
