def test_a_sound_machine_has_nothing_broken(haft):
    said = haft("doctor", "--json")
    states = {check["check"]: check["state"] for check in said.json}
    assert said.code == 0, said.json
    assert states["processes"] == states["database"] == states["audit log"] == states["ripgrep"] == "ok"
    assert states["store"] == "ok"
    assert states["change tracking"] in ("ok", "warn")
    assert not haft.home.exists()


def test_what_is_broken_is_said_with_what_to_do(haft):
    haft("tools", "use", "read_file", "--path", "a.txt")
    log = haft.home / "audit" / "record.log"
    log.write_bytes(log.read_bytes().replace(b"a.txt", b"b.txt", 1))
    (haft.workspace / "haft.toml").write_text("[limits\n")
    haft.home.chmod(0o755)
    said = haft("doctor")
    assert said.code == 1
    assert "broken  audit log: not intact" in said.out
    assert "broken  configuration: " in said.out
    assert "warn    state home: " in said.out and "hint: chmod 700" in said.out


def test_a_state_home_that_is_a_file_is_broken(haft):
    haft.home.write_text("")
    assert haft("doctor").code == 1
    assert haft("tools", "use", "read_file", "--path", "a.txt").code == 2
