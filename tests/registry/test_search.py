import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import many_tools

from haft.contracts import Listing
from haft.registry import search

THOUSANDS = cache(many_tools.listings)


@pytest.fixture
def listings(make_tool):
    def parameters(**described):
        return {"type": "object", "properties": {name: {"description": text} for name, text in described.items()}}

    tools = [
        make_tool("read_file", description="Read a file.", schema=parameters(path="where it lies")),
        make_tool("write_file", description="Write a file.", schema=parameters(path="", content="the new text")),
        make_tool("shell", description="Run a command with bash.", schema=parameters(command="a line")),
        make_tool("sendMail", description="Deliver a message.", schema=parameters(recipient="who gets the file")),
    ]
    return [Listing(tool.spec) for tool in tools]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("read_file", ["read_file"]),
        ("file", ["read_file", "write_file"]),
        ("where is the file", ["read_file", "write_file"]),
        ("mail", ["sendMail"]),
        ("bash", ["shell"]),
        ("content", ["write_file"]),
        ("shel", ["shell"]),
        ("commnad", ["shell"]),
        ("files", ["read_file", "write_file"]),
        ("WRITE", ["write_file"]),
        ("message recipient", ["sendMail"]),
        ("nothing like it", []),
        ("", []),
        ("!!!", []),
    ],
)
def test_words_find_tools_best_first(listings, query, found):
    assert [listing.spec.name for listing in search(listings, query)] == found


def test_the_order_does_not_depend_on_the_order_of_the_table(listings):
    assert search(listings, "file path") == search(reversed(listings), "file path")


def test_a_limit_cuts_the_tail(listings):
    assert len(search(listings, "file", limit=1)) == 1


def test_what_fits_much_worse_than_the_best_is_not_shown(make_tool):
    tools = [make_tool("deploy", description="Build and deploy."), make_tool("x", description="a\nb\nNot to deploy.")]
    assert [one.spec.name for one in search([Listing(tool.spec) for tool in tools], "deploy")] == ["deploy"]


def test_a_word_that_most_tools_have_says_little(make_tool):
    tools = [make_tool(f"run_{n}", description="Run the project.") for n in range(20)]
    tools.append(make_tool("suite", description="Run the tests of the project."))
    assert search([Listing(tool.spec) for tool in tools], "run tests")[0].spec.name == "suite"


class TestThousandsOfTools:
    @pytest.fixture
    def thousands(self):
        return THOUSANDS()

    def test_the_right_tool_of_fifty_servers_comes_first(self, thousands):
        asked = many_tools.queries()
        names = {listing.spec.name for listing in thousands}
        assert len(names) == len(thousands) >= 1_900 and all(right <= names for _query, right in asked)
        best = {query: [one.spec.name for one in search(thousands, query, limit=5)] for query, _right in asked}
        first = {query for query, right in asked if not right & {*best[query][:1]}}
        five = {query for query, right in asked if not right & {*best[query]}}
        assert not five
        assert len(first) <= 3, {query: best[query] for query in first}

    def test_a_server_that_is_named_wins_over_others_with_such_a_tool(self, thousands):
        for server, name in (("gitlab", "create_issue"), ("sentry", "search_issues"), ("linear", "list_issues")):
            query = f"{name.replace('_', ' ')} {server}"
            assert search(thousands, query)[0].spec.name == f"mcp__{server}__{name}"

    def test_a_tool_that_comes_later_is_found_at_once(self, thousands, make_tool):
        assert search(thousands, "brew espresso") == []
        later = [*thousands, Listing(make_tool("brew_espresso").spec)]
        assert [one.spec.name for one in search(later, "brew espresso")] == ["brew_espresso"]
        assert search(thousands, "brew espresso") == []


@pytest.mark.parametrize(
    ("query", "name"), [("remove", "delete_page"), ("tickets", "list_ticket"), ("what is my ticket", "list_ticket")]
)
def test_other_words_for_the_same_and_plurals_match(make_tool, query, name):
    tools = [make_tool("delete_page"), make_tool("list_ticket"), make_tool("other")]
    assert [one.spec.name for one in search([Listing(tool.spec) for tool in tools], query)] == [name]


def test_words_that_no_tool_has_do_not_hide_a_tool_that_has_the_rest(make_tool):
    tools = [make_tool("get_weather"), make_tool("other")]
    assert [one.spec.name for one in search([Listing(tool.spec) for tool in tools], "weather berlin")] == [
        "get_weather"
    ]
