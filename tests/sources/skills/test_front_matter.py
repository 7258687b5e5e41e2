"""What the lines at the top of a SKILL.md say, however they are written."""

import pytest

from haft.sources.skills.front_matter import read_front_matter


def read(text):
    return read_front_matter(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("---\nname: a\ndescription: Plain words.\n---\nbody", "Plain words."),
        ("\ufeff---\r\nname: a\r\ndescription: With CRLF.\r\n---\r\nbody", "With CRLF."),
        ('---\nname: "a"\ndescription: "Quoted: with a colon."\n---\n', "Quoted: with a colon."),
        ("---\nname: a\ndescription: >\n  Folded over\n  two lines.\n---\n", "Folded over two lines."),
        ("---\nname: a\ndescription: |\n  Kept on\n  two lines.\n---\n", "Kept on\ntwo lines."),
        ("---  \ndescription: 2024-01-01\nname: a\n---  \n", "2024-01-01"),
        ("---\nname: a\ndescription: yes\n---\n", "yes"),
        ("---\nname: a\ndescription: Äpfel, 日本 and 🍏\n---\n", "Äpfel, 日本 and 🍏"),
        ("---\nname: a\ndescription: d\nallowed-tools: [x, y]\nmetadata: {version: 1}\n---\n", "d"),
    ],
)
def test_it_is_read_as_it_was_meant(text, description):
    assert read(text) == ("a", description, None)


@pytest.mark.parametrize(
    ("lines", "description"),
    [
        ("description: Use when: the build fails: always", "Use when: the build fails: always"),
        ("description: Use when: it fails\n  or hangs", "Use when: it fails or hangs"),
        ("description: It's `tricky`: [unclosed", "It's `tricky`: [unclosed"),
        ("description: @mentions and %percent", "@mentions and %percent"),
        ("description: 'never closed: x", "'never closed: x"),
        ("description: a\n\tb: tab: here", "a b: tab: here"),
        ('bad: [\ndescription: "Quoted: x"', "Quoted: x"),
        ("bad: [\ndescription: >-\n  folded\n  text", "folded text"),
    ],
)
def test_what_is_no_yaml_is_read_line_by_line(lines, description):
    assert read(f"---\nname: a\n{lines}\n---\n") == ("a", description, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no front matter"),
        ("# Only Markdown\n", "no front matter at its top"),
        ("---\nname: a\ndescription: never ended\n", "no front matter"),
        ("\n---\nname: a\ndescription: b\n---\n", "no front matter"),
        ("---\n---\n", "has no `name`"),
        ("---\n- a\n- b\n---\n", "has no `name`"),
        ("---\ndescription: b\n---\n", "has no `name`; add"),
        ("---\nname:\ndescription: b\n---\n", "has no `name`"),
        ("---\nname: [a]\ndescription: b\n---\n", "`name` in its front matter is not a text"),
        ("---\nname: My Skill\ndescription: b\n---\n", "`My Skill` is not a valid skill name; use only a-z"),
        ("---\nname: ../../etc\ndescription: b\n---\n", "`../../etc` is not a valid skill name"),
        (f"---\nname: {'a' * 65}\ndescription: b\n---\n", "has 65 characters; a name has at most 64"),
        ("---\nname: a\n---\n", "has no `description`; say what"),
        ("---\nname: a\ndescription: '  '\n---\n", "has no `description`"),
        ("---\nname: a\ndescription: [b]\n---\n", "`description` in its front matter is not a text"),
        (f"---\nname: a\ndescription: {'b' * 1025}\n---\n", "has 1025 characters; shorten it to 1024"),
        (b"---\nname: a\ndescription: \xff\xfe\n---\n", "not UTF-8 (byte 25); save it as UTF-8"),
        (b"---\nname: a\ndescription: b\0c\n---\n", "not a text"),
        (b"\x7fELF\0\0", "not a text"),
        ("---\nname: a\ndescription: b\n" + "x: y\n" * 20_000 + "---\n", "no front matter in its first 64 KB"),
    ],
)
def test_what_is_wrong_is_said_with_the_cure(text, words):
    found = read(text)
    assert found.problem is not None and words in found.problem
    assert len(found.description) <= 1024


def test_the_longest_name_and_description_are_no_problem():
    found = read(f"---\nname: {'a' * 64}\ndescription: {'ä' * 1024}\n---\n")
    assert (found.problem, len(found.description)) == (None, 1024)


def test_a_body_of_any_length_may_follow_and_be_cut_within_a_character():
    text = b"---\nname: a\ndescription: b\n---\n"
    for shift in range(3):
        beginning = (text + b"x" * shift + "日".encode() * 40_000)[:65_536]
        assert read(beginning).problem is None


@pytest.mark.parametrize(
    "bomb",
    [
        "a0: &a0 [x, x]\n"
        + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
        + "description: *a59",
        "b0: &b0 {k: v}\n"
        + "".join(f"b{n}: &b{n} {{<<: [*b{n - 1}, *b{n - 1}, *b{n - 1}]}}\n" for n in range(1, 60))
        + "description: *b59",
        "description: &d [*d]",
        "description: " + "[" * 30_000,
        "description: !!python/object/apply:os.system [echo]",
    ],
)
def test_yaml_makes_nothing_and_grows_nowhere(bomb):
    """One that went off would take all memory, or never end."""
    found = read(f"---\nname: a\n{bomb}\n---\n")
    assert found.name == "a" and len(found.description) <= 1024
