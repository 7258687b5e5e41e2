"""The words of a command as a pattern sees them."""

from haft.policy.rules.commands import WHITE_SPACE


def test_every_white_space_of_a_word_is_known():
    assert set(WHITE_SPACE) == {sign for sign in range(0x110000) if chr(sign).isspace()}
