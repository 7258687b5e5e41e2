"""Settings under the names of earlier versions: they count as before, under the same rules, and are noted once."""

import logging

import pytest

from haft.config import load_config, renamed_settings
from haft.config.settings import BY_NAME, RENAMED
from haft.contracts import BadConfig


@pytest.fixture(autouse=True)
def _nothing_noted(monkeypatch):
    monkeypatch.setattr(renamed_settings, "_noted", set())


@pytest.fixture
def places(tmp_path):
    for name in ("workspace", "user/haft"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def config(places, *, user="", workspace="", settings=None, **env):
    (places / "user/haft/haft.toml").write_text(user)
    (places / "workspace/haft.toml").write_text(workspace)
    return load_config(str(places / "workspace"), {"XDG_CONFIG_HOME": str(places / "user"), **env}, settings)


def test_earlier_names_mean_settings_that_there_are():
    assert RENAMED.keys().isdisjoint(BY_NAME)
    assert BY_NAME.keys() >= {*RENAMED.values()}


def test_an_earlier_name_counts_wherever_it_is_written(places):
    assert config(places, user='[record]\ndurability = "full"\n').durability == "full"
    assert config(places, user='"record.durability" = "full"\n').durability == "full"
    assert config(places, settings={"record.durability": "full"}).durability == "full"
    assert config(places, HAFT_RECORD_DURABILITY="full").durability == "full"
    assert config(places, HAFT_APPROVAL_WITHOUT_WALLS="true").answers_without_sandbox


def test_a_workspace_may_do_no_more_with_an_earlier_name(places):
    weaker = config(places, user='[audit]\ndurability = "full"\n', workspace='[record]\ndurability = "group"\n')
    assert weaker.durability == "full"
    (aside,) = weaker.ignored
    assert aside.name == "audit.durability"
    assert not config(places, workspace="[approval]\nwithout_walls = true\n").answers_without_sandbox


def test_it_is_noted_once_with_the_name_of_today(places, caplog):
    with caplog.at_level(logging.WARNING, "haft"):
        for _ in range(2):
            config(places, user='[record]\ndurability = "full"\n', HAFT_APPROVAL_WITHOUT_WALLS="false")
    assert caplog.messages == [
        f"{places}/user/haft/haft.toml: `record.durability` is now called `audit.durability`",
        "HAFT_APPROVAL_WITHOUT_WALLS is now called `HAFT_APPROVAL_WITHOUT_SANDBOX`",
    ]


def test_a_note_steers_no_terminal(tmp_path, caplog):
    place = tmp_path / "a\x1b[8mb"
    (place / "user/haft").mkdir(parents=True)
    (place / "workspace").mkdir()
    with caplog.at_level(logging.WARNING, "haft"):
        config(place, user='[record]\ndurability = "full"\n')
    assert "a\\x1b[8mb" in caplog.messages[0] and "\x1b" not in caplog.messages[0]


@pytest.mark.parametrize(
    "both",
    [
        {"user": '[record]\ndurability = "full"\n[audit]\ndurability = "full"\n'},
        {"user": '"audit.durability" = "full"\n[record]\ndurability = "full"\n'},
        {"settings": {"audit.durability": "full", "record.durability": "full"}},
        {"HAFT_AUDIT_DURABILITY": "full", "HAFT_RECORD_DURABILITY": "full"},
    ],
    ids=["file", "file, quoted", "caller", "environment"],
)
def test_both_names_in_one_place_are_an_error(places, both):
    with pytest.raises(BadConfig, match=r"`record\.durability` is the earlier name of `audit\.durability`") as caught:
        config(places, **both)
    assert caught.value.hint == "remove `record.durability`"


def test_two_places_may_use_one_name_each(places):
    assert config(places, user='[record]\ndurability = "group"\n', HAFT_AUDIT_DURABILITY="full").durability == "full"
