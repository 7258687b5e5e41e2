"""Remembered rules and approved definitions, by workspace."""

from haft.storage import KeptPin, KeptRule

RULE = KeptRule(0, None, {"tool": "shell", "action": "allow", "matches": {"command": "ü *"}}, "pin", "ann", 1.5)
PIN = KeptPin("mine", "digest", {"name": "mine", "files": {"/t/mine": {"digest": "d", "text": "ü"}}})


def test_rules_are_listed_the_latest_first_as_they_were_remembered(connection):
    rules = connection.rules
    rules.remember("/w", RULE)
    rules.remember("/w", RULE._replace(thread="T-1", pin=None))
    rules.remember("/v", RULE)
    second, first = rules.all("/w")
    assert first == RULE._replace(number=first.number)
    assert second == RULE._replace(number=second.number, thread="T-1", pin=None)
    assert first.number < second.number


def test_the_same_rule_for_the_same_thread_is_kept_once_under_a_new_number(connection):
    rules = connection.rules
    rules.remember("/w", RULE)
    (before,) = rules.all("/w")
    rules.remember("/w", RULE._replace(who="bob"))
    (after,) = rules.all("/w")
    assert (after.who, after.number > before.number) == ("bob", True)


def test_a_rule_is_forgotten_by_its_number_in_its_workspace(connection):
    rules = connection.rules
    rules.remember("/w", RULE)
    (kept,) = rules.all("/w")
    assert not rules.forget("/v", kept.number)
    assert rules.forget("/w", kept.number)
    assert not rules.forget("/w", kept.number)
    rules.remember("/w", RULE)
    assert rules.all("/w")[0].number > kept.number, "no number is given twice"


def test_a_definition_is_held_once_and_replaced_by_agreement(connection):
    pins = connection.pins
    assert pins.of("/w", "mine") is None
    assert pins.add_if_absent("/w", PIN, "ann", 1.0) == "digest"
    assert pins.add_if_absent("/w", PIN._replace(digest="other"), "bob", 2.0) == "digest"
    assert pins.of("/w", "mine") == PIN
    pins.approve("/w", PIN._replace(digest="other"), "bob", 2.0)
    assert pins.of("/w", "mine").digest == "other"
    assert pins.of("/v", "mine") is None


def test_definitions_are_found_by_a_file_of_theirs(connection):
    pins = connection.pins
    pins.approve("/w", PIN, "ann", 1.0)
    pins.approve("/w", KeptPin("other", "d", {"files": {"/t/other": {}}}), "ann", 1.0)
    assert pins.holding("/w", "/t/mine") == [PIN]
    assert pins.holding("/v", "/t/mine") == []


def test_the_version_changes_when_another_connection_wrote(connection, stores):
    other = stores.connect()
    connection.rules.all("/w")
    before = connection.version()
    assert connection.version() == before
    other.rules.remember("/w", RULE)
    assert connection.version() != before
    other.close()
