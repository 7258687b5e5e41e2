"""Tickets: bound, single use, private, and good after a restart."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from haft.service import StateHome, Ticket, Tickets
from haft.service.hooked_calls.tickets import digest_of, new_ticket_id


def made(cwd, **changes):
    fields = {
        "id": new_ticket_id(), "agent": "codex", "session": "s", "workspace": str(cwd), "cwd": os.path.realpath(cwd),
        "digest": digest_of("echo a"), "run": "r_1", "expires_at": time.time() + 60, "limit_seconds": 5.0,
    }  # fmt: skip
    return Ticket(**{**fields, **changes})


def test_a_ticket_on_disk_is_the_same_for_another_process_and_only_its_owner_can_read_it(tmp_path):
    ticket = made(tmp_path, is_asked=True, is_background=True)
    Tickets(StateHome(str(tmp_path))).save(ticket)
    assert Tickets(StateHome(str(tmp_path))).find(ticket.id) == ticket
    place = tmp_path / "hook" / "tickets"
    assert (place.stat().st_mode & 0o777, (place / ticket.id).stat().st_mode & 0o777) == (0o700, 0o600)


def test_of_many_that_redeem_a_ticket_at_once_one_gets_it(tmp_path):
    tickets = Tickets(StateHome(str(tmp_path)))
    ticket = made(tmp_path)
    tickets.save(ticket)
    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(lambda _: tickets.take(ticket), range(16))) == [False] * 15 + [True]


@pytest.mark.parametrize("name", ["", "t_", "t_none", "../tickets/t_0", "t_0/../../x", "t_\0"])
def test_a_name_that_is_no_ticket_finds_nothing(tmp_path, name):
    (tmp_path / "hook" / "tickets").mkdir(parents=True)
    assert Tickets(StateHome(str(tmp_path))).find(name) is None


def test_a_damaged_ticket_is_no_ticket(tmp_path):
    tickets = Tickets(StateHome(str(tmp_path)))
    ticket = made(tmp_path)
    tickets.save(ticket)
    (tmp_path / "hook" / "tickets" / ticket.id).write_text('{"id": 1}')
    assert tickets.find(ticket.id) is None


def test_an_expired_ticket_is_good_for_nothing_and_is_removed(tmp_path):
    tickets = Tickets(StateHome(str(tmp_path)))
    old, new = made(tmp_path, expires_at=time.time() - 1), made(tmp_path)
    tickets.save(old)
    tickets.save(new)
    assert "expired" in (old.why_not("echo a", str(tmp_path)) or "")
    tickets.remove_expired()
    assert (tickets.find(old.id), tickets.find(new.id)) == (None, new)


def test_a_directory_reached_through_a_link_is_the_same_directory(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    ticket = made(tmp_path / "real")
    assert ticket.why_not("echo a", str(tmp_path / "link")) is None
    assert ticket.why_not("echo a", str(tmp_path)) is not None
