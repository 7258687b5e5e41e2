"""The kept stderr of MCP servers."""

from haft.contracts import Secrets
from haft.sources.mcp.server_log import MOST_BYTES, ServerLog, log_path, read_log


def test_the_log_is_bounded_and_keeps_the_newest(tmp_path):
    log = ServerLog(log_path(str(tmp_path), "s"))
    log.started("program")
    for number in range(3_000):
        log.add(b"%d " % number + b"x" * 1_000 + b"\n")
    log.ended()
    files = list((tmp_path / "provider-logs").iterdir())
    assert sum(each.stat().st_size for each in files) <= 2 * MOST_BYTES + 2_000
    assert read_log(str(tmp_path), "s").rstrip().splitlines()[-1].startswith("2999 ")
    assert log.last_line.startswith("2999 ")


def test_one_huge_piece_is_cut(tmp_path):
    log = ServerLog(log_path(str(tmp_path), "s"))
    log.add(b"x" * 10 * MOST_BYTES)
    log.ended()
    assert len(read_log(str(tmp_path), "s")) < MOST_BYTES


def test_a_secret_is_masked_even_if_it_comes_in_pieces(tmp_path):
    log = ServerLog(log_path(str(tmp_path), "s"), Secrets(frozenset({"hunter2-secret"})))
    log.add(b"token hunter2-")
    log.add(b"secret.\n")
    log.ended()
    assert "hunter2" not in read_log(str(tmp_path), "s") and "token" in read_log(str(tmp_path), "s")


def test_what_is_read_has_no_hidden_characters(tmp_path):
    log = ServerLog(log_path(str(tmp_path), "s"))
    log.add(b"\x1b[2J\xff\n")
    log.ended()
    assert read_log(str(tmp_path), "s") == "\\x1b[2J\ufffd\n"


def test_no_log_is_no_error(tmp_path):
    assert read_log(str(tmp_path), "never") == ""
