import json


def test_verify_counts_and_names_the_head(haft):
    haft("tools", "use", "read_file", "--path", "a.txt")
    haft("tools", "use", "shell", "--command", "touch x")
    said = haft("audit", "verify")
    assert said.code == 0 and said.out.startswith("2 records intact\nhead ")
    assert haft("audit", "verify", "--json").json["records"] == 2


def test_a_record_that_was_altered_is_named(haft):
    haft("tools", "use", "read_file", "--path", "a.txt")
    haft("tools", "use", "read_file", "--path", "a.txt")
    log = haft.home / "audit" / "record.log"
    log.write_bytes(log.read_bytes().replace(b"a.txt", b"b.txt", 1))
    said = haft("audit", "verify")
    assert said.code == 1
    assert said.err.startswith("error: the audit log is not intact: record 1")
    assert haft("audit", "verify", "--json").json["intact"] is False


def test_list_is_newest_first_and_export_is_everything(haft, tmp_path):
    for _ in range(3):
        haft("tools", "use", "read_file", "--path", "a.txt")
    assert [entry["seq"] for entry in haft("audit", "list", "--limit", "2", "--json").json] == [3, 2]
    assert haft("audit", "list").out.split()[0] == "3"
    lines = [json.loads(line) for line in haft("audit", "export").out.splitlines()]
    assert [entry["seq"] for entry in lines] == [1, 2, 3]
    assert haft("audit", "export", "--json").json == lines
    target = tmp_path / "record.jsonl"
    assert haft("audit", "export", "--to", str(target), "--json").json == {"file": str(target), "records": 3}
    assert len(target.read_text().splitlines()) == 3
    assert haft("audit", "export", "--to", str(tmp_path / "no" / "x")).code == 2


def test_export_of_a_time_and_as_a_live_feed(haft):
    for _ in range(3):
        haft("tools", "use", "read_file", "--path", "a.txt")
    lines = [json.loads(line) for line in haft("audit", "export").out.splitlines()]
    second = lines[1]["at"]
    assert haft("audit", "export", "--since", second, "--json").json == lines[1:]
    assert haft("audit", "export", "--until", second, "--json").json == lines[:1]
    assert haft("audit", "export", "--since", second, "--until", second, "--json").json == []
    assert haft("audit", "export", "--follow", "--until", second).code == 2
    feed = haft.start("audit", "export", "--follow", "--since", second)
    try:
        assert [json.loads(feed.stdout.readline())["seq"] for _ in range(2)] == [2, 3]
        haft("tools", "use", "read_file", "--path", "a.txt")
        assert json.loads(feed.stdout.readline())["seq"] == 4
    finally:
        feed.kill()
        feed.communicate()
