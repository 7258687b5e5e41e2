"""What the command line says about calls that are answered from the cache."""

import json
import time

from haft.service.changes_checks import cache_check
from haft.storage import StateHome

from .conftest import Terminal
from .test_shapes import fits

SEARCH = ("tools", "use", "search", "--pattern", "two", "--json")


def test_an_answer_from_the_cache_is_named_in_the_outcome_the_log_and_the_run(haft):
    end = time.monotonic() + 30
    calls = [haft(*SEARCH).json]
    while not calls[-1]["cached"]:
        assert time.monotonic() < end
        calls.append(haft(*SEARCH).json)
    cached = calls[-1]
    fits("outcome", cached)
    assert cached["output"] == calls[0]["output"] == "a.txt:2:two\n"
    terminal = Terminal(haft, *SEARCH[:-1])
    terminal.until("a.txt:2:two")
    terminal.process.wait()
    shown = haft("show", cached["run"], "--json").json
    fits("run", shown)
    assert shown["cache"] == f"answered from the cache (of run {calls[-2]['run']})"
    assert "cache: not answered: no answer of an equal call is kept" in haft("show", calls[0]["run"]).out
    entries = [json.loads(line) for line in haft("audit", "export").out.splitlines()]
    assert [each.get("cached") for each in entries if each.get("run") in (calls[0]["run"], cached["run"])] == [
        None,
        True,
    ]
    assert not haft(*SEARCH, "--no-cache").json["cached"]
    check = cache_check(StateHome(str(haft.home)), str(haft.workspace), haft.env)
    assert check.detail.startswith("1 answers kept, ") and " 2 hits, " in check.detail, check


def test_tools_show_says_whose_answers_are_cached(haft):
    assert "until a file that they depend on changes" in haft("tools", "show", "search").out
    assert "not cached: to find out whether" in haft("tools", "show", "read_file").out
    assert "cached" not in haft("tools", "show", "write_file").out
    assert "if the output of the command line follows from its words" in haft("tools", "show", "shell").out
