"""Commands of a person in command lines, in the spellings that analysis can read."""

import os

import pytest

from haft.policy import AnalysisContext, person_command

FOUND = {
    "haft approve a_1": "haft approve",
    "haft reject a_1 --message no": "haft reject",
    "/opt/venv/bin/haft approve a_1": "haft approve",
    "'ha''ft' \"app\"rove a_1": "haft approve",
    "h\\aft ap\\prove a_1": "haft approve",
    "haft -q --json approve a_1": "haft approve",
    "haft -w /tmp/x approve a_1": "haft approve",
    "haft --workspace=/tmp/x approve a_1": "haft approve",
    "haft permissions -q add allow shell": "haft permissions add",
    "haft permissions remove remembered:1": "haft permissions remove",
    "haft permissions edit": "haft permissions edit",
    "haft trust --yes": "haft trust",
    "haft providers add x -- sh": "haft providers add",
    "haft providers trust x --yes": "haft providers trust",
    "haft changes apply r_1 a.txt": "haft changes apply",
    "haft tokens add me": "haft tokens add",
    "haft approval secret": "haft approval secret",
    "haft connect claude-code --remove --yes": "haft connect",
    "haft inbox --watch": "haft inbox --watch",
    "haft tools use shell --command ls --approve": "haft tools use --approve",
    "haft use shell --network=example.org --command ls": "haft use --network",
    "haft use shell --command ls --write /etc": "haft use --write",
    "haft run --commit -- make": "haft run",
    "haft run make": "haft run",
    "haft templates build x --allow-builds": "haft templates build --allow-builds",
    "python3 -m haft approve a_1": "haft approve",
    "python -I -m haft approve a_1": "haft approve",
    "/usr/bin/python3.12 /opt/bin/haft approve a_1": "haft approve",
    "uvx haft approve a_1": "haft approve",
    "uv run haft approve a_1": "haft approve",
    "pipx run haft approve a_1": "haft approve",
    "cd /tmp && haft approve a_1": "haft approve",
    "ls; haft approve a_1 &": "haft approve",
    "(haft approve a_1)": "haft approve",
    "if true; then haft approve a_1; fi": "haft approve",
    "x=$(haft approve a_1)": "haft approve",
    "env A=b haft approve a_1": "haft approve",
    "env -S 'haft approve a_1'": "haft approve",
    "HAFT_HOME=/x haft approve a_1": "haft approve",
    "setsid -f haft approve a_1": "haft approve",
    "nohup setsid haft approve a_1 &": "haft approve",
    "timeout 5 haft approve a_1": "haft approve",
    "sudo -u me haft approve a_1": "haft approve",
    "sh -c 'haft approve a_1'": "haft approve",
    'bash -lc "setsid sh -c \\"haft approve a_1\\""': "haft approve",
    "script -qec 'haft approve a_1' /dev/null": "haft approve",
    "script --command='haft approve a_1' /dev/null": "haft approve",
    "su me -c 'haft approve a_1'": "haft approve",
    "eval haft approve a_1": "haft approve",
    "echo a_1 | xargs haft approve": "haft approve",
    "find . -name x -exec haft approve {} ;": "haft approve",
    "echo 'haft approve a_1' | at now": "haft approve",
    "echo 'haft approve a_1' | sh": "haft approve",
    "bash <<< 'haft approve a_1'": "haft approve",
    "at now <<EOF\nhaft approve a_1\nEOF": "haft approve",
    "tmux send-keys 'haft approve a_1' Enter": "haft approve",
    "tmux new-window haft approve a_1": "haft approve",
    "systemd-run --user haft approve a_1": "haft approve",
    "echo '* * * * * haft approve a_1' | crontab -": "haft approve",
    "python3 -c 'import os; os.system(\"haft approve a_1\")'": "haft approve",
    'python3 -c \'subprocess.run(["haft", "-q", "approve", x])\'': "haft approve",
    "haft $verb a_1": "haft $verb",
    "haft `echo approve` a_1": "haft `echo approve`",
    "X=haft; $X approve a_1": "haft approve",
}

NOT_FOUND = [
    "",
    "ls -l",
    "haft",
    "haft log",
    "haft inbox",
    "haft inbox --json",
    "haft approve --help",
    "haft tools list",
    "haft tools use shell --command 'make test'",
    "haft use read_file --path a.txt",
    "haft trust --revoke",
    "haft connect",
    "haft connect codex --print",
    "haft permissions list",
    "haft permissions test shell --command ls",
    "haft tokens list",
    "haft undo",
    "haft changes drop r_1",
    "haft run",
    "haft run --help",
    "grep -rn 'haft approve' docs",
    "python -m pytest tests/haft -k approve",
    "python -c 'from haft import approve'",
    "bash scripts/haft.sh run approve",
    "tmux new-window -c haft make run",
    "git commit -m 'haft approve: say more'",
    "echo haft approve",
    "cat haft/approve.md",
    "hafter approve a_1",
    "sh -c 'grep haft README.md'",
]


def context(tmp_path):
    return AnalysisContext(os.path.realpath(tmp_path))


@pytest.mark.parametrize("line", FOUND)
def test_a_command_of_a_person_is_found_in_every_readable_spelling(line, tmp_path):
    assert person_command(line, context(tmp_path)) == FOUND[line]


@pytest.mark.parametrize("line", NOT_FOUND)
def test_other_commands_are_left_alone(line, tmp_path):
    assert person_command(line, context(tmp_path)) is None


def test_a_link_to_haft_is_haft(tmp_path):
    (tmp_path / "haft").touch()
    (tmp_path / "tool").symlink_to("haft")
    assert person_command("./tool approve a_1", context(tmp_path)) == "haft approve"


@pytest.mark.parametrize(
    "line", ["haft approve \0", "haft " * 100_000, "'haft approve", "haft approve $((", "\udcff haft approve x"]
)
def test_any_text_is_accepted(line, tmp_path):
    person_command(line, context(tmp_path))
