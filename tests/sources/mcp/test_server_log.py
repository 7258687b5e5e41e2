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


def test_the_log_of_a_call_is_what_came_since_the_call_began(tmp_path):
    log = ServerLog(log_path(str(tmp_path), "s"))
    log.add(b"before\n")
    log.begin_call("r_1")
    assert log.of_call("r_1") == ("", False)
    log.add(b"during\n")
    assert log.of_call("r_1") == ("during\n", False)
    log.end_call("r_1")
    log.begin_call("r_2")
    assert log.of_call("r_2") == ("", False)


def test_what_came_during_two_calls_may_be_about_either(tmp_path):
    log = ServerLog(log_path(str(tmp_path), "s"))
    log.begin_call("r_1")
    log.begin_call("r_2")
    log.add(b"denied\n")
    log.end_call("r_2")
    assert log.of_call("r_1") == ("denied\n", True)


def test_a_cancelled_call_may_still_write_until_the_server_starts_again(tmp_path):
    log = ServerLog(log_path(str(tmp_path), "s"))
    log.begin_call("r_1")
    log.end_call("r_1", abandoned=True)
    log.begin_call("r_2")
    assert log.of_call("r_2") == ("", True)
    log.end_call("r_2")
    log.started("program")
    log.begin_call("r_3")
    assert log.of_call("r_3") == ("", False)


# What the log says about calls that fail without a reason


def test_if_only_the_log_says_that_the_sandbox_denied_a_write_the_outcome_says_it_too(place):
    place.add(mode="masks")
    (outcome,) = place.call(("write", {"text": "x"}))
    assert outcome.error.code == "sandbox-denied" and "Read-only file system: 'made.txt'" in outcome.error.message
    assert outcome.error.hint.startswith('to allow it: grant = {write = ["."]} below `[providers.s]`')
    assert outcome.output == "Error", "the log is no output"


def test_a_denial_in_the_log_is_not_put_down_to_a_later_call(place):
    place.add(mode="masks")
    _denied, failed, unanswered = place.call(("write", {"text": "x"}), ("fail", {}), ("cancelled", {}))
    assert failed.error.code == "tool-failed"
    assert failed.error.hint == "`haft providers logs s` shows what it wrote"
    assert unanswered.error.code == "tool-failed" and unanswered.error.hint is None, "it wrote nothing"


def test_a_denial_in_the_log_during_several_calls_is_only_a_possible_reason(place):
    place.add(mode="masks")

    async def work(service):
        other = service.call("mcp__s__slow", {})
        async for event in other:
            if event.type == "progress" and event.facts["fraction"]:
                break
        during = await service.call("mcp__s__write", {"text": "x"})
        other.cancel()
        await other
        after = await service.call("mcp__s__write", {"text": "x"})
        await service.providers.restart("s")
        return during, after, await service.call("mcp__s__write", {"text": "x"})

    *unsure, sure = place.run(work)
    for outcome in unsure:
        assert outcome.error.code == "tool-failed" and "Read-only" not in f"{outcome.error}"
        assert outcome.error.hint == (
            "perhaps the sandbox denied something: the log of its process says so, but not for which of several calls; "
            'to allow it: grant = {write = ["."]} below `[providers.s]`. It then holds for every call of this server; '
            "`haft providers logs s` shows what it wrote"
        )
    assert sure.error.code == "sandbox-denied"


def test_a_hint_from_the_log_never_offers_private_keys(place, tmp_path, monkeypatch):
    key = tmp_path / "person" / ".ssh" / "id_ed25519"
    key.parent.mkdir(parents=True)
    key.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    place.add(mode="masks", env={"MISSES": str(key)})
    (outcome,) = place.call(("fail", {}))
    assert "grant" not in f"{outcome.error}" and "private keys" in outcome.error.hint
