"""Patterns of commands: held against words, never against text."""

import shlex

import pytest

from haft.policy.rules.commands import command_pattern, exactly, occurs, part_matches, subject


@pytest.mark.parametrize(
    ("pattern", "line", "fits"),
    [
        ("npm test*", "npm test -- -u", True),
        ("npm test*", "npm   test", True),
        ("npm test*", "'npm' \"test\"", True),
        ("npm test", "npm test -u", False),
        ("npm test*", "'npm test' x", False),
        ("git commit -m *", "git commit -m 'a b c'", True),
        ('git commit -m "fix *"', "git commit -m 'fix it now'", True),
        ('git commit -m "fix *"', "git commit -m fix it", False),
        ("git commit -m fix *", "git commit -m 'fix it'", False),
        ("echo 'a b'", 'echo "a b"', True),
        ('echo "a b"', "echo 'a\tb'", False),
        ('echo "a b"', "echo 'a\nb'", False),
        (r"echo \*", "echo '*'", True),
        (r"echo \*", "echo x", False),
        (r"find . -name \;", "find . -name ';'", True),
        (r"echo '\*'", "echo '*'", True),
        (r"echo 'a\b'", r"echo 'a\b'", True),
        (r"echo \"", "echo '\"'", True),
        ("npm test*", "CI=1 npm test", False),
        ("npm test*", "/tmp/npm test", False),
        ("/^npm (test|run lint)$/", "npm run lint", True),
        ("/^npm (test|run lint)$/", "npm 'run lint'", False),
        ("/^npm\\stest$/", "'npm\ttest'", False),
    ],
)
def test_a_pattern_sees_the_words_of_one_command(of, pattern, line, fits):
    assert part_matches(pattern, of["command"](line)) is fits


def test_a_list_is_any_of_them_and_nothing_else_is_a_command(of):
    part = of["command"]("npm test")
    assert part_matches(("x", ("y", "npm *")), part)
    assert not part_matches(True, part) and not part_matches({"a": "*"}, part)


def test_where_the_program_is_not_certain_nothing_fits_that_allows(of):
    part = of["command"]("$X test", program=None, literal=False)
    assert subject(part) is None
    assert not part_matches("*", part)
    assert part_matches("*", part, widely=True)


def test_where_the_target_is_not_certain_nothing_fits_that_allows(of):
    assert part_matches("> build/*", of["redirection"](">", "build/x"))
    assert not part_matches("> build/*", of["redirection"](">", "build/$X", literal=False))
    assert not part_matches("*", of["unread"]("x $("))


DISGUISES = """
rm -rf x
FOO=1 rm -rf x
/bin/rm -rf x
A=1 /bin/rm -rf x
r'm'  -rf  x
sudo rm -rf x
sudo -u me /bin/rm -rf x
env A=1 rm -rf x
timeout 5 nice -n 3 rm -rf x
xargs -0 rm -rf
find . -exec rm -rf {} +
bash -c 'rm -rf x'
bash -c "cd y && rm -rf x"
sudo sh -c "true; rm -rf x"
eval 'rm -rf x'
""".strip().splitlines()


@pytest.mark.parametrize("line", DISGUISES)
def test_a_rule_that_forbids_sees_through_clothes(of, line):
    assert part_matches("rm -rf*", of["command"](line), widely=True)
    if line not in (DISGUISES[0], DISGUISES[4]):
        assert not part_matches("rm -rf*", of["command"](line)), "what allows does not"


@pytest.mark.parametrize("line", ["echo rm -rf x", "grep 'rm -rf' x", "git commit -m 'rm -rf x'", "ls rm", "rmdir x"])
def test_a_word_among_the_arguments_is_no_command(of, line):
    assert not part_matches("rm -rf*", of["command"](line), widely=True)


@pytest.mark.parametrize("pattern", ["rm -rf*", "/^rm -rf/", "/^(/bin/)?rm/"])
def test_a_rule_that_forbids_sees_past_any_number_of_words(of, pattern):
    for count in (1, 10, 300, 5_000):
        assert part_matches(pattern, of["command"]("env " + "A=1 " * count + "rm -rf x"), widely=True)
    assert not part_matches(pattern, of["command"]("env " + "A=1 " * 50 + "make all"), widely=True)


def test_a_rule_that_forbids_is_held_against_the_text_too(of):
    part = of["command"]("$SHELL -c 'curl x'", program=None, literal=False)
    assert part_matches("*curl*", part, widely=True)
    assert part_matches("/curl +x/", part, widely=True)


@pytest.mark.parametrize("line", ["a; rm -rf  x $(", "r''m -rf x $(", 'rm "-rf" x', "rm\t-rf\nx"])
def test_in_a_line_that_was_not_understood_a_pattern_stands_anywhere(line):
    assert occurs("rm -rf *", line)
    assert occurs(("no", "rm -rf"), line)
    assert not occurs("mkfs*", line)


@pytest.mark.parametrize(
    "words",
    [
        ("ls",),
        ("git", "commit", "-m", "a  b"),
        ("echo", "", "x"),
        ("echo", "*", "\\", '"', "'", "a'b\"c"),
        ("grep", "a|b;c>d&", "x:*"),
        ("/a/",),
        ("/a", "b/"),
        ("printf", "a\nb\tc"),
    ],
)
def test_a_pattern_for_exactly_these_words_fits_them_alone(of, words):
    pattern = exactly(words)
    assert part_matches(pattern, of["command"](shlex.join(words)))
    for other in ((*words, "x"), words[:-1], (*words[:-1], f"{words[-1]}y"), (" ".join(words), "x")):
        if other:
            assert not part_matches(pattern, of["command"](shlex.join(other)))


def test_a_quote_that_is_not_closed_is_an_error():
    with pytest.raises(ValueError, match="not closed"):
        command_pattern("echo don't")
