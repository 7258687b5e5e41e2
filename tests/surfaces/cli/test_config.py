def test_every_setting_with_its_value_and_source(haft):
    from haft.service import SETTINGS

    (haft.workspace / "haft.toml").write_text("[limits]\nmax_seconds = 5\nmax_output_bytes = 999_999_999\n")
    said = haft("config", "show", "--json", HAFT_LIMITS_MAX_CONCURRENT="3").json
    by_name = {setting["name"]: setting for setting in said["settings"]}
    assert set(by_name) == {setting.name for setting in SETTINGS}
    assert by_name["limits.max_seconds"]["value"] == 5 and by_name["limits.max_seconds"]["source"].endswith("haft.toml")
    assert by_name["limits.max_concurrent"]["source"] == "HAFT_LIMITS_MAX_CONCURRENT"
    assert [one["name"] for one in said["ignored"]] == ["limits.max_output_bytes"]
    assert said["files"] == [str(haft.workspace / "haft.toml")]
    text = haft("config", "show").out
    assert "ignored: " in text and "limits.max_seconds" in text


def test_a_setting_that_does_not_exist_is_refused_with_the_near_one(haft):
    (haft.workspace / "haft.toml").write_text("[limits]\nmax_second = 5\n")
    said = haft("config", "show")
    assert said.code == 2 and "did you mean `limits.max_seconds`?" in said.err
    assert haft("tools", "use", "read_file", "--path", "a.txt").code == 2


def test_home_is_no_workspace_by_itself(haft):
    said = haft("config", "show", "--json", HOME=str(haft.workspace))
    assert said.code == 0 and said.json["workspace"] is None
