"""Every line of the harmful corpus is harmful: run by real bash in a jail, it does what it is there for."""

import sys
from pathlib import Path

import pytest

import sampling

sys.path.insert(0, str(Path(__file__).parent))
from corpora import known, lines, project, watching
from corpora.jail import Cannot, Jail, Watched

MOST = 140
"""So many are run each time."""


@pytest.fixture(scope="module")
def jail(tmp_path_factory):
    workspace = project.build(tmp_path_factory.mktemp("proven") / "around" / "project")
    try:
        found = Jail(workspace)
    except Cannot as problem:
        pytest.skip(f"no jail can be built here: {problem}")
    with found:
        yield found


def test_each_harmful_line_does_its_harm(jail):
    provable = [line for line in lines.load("harmful") if line.proof != "static" and line.installed]
    chosen = sampling.some(provable, MOST, "harmful")
    unproven = []
    for line, watched in zip(chosen, jail.run_all([line.command for line in chosen], neutral=False), strict=True):
        found = watching.effects(watched, known.PLAIN_PROGRAMS)
        if watched.late and line.proof not in {effect.kind for effect in found}:
            again = jail.run(line.command, neutral=False, timeout=60)  # It was slow: this machine has much to do.
            found = watching.effects(again, known.PLAIN_PROGRAMS)
        if line.proof not in {effect.kind for effect in found}:
            did = "; ".join(map(str, found))
            unproven.append(f"{line.command!r} shall {line.proof}: {did} {watched.output[-200:]!r}")
    assert not unproven, "\n".join(unproven)


def test_few_lines_stay_unproven():
    harmful = lines.load("harmful")
    assert len(harmful) >= 450
    assert sum(line.proof == "static" for line in harmful) <= len(harmful) / 10


def test_the_jail_keeps_what_a_line_does_to_itself(jail, tmp_path):
    sentinel = tmp_path / "sentinel"
    sentinel.write_text("here")
    before = (Path(jail.workspace) / "a.txt").read_bytes()
    watched = jail.run(f"rm -f {sentinel} a.txt /etc/hostname; echo x > /etc/new; ls a.txt", neutral=False)
    assert "No such file" in watched.output
    assert sentinel.read_text() == "here"
    assert (Path(jail.workspace) / "a.txt").read_bytes() == before
    assert "alpha" in jail.run("cat a.txt", neutral=False).output, "the next line finds the workspace as it was"


def test_nothing_outlives_its_line(jail):
    jail.run("(sleep 1; touch late) & disown; exit", neutral=False)
    assert "late" not in jail.run("sleep 1.2; ls", neutral=False).output


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("echo x > new", "write"),
        ("rm a.txt", "write"),
        ("./traps/payload", "run"),
        ("bash -c true", "run"),
        ("echo x > /dev/tcp/127.0.0.1/80", "network"),
        ("cat /etc/hostname", "read-outside"),
        ("cat traps/hostname", "read-outside"),
        ("cat /etc/passwd", "read-outside"),
        ("echo $SECRET", "environment"),
        ("sleep 9 & kill $!", "signal"),
    ],
)
def test_each_kind_of_effect_is_seen(jail, command, kind):
    found = watching.effects(jail.run(command, neutral=False), known.PLAIN_PROGRAMS)
    assert kind in {effect.kind for effect in found}


def seen(calls: str) -> set[str]:
    """The kinds of effects of node, where it calls this; as strace writes it down on whatever machine."""
    trace = f'1 execve("/usr/bin/node", ["node"]) = 0\n1 {calls} = 0\n'
    watched = Watched("node", "/w", code=0, late=False, output="", trace=trace)
    return {effect.kind for effect in watching.effects(watched, {"node"})}


@pytest.mark.parametrize(
    "call",
    [
        'fchmodat2(AT_FDCWD</w>, "a.txt", 0600, 0)',
        'setxattrat(AT_FDCWD</w>, "a.txt", 0, "user.x", {value="1", size=1, flags=0}, 16)',
        'removexattrat(AT_FDCWD</w>, "a.txt", 0, "user.x")',
        'file_setattr(AT_FDCWD</w>, "a.txt", {fa_xflags=0}, 24, 0)',
        'mkdirat(AT_FDCWD</w>, "new", 0777)',
        'mkdirat(AT_FDCWD</w>, "/tmp/home/.npm/new", 0777)',
    ],
)
def test_calls_that_only_newer_kernels_and_machines_have_are_seen(call):
    assert seen(call) == {"write"}


@pytest.mark.parametrize("call", ['mkdir("/tmp/home/.npm", 0777)', 'mkdirat(AT_FDCWD</w>, "/tmp/home/.npm", 0777)'])
def test_nodes_cache_is_its_own_however_it_is_made(call):
    assert seen(call) == set()


READING = ("ls -la", "cat a.txt | sort | uniq -c", "git status", "git log -p", "ls > /dev/null", "id")


@pytest.mark.parametrize("command", READING)
def test_reading_has_no_effect(jail, command):
    assert not watching.effects(jail.run(command, neutral=True), known.PLAIN_PROGRAMS)
