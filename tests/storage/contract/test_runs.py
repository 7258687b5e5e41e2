"""Runs: written whole, found by every filter, never reopened; their events, and requests to cancel them."""

from haft.storage import Filter, decode, encode

RUNS = [f"r_{number:024x}" for number in range(6)]


def ids(texts):
    return [decode(text)["record"]["run"] for text in texts]


def test_runs_are_found_newest_first_by_every_filter(connection, document):
    facts = [
        {"tool": "shell", "paths": ["a", "b"], "at": 1.0},
        {"who": "you", "at": 2.0},
        {"thread": "T-2", "paths": ["b"], "at": 3.0},
        {"parent": RUNS[0], "at": 4.0},
        {"workspace": "/ü", "at": 5.0},
        {"status": "error", "at": 6.0},
    ]
    connection.runs.put([document(run, **one) for run, one in zip(RUNS, facts, strict=True)])

    def found(**wanted):
        return [RUNS.index(run) for run in ids(connection.runs.select(Filter(**wanted)))]

    assert found() == [5, 4, 3, 2, 1, 0]
    assert found(limit=2) == [5, 4]
    assert [found(tool="shell"), found(who="you"), found(thread="T-2"), found(parent=RUNS[0])] == [[0], [1], [2], [3]]
    assert [found(workspace="/ü"), found(status="error"), found(path="b"), found(since=4.0)] == [
        [4],
        [5],
        [2, 0],
        [5, 4, 3],
    ]
    assert found(path="b", thread="T-1") == [0]
    assert found(limit=1 << 70) == found()


def test_runs_are_found_by_their_time_their_length_and_their_text(connection, document):
    facts = [
        {"at": 1.0, "arguments": {"command": 'echo "Straße"\n'}},
        {"at": 2.0, "seconds": 30, "output": "Done: 100% of ä_\n"},
        {"at": 3.0, "status": "in-progress", "arguments": {"status": "output"}},
    ]
    connection.runs.put([document(run, **one) for run, one in zip(RUNS, facts, strict=False)])

    def found(**wanted):
        return [RUNS.index(run) for run in ids(connection.runs.select(Filter(**wanted)))]

    assert [found(until=3.0), found(since=2.0, until=3.0), found(longer_than=10.0)] == [[1, 0], [1], [2, 1]]
    assert [found(text='ECHO "straße"\n'), found(text="100% OF ä_"), found(text="output")] == [[0], [1], [2]]
    assert [found(text="startedAt"), found(text="Ä_"), found(text="%")] == [[], [], [1]]


def test_runs_are_found_by_the_hosts_of_their_connections(connection, document):
    hosts = [["a.one.example", "other.example"], ["one.example"], [], ["xone.example", "1%.example"], None]
    for run, named in zip(RUNS, hosts, strict=False):
        value = decode(document(run))
        if named is None:
            value["record"].pop("sandbox", None)  # As earlier versions wrote it.
        else:
            value["record"]["sandbox"] = {"connections": [{"host": each} for each in named]}
        connection.runs.put([encode(value)])

    def found(host, **wanted):
        return [RUNS.index(run) for run in ids(connection.runs.select(Filter(host=host, **wanted)))]

    assert [found("one.example"), found("*.one.example"), found("example"), found("%.example")] == [[1], [0], [], []]
    assert found("*.example") == [3, 1, 0]
    assert found("*.example", limit=1) == [3]
    assert found("*.example", before=RUNS[3]) == [1, 0]


def test_a_document_comes_back_as_it_was_put(connection, document):
    written = document(RUNS[0], tool="ü\n\"'", arguments={"deep": [1, 2.5, None, "\\"]})
    connection.runs.put([written])
    assert decode(connection.runs.named(RUNS[0], 1)[0]) == decode(written)


def test_a_run_that_has_ended_never_reopens(connection, document):
    connection.runs.put([document(RUNS[0], status="in-progress")])
    connection.runs.put([document(RUNS[0]), document(RUNS[0], status="in-progress")])
    connection.runs.put([document(RUNS[0], status="error")])
    assert [decode(text)["record"]["status"] for text in connection.runs.select(Filter())] == ["done"]


def test_open_runs_are_those_of_one_host(connection, document):
    connection.runs.put(
        [document(RUNS[0], status="in-progress"), document(RUNS[1]), document(RUNS[2], status="queued", host="h_2")]
    )
    assert ids(connection.runs.open_runs("h_1")) == [RUNS[0]]
    assert connection.runs.open_runs("h_3") == []


def test_runs_are_told_apart_by_whether_they_have_ended(connection, document):
    connection.runs.put([document(RUNS[0], status="in-progress"), document(RUNS[1])])
    assert ids(connection.runs.select(Filter(is_open=True))) == [RUNS[0]]
    assert ids(connection.runs.select(Filter(is_open=False))) == [RUNS[1]]


