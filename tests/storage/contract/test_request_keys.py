"""Request keys: one request has a key, until it is too old or freed; one process takes it over."""

from haft.storage import KeyedRequest


def request(key="k", what="a", runs=("r_1",), host="h_1", at=100.0):
    return KeyedRequest(key, what, runs, host, at)


def test_the_first_request_has_the_key(connection, stores):
    keys = connection.request_keys
    first = request(runs=("r_1", "r_2"))
    assert keys.claim(first, 0.0) == first
    assert keys.claim(request(what="b", at=101.0), 0.0) == first
    assert stores.connect().request_keys.claim(request(what="b", at=102.0), 0.0) == first
    assert keys.claim(other := request(key="l"), 0.0) == other


def test_an_old_request_gives_its_key_away(connection):
    keys = connection.request_keys
    keys.claim(request(), 0.0)
    assert keys.claim(request(at=150.0), 100.0).at == 100.0
    assert keys.claim(request(at=201.0), 101.0).at == 201.0


def test_a_freed_key_is_free(connection):
    keys = connection.request_keys
    keys.claim(request(), 0.0)
    keys.forget("k")
    assert keys.claim(request(what="b"), 0.0).request == "b"


def test_one_process_takes_a_request_over(connection):
    keys = connection.request_keys
    keys.claim(request(), 0.0)
    assert keys.take_over("k", "h_1", "h_2")
    assert not keys.take_over("k", "h_1", "h_3")
    assert not keys.take_over("nobody", "h_1", "h_3")
    assert keys.claim(request(), 0.0).host == "h_2"
