"""What tools wrote, as HTML: text, diffs and images."""

import base64

import pytest

from haft.runs.kept_output import Frame
from haft.surfaces.http.console.attachments import image_type, shown_content
from haft.surfaces.http.console.diffs import counts_of, shown_diff
from haft.surfaces.http.console.output_lines import output_of
from haft.surfaces.http.console.written import plain_line, written, written_line, written_words

HEAD = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n"


def html_of(diff):
    return [str(line.html) for file in diff.files for hunk in file.hunks for b in hunk.blocks for line in b.lines]


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "a & b", '" onload="x', "</bdi><b>"])
def test_markup_is_text(text):
    for shown in (written(text), written_line(text), written_words(text)):
        inner = str(shown).removeprefix("<bdi>").removesuffix("</bdi>")
        assert "<" not in inner.replace("<code>", "").replace("</code>", "")
        assert '"' not in inner


@pytest.mark.parametrize(
    ("text", "code"),
    [("\x1b[31m", "\\x1b[31m"), ("\u202e", "\\u202e"), ("\u2066", "\\u2066"), ("\r", "\\r"), ("\x00", "\\x00")],
)
def test_characters_that_show_nothing_stand_there_as_their_code(text, code):
    assert str(written(f"a{text}b")) == f'<bdi>a<span class="unseen">{code}</span>b</bdi>'
    assert plain_line(f"a{text}b") == f"a{code}b"


def test_a_backslash_of_the_text_itself_is_no_code():
    assert str(written("\\x1b")) == "<bdi>\\x1b</bdi>"


def test_words_between_backticks_are_code_and_a_lone_backtick_is_itself():
    assert str(written_words("`rm <x>` deletes")) == "<bdi><code>rm &lt;x&gt;</code> deletes</bdi>"
    assert str(written_words("a ` b")) == "<bdi>a ` b</bdi>"


def test_a_removed_line_that_looks_like_a_header_is_a_line():
    diff = shown_diff(HEAD.format("a.sql") + "@@ -1,2 +1 @@\n--- a comment\n-diff --git a/x b/x\n+++ more\n")
    assert (diff.count, diff.added, diff.removed) == (1, 1, 2)
    assert diff.files[0].path == "a.sql"


def test_a_deleted_directory_is_one_change_with_its_files_below_it():
    text = "delete directory dist/old\n" + "".join(
        f"diff --git a/dist/old/{name} b/dist/old/{name}\ndeleted file mode 100644\n--- a/dist/old/{name}\n"
        f"+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        for name in ("a.js", "b.js")
    )
    (file,) = shown_diff(text).files
    assert (file.path, file.kind, [path for path, _ in file.below]) == (
        "dist/old/",
        "directory deleted",
        ["dist/old/a.js", "dist/old/b.js"],
    )
    assert counts_of(text) == (0, 2, 1)


@pytest.mark.parametrize(
    ("name", "path"),
    [('"a/b\\"c.txt" "b/b\\"c.txt"', 'b"c.txt'), ("a/with a blank.txt b/with a blank.txt", "with a blank.txt")],
)
def test_names_are_read_as_git_quotes_them(name, path):
    assert shown_diff(f"diff --git {name}\n@@ -1 +1 @@\n-a\n+b\n").files[0].path == path


def test_changed_words_are_marked_and_code_has_colours():
    diff = shown_diff(HEAD.format("a.py") + '@@ -1 +1 @@\n-return total(1, "x")\n+return total(2, "x")\n')
    old, new = html_of(diff)
    assert '<span class="k">return</span>' in old
    assert '<span class="n"><span class="w">1</span></span>' in old
    assert '<span class="n"><span class="w">2</span></span>' in new
    assert '<span class="s">&#34;x&#34;</span>' in new


def test_hostile_code_in_a_diff_is_text():
    diff = shown_diff(HEAD.format("a.html") + "@@ -1 +1 @@\n-<b>\n+<script>\u202e</script>\n")
    assert all("<script" not in html and "<b>" not in html and "\u202e" not in html for html in html_of(diff))


def test_output_has_numbers_and_a_line_that_goes_on_on_the_other_stream_becomes_two():
    frames = [
        Frame(3, 0.0, "stdout", b"one\ntw"),
        Frame(4, 0.0, "stderr", b"careful\n"),
        Frame(5, 0.0, "stdout", b"o\nthree", skipped=10),
    ]
    output = output_of(frames, 100)
    assert [(line.number, line.text, line.style) for line in output.lines] == [
        (1, "one", ""),
        (2, "tw", ""),
        (3, "careful", "err"),
        (4, "10 bytes were not kept", "low"),
        (5, "o", ""),
        (6, "three", ""),
    ]
    assert (output.last, output.ends_open, output.before) == (5, True, 0)
    assert output_of(frames, 2).before == 4


def test_an_image_is_shown_by_its_content_and_nothing_else_is():
    def block(data, mime="image/png"):
        return {"type": "image", "mimeType": mime, "data": base64.b64encode(data).decode()}

    png, svg = b"\x89PNG\r\n\x1a\n....", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
    shown = shown_content([block(png, "text/html"), block(svg, "image/png"), {"type": "image", "data": "%%%"}])
    assert [each.image is not None for each in shown] == [True, False, False]
    assert shown[0].image.startswith("data:image/png;base64,")
    assert image_type(b"RIFF....WEBPVP8 ") == "image/webp"
    assert image_type(b"GIF89a") == "image/gif"
    assert image_type(b"\xff\xd8\xff\xe0") == "image/jpeg"
