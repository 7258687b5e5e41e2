"""Output and results of any size and any bytes."""

import json


def test_a_long_output_is_read_page_by_page(service):
    outcome = service.call("shell", {"command": "seq 1 40000; printf ü"}).wait()
    whole = "".join(f"{n}\n" for n in range(1, 40001)) + "ü"
    assert outcome.truncated and outcome.output_bytes == len(whole.encode()) and outcome.output != whole
    pages, at = [], 0
    while at is not None:
        page = service.output(outcome.run_id, at)
        pages.append(page.text)
        assert page.total == len(whole.encode()) and page.record.id == outcome.run_id
        at = page.next
    assert "".join(pages) == whole and len(pages) > 3


def test_the_output_of_a_call_without_any(service):
    outcome = service.call("shell", {"command": "true"}).wait()
    page = service.output(outcome.run_id)
    assert (page.text, page.next, page.total) == ("", None, 0)


def test_bytes_that_are_no_text(service):
    outcome = service.call("shell", {"command": r"printf 'a\377\000b\033[1m\xe2\x80\xae'"}).wait()
    assert outcome.ok and outcome.output == "a\ufffd\0b\x1b[1m\u202e"
    assert service.output(outcome.run_id).text == outcome.output


def test_a_huge_result(service):
    text = "haft ü\n" * 300_000
    outcome = service.call("repeats", {"text": "haft ü\n", "times": 300_000}).wait()
    assert outcome.ok and outcome.result == text and outcome.truncated
    assert outcome.output_bytes == len(text.encode())


def test_a_huge_argument(service, files):
    content = "0123456789ü" * 200_000
    assert service.call("write_file", {"path": "huge", "content": content}).wait().ok
    assert (files / "huge").read_text() == content


def test_structured_results(service):
    outcome = service.call("nests", {"levels": 20}).wait()
    value = outcome.result
    for _ in range(20):
        value = value["inner"]
    assert value == {"text": "ü", "number": 1.5, "nothing": None}
    assert json.loads(outcome.output) == outcome.result
    assert outcome.to_json()["result"] == outcome.result
