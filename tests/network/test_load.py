"""Large, many, slow and cut-off connections of real calls."""

import sys

import pytest
from checks import cases

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox elsewhere")


@cases(lambda check: check.group == "load" and not check.scenario)
def test_all_bytes_arrive_on_all_connections(kind, check, result):
    found = result(kind, check)
    assert found["status"] == "done", found
    assert check.shows in found["output"]


@cases(lambda check: check.scenario == "slow")
def test_a_slow_reader_costs_the_network_process_little_memory(kind, check, result):
    found = result(kind, check)
    assert "waiting" in found["output"]
    assert found["grown"] < 24_000_000  # Of 40 connections, each may leave a quarter of a megabyte.


@cases(lambda check: check.scenario == "cancelled")
def test_a_call_cancelled_in_the_middle_of_a_stream_ends_and_the_next_is_served(kind, check, result):
    found = result(kind, check)
    assert found["status"] == "cancelled"
    (connection,) = found["connections"]
    assert (connection["host"], connection["port"], connection["allowed"]) == ("good.example", 7001, True)
    assert connection["received"] > 1 << 22
    assert connection["reason"] is not None
    assert "again" in found["next"]
