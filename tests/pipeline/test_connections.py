"""What a run records about its connections, what it says about them, and that both are bounded."""

import pytest

from haft.contracts import Call, Connection, Decision, Grants, Principal, RunId, ToolName
from haft.pipeline.connections import MAX_ALONE, MAX_EVENTS, MAX_RECORDS, RunConnections, address_of, grant_source
from haft.pipeline.run import Run


class Recorder:
    def __init__(self):
        self.events = []

    def on_status(self, run):
        pass

    def on_event(self, run, event):
        self.events.append(event)


async def nobody(_held):
    return None


def connections(**fields):
    recorder = Recorder()
    run = Run(Call(RunId("r_1"), ToolName("shell"), {}, Principal("someone"), **fields), recorder)
    return RunConnections(run, nobody), recorder


def refused(host, port=443, reason="it is not granted", **fields):
    return Connection(host, port, allowed=False, reason=reason, **fields)


def hint(grant):
    return f"to allow it: `--network={grant}`"


def test_equal_refusals_are_one_record_and_one_event():
    observer, recorder = connections()
    for _ in range(3):
        observer.ended(refused("evil.example"))
    observer.ended(refused("evil.example", count=4))
    observer.ended(refused("evil.example", 80))
    assert [(each.port, each.count) for each in observer.records] == [(443, 7), (80, 1)]
    assert [event.facts["state"] for event in recorder.events] == ["refused", "refused"]


def test_records_and_events_are_bounded_and_further_connections_are_counted():
    observer, recorder = connections()
    for number in range(MAX_RECORDS + 50):
        observer.opened("one.example", 443, "one.example")
        observer.ended(Connection("one.example", 443, allowed=True, grant="one.example", sent=1, received=number))
    for number in range(MAX_RECORDS):
        observer.ended(refused(f"h{number}.example"))
    assert len(observer.records) == MAX_RECORDS
    allowed = [each for each in observer.records if each.allowed]
    assert len(allowed) == MAX_ALONE
    assert sum(each.sent for each in allowed) == sum(each.count for each in allowed) == MAX_RECORDS + 50
    assert len(recorder.events) <= MAX_EVENTS
    assert [*observer.notes(hint)][-1] == "100 more connections are not on record: a run has at most 500 records"


def test_notes_name_the_first_hosts_and_count_the_others():
    observer, _ = connections()
    for host in ("a.example", "b.example", "b.example", "c.example", "d.example"):
        observer.ended(refused(host))
    assert [*observer.notes(hint)] == [
        "the sandbox refused a connection to a.example:443; to allow it: `--network=a.example:443`",
        "the sandbox refused a connection to b.example:443; to allow it: `--network=b.example:443`",
        "the sandbox refused a connection to c.example:443; to allow it: `--network=c.example:443`",
        "the sandbox also refused connections to 1 more host: `haft show r_1` lists them",
    ]


@pytest.mark.parametrize(
    ("connection", "note"),
    [
        (
            refused(
                "in.example", reason="leads to 10.0.0.1, which is a private address; grant in.example:443=10.0.0.1"
            ),
            (
                "the sandbox refused a connection to in.example:443: it leads to 10.0.0.1, which is a private address; "
                "grant in.example:443=10.0.0.1"
            ),
        ),
        (
            refused("a.example", reason="was refused: its TLS server name is malformed"),
            "the sandbox refused a connection to a.example:443: its TLS server name is malformed",
        ),
        (refused("8.8.8.8", protocol="udp"), "the sandbox refused UDP to 8.8.8.8:443; grants by host open TCP only"),
        (
            Connection("a.example", 443, allowed=True, grant="a.example", reason="cannot be reached: no route"),
            "a.example:443 cannot be reached: no route",
        ),
        (
            refused("fd00::1", 22),
            "the sandbox refused a connection to [fd00::1]:22; to allow it: `--network=[fd00::1]:22`",
        ),
    ],
)
def test_a_note_gives_the_reason_and_proposes_a_grant_only_where_one_helps(connection, note):
    observer, _ = connections()
    observer.ended(connection)
    assert [*observer.notes(hint)] == [note]


def test_the_error_of_a_failed_tool_names_the_host_and_no_note_repeats_it():
    observer, _ = connections()
    assert observer.error("it exited 1", hint) is None
    observer.ended(refused("8.8.8.8", protocol="udp"))
    observer.ended(refused("evil.example"))
    error = observer.error("it exited 1", hint)
    assert error.message == "the sandbox denied a connection to evil.example:443, and 1 more host (it exited 1)"
    assert error.hint == "to allow it: `--network=evil.example:443`"
    assert [*observer.notes(hint, error.message)] == [
        "the sandbox refused UDP to 8.8.8.8:443; grants by host open TCP only"
    ]


def test_a_connection_that_ended_normally_is_no_note():
    observer, _ = connections()
    observer.ended(Connection("a.example", 443, allowed=True, grant="a.example", received=9))
    assert [*observer.notes(hint)] == [] and observer.error("it exited 1", hint) is None


def test_the_answer_of_a_person_is_on_record_even_if_the_program_ended_before_it():
    observer, _ = connections()
    observer.why_refused["a.example", 443] = "someone rejected it"
    observer.end()
    observer.end()
    assert [(each.host, each.reason) for each in observer.records] == [("a.example", "someone rejected it")]


def test_a_grant_comes_from_the_call_a_rule_or_the_setting():
    by = (("haft.toml:3", Grants(network=("*.rule.example", "@package-indexes"))),)
    decision = Decision("allow", "rules", "", "haft.toml:1", "rule", "", granted_by=by)
    call = Call(
        RunId("r_1"), ToolName("shell"), {}, Principal("someone"), grants=Grants(network=("own.example",)),
        decision=decision,
    )  # fmt: skip
    assert grant_source(call, "own.example", 443, "own.example") == "the call"
    assert grant_source(call, "a.rule.example", 443, "*.rule.example") == "haft.toml:3"
    assert grant_source(call, "index.example", 443, "@package-indexes") == "haft.toml:3"
    assert grant_source(Call(RunId("r_1"), ToolName("shell"), {}, Principal("s")), "a.example", 1, "a.example:1") == (
        "sandbox.network"
    )
    assert grant_source(call, "a.example", 443, None) is None


def test_an_address_is_written_as_the_grant_for_it():
    assert address_of("a.example", 443) == "a.example:443"
    assert address_of("::1", 443) == "[::1]:443"