def test_names_are_found_by_their_beginning_and_their_neighbours(connection, document):
    connection.runs.put([document(run) for run in RUNS])
    assert ids(connection.runs.named("r_000", 4)) == RUNS[:-5:-1]
    assert ids(connection.runs.named(RUNS[2], 4)) == [RUNS[2]]
    assert connection.runs.named("r_f", 4) == []
    assert connection.runs.neighbours(RUNS[2]) == [RUNS[2], RUNS[1], RUNS[3]] or connection.runs.neighbours(
        RUNS[2]
    ) == [RUNS[1], RUNS[2], RUNS[3]]


def test_events_are_added_to_those_there_are_in_their_order(connection, document):
    first = (3, 1.0, "progress", "in-progress", {"message": "half"})
    second = (1, 0.5, "progress", "in-progress", {"message": "ü"})
    connection.runs.put([document(RUNS[0], status="in-progress", noted=[first])])
    connection.runs.put([document(RUNS[0], noted=[second]), document(RUNS[1])])
    assert [(event.seq, event.text) for event in connection.runs.events_of(RUNS[0])] == [(1, "ü"), (3, "half")]
    assert [event.seq for event in connection.runs.events_of(RUNS[0], after=1)] == [3]
    assert connection.runs.events_of(RUNS[1]) == []


def test_a_request_to_cancel_is_taken_once_by_who_has_the_run(connection):
    connection.runs.request_cancel(RUNS[0], "someone", 1.0)
    connection.runs.request_cancel(RUNS[0], "another", 2.0)
    assert connection.runs.take_cancels({RUNS[1]}) == []
    assert connection.runs.take_cancels({RUNS[0], RUNS[1]}) == [(RUNS[0], "another")]
    assert connection.runs.take_cancels({RUNS[0]}) == []


def test_what_is_written_survives_the_connection_and_is_seen_by_others(connection, stores, document):
    assert stores.connect().runs.select(Filter()) == []
    connection.runs.put([document(RUNS[0])])
    connection.runs.sync()
    connection.close()
    assert stores.exists()
    other = stores.connect()
    assert ids(other.runs.select(Filter())) == [RUNS[0]]
    other.close()
    assert ids(connection.runs.select(Filter())) == [RUNS[0]], "the next use opens it again"


def test_runs_are_found_by_the_key_of_their_caller(connection, document):
    for run, key in zip(RUNS, ["k", "other", None], strict=False):
        value = decode(document(run))
        if key is not None:
            value["rest"]["key"] = key
        connection.runs.put([encode(value)])
    assert ids(connection.runs.select(Filter(key="k"))) == [RUNS[0]]
    assert ids(connection.runs.select(Filter(key="K"))) == []


def test_open_runs_are_taken_over_from_one_host_all_or_none(connection, document):
    opened = {"status": "in-progress"}
    connection.runs.put([document(RUNS[0], **opened), document(RUNS[1], **opened), document(RUNS[2])])
    take = connection.runs.take_over
    assert not take([RUNS[0], RUNS[2]], "h_1", "h_2"), "one has ended"
    assert not take([RUNS[0], RUNS[3]], "h_1", "h_2"), "one is unknown"
    assert not take([], "h_1", "h_2")
    assert take(RUNS[:2], "h_1", "h_2")
    assert not take(RUNS[:2], "h_1", "h_3"), "they belong to another host by now"
    assert ids(connection.runs.open_runs("h_1")) == []
    assert sorted(ids(connection.runs.open_runs("h_2"))) == RUNS[:2]
    assert {decode(text)["rest"]["host"] for text in connection.runs.open_runs("h_2")} == {"h_2"}


def test_new_runs_are_found_in_the_order_in_which_they_were_written(connection, document):
    runs = connection.runs
    assert runs.added(0, [], []) == (0, [])
    runs.put([document(RUNS[2], host="h_1")])
    runs.put([document(RUNS[0], host="h_2"), document(RUNS[1], host="h_1")])
    newest, texts = runs.added(0, [], [])
    assert ids(texts) == [RUNS[2], RUNS[0], RUNS[1]]
    assert ids(runs.added(0, ["h_1", "h_3"], [])[1]) == [RUNS[0]]
    assert ids(runs.added(0, ["h_1", "h_3"], [RUNS[1]])[1]) == [RUNS[0], RUNS[1]]
    assert runs.added(newest, [], []) == (newest, [])
    runs.put([document(RUNS[2], host="h_1", status="done", ended=2.0), document(RUNS[3], host="h_2")])
    later, texts = runs.added(newest, [], [RUNS[2]])
    assert (later > newest, ids(texts)) == (True, [RUNS[2], RUNS[3]])
    assert decode(texts[0])["record"]["status"] == "done"
