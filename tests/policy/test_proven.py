"""Every line of the harmful corpus is harmful: run by real bash in a jail, it does what it is there for."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from corpora import known, lines, project, watching
from corpora.jail import Cannot, Jail

MOST = 140
"""So many are run each time; all of them with HAFT_MORE."""


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
    chosen = lines.some([line for line in lines.load("harmful") if line.proof != "static" and line.installed], MOST)
    unproven = []
    for line, watched in zip(chosen, jail.run_all([line.command for line in chosen], neutral=False), strict=True):
        found = watching.effects(watched, known.PLAIN_PROGRAMS)
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


READING = ("ls -la", "cat a.txt | sort | uniq -c", "git status", "git log -p", "ls > /dev/null", "id")


@pytest.mark.parametrize("command", READING)
def test_reading_has_no_effect(jail, command):
    assert not watching.effects(jail.run(command, neutral=True), known.PLAIN_PROGRAMS)
