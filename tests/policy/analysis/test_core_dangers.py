"""The dangers of a line are named, whether or not the tables contain its programs."""

import pytest

NAMED = [
    ("rm -rf src", {"recursive-delete"}),
    ("rm -fR src", {"recursive-delete"}),
    ("rm --recursive src", {"recursive-delete"}),
    ("rm a.py", set()),
    ("mkdir -p src/new", set()),
    ("npm test", set()),
    ("make", set()),
    ("find . -delete", {"recursive-delete"}),
    ("find . -exec rm {} +", {"recursive-delete"}),
    ("find . -print0 | xargs -0 rm -rf", {"recursive-delete"}),
    ("git clean -fdx", {"recursive-delete"}),
    ("rsync -a --delete a b", {"recursive-delete"}),
    ("rm -rf /", {"recursive-delete", "system-write", "outside-workspace"}),
    ("dd if=x of=/dev/sda", {"raw-device", "outside-workspace"}),
    ("echo x > /dev/nvme0n1", {"raw-device", "outside-workspace"}),
    ("mkfs.ext4 /dev/sda1", {"format", "raw-device", "outside-workspace"}),
    (":(){ :|:& };:", {"fork-bomb"}),
    ("perl -e 'fork while 1'", {"fork-bomb"}),
    ("echo x > /etc/passwd", {"system-write", "outside-workspace"}),
    ("cp a.py /usr/bin/", {"system-write", "outside-workspace"}),
    ("cp /etc/hosts .", {"outside-workspace"}),
    ("chmod 644 /etc/x", {"system-write", "outside-workspace"}),
    ("echo x | tee /etc/hosts", {"system-write", "outside-workspace"}),
    ("npm test > ~/.bashrc", {"home-dotfile", "outside-workspace"}),
    ("cp a.py $HOME/.profile", {"home-dotfile", "outside-workspace"}),
    ('cp a.py "${HOME}/.profile"', {"home-dotfile", "outside-workspace"}),
    ("touch ../x", {"outside-workspace"}),
    ("touch outward/x", {"outside-workspace"}),
    ("make -C ../other", {"outside-workspace"}),
    ("frob --prefix=/srv/x", {"outside-workspace"}),
    ('echo x > "$y"', {"outside-workspace"}),
    ("cd /tmp && touch x", {"outside-workspace"}),
    ("cat /etc/passwd", {"outside-workspace"}),
    ("sudo ls", {"privilege"}),
    ("sudo -u me rm -rf src", {"privilege", "recursive-delete"}),
    ("reboot", {"shutdown"}),
    ("kill -9 -1", {"shutdown"}),
    ("systemctl stop x", {"shutdown"}),
    ("curl x | sh", {"fetch-and-run"}),
    ("curl x | sudo bash -s -- y", {"fetch-and-run", "privilege"}),
    ("base64 -d a.py | bash", {"fetch-and-run"}),
    ("cat a.py | python3", {"fetch-and-run"}),
    ("cat a.py | python3 -m json.tool", set()),
    ('bash -c "$(curl x)"', {"fetch-and-run"}),
    ("bash <(curl x)", {"fetch-and-run"}),
    ("$(curl x)", {"fetch-and-run"}),
    ('eval "$x"', {"fetch-and-run"}),
    ("bash -c 'rm -rf src'", {"recursive-delete"}),
    ("sh -c \"sh -c 'rm -rf src'\"", {"recursive-delete"}),
    ("bash <<'EOF'\nrm -rf src\nEOF", {"recursive-delete"}),
    ("env X=1 nice timeout 5 rm -rf src", {"recursive-delete"}),
    ("echo $(rm -rf src)", {"recursive-delete"}),
    ("if true; then rm -rf src; fi", {"recursive-delete"}),
    ("x() { rm -rf src; }", {"recursive-delete"}),
    ("echo 'unfinished", {"not-understood"}),
]


@pytest.mark.parametrize(("line", "expected"), NAMED)
def test_the_dangers_of_a_line_are_named(analysed, line, expected):
    analysis = analysed(line)
    assert {danger for part in analysis.parts for danger in part.dangers} == expected
    assert not analysis.safe


def test_a_safe_line_has_no_dangers(analysed):
    assert all(part.dangers == () for part in analysed("ls -la | sort | head -5").parts)
