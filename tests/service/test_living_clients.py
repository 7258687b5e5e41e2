"""Which processes belong to a living client, as the kernel shows them: real processes, sessions and terminals."""

import os
import select
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

from haft.audit import entries
from haft.contracts import RefusedToClient
from haft.service import StateHome, announce, belongs_to, clients_alive, living_clients, process_tree, refuse_clients
from haft.service.process_tree import process
from haft.storage import open_stores
from haft.values import replace

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(process("self") is None, reason="this machine does not show processes"),
]

CHECK = """
import os, sys
from haft.service import StateHome, belongs_to
found = [why for _, why in belongs_to(StateHome(sys.argv[1]))]
with open(sys.argv[2] + ".tmp", "w") as file:
    file.write(found[0] if found else "a person")
os.rename(sys.argv[2] + ".tmp", sys.argv[2])
"""

SUBREAPER = "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1); os.execvp(sys.argv[1], sys.argv[1:])"


class Shell:
    """A shell that runs the lines it is given, in a session of its own."""

    def __init__(self, *words):
        self.program = subprocess.Popen(
            words or ("sh",), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, text=True
        )
        self.run("echo ready; echo $$")
        assert self.program.stdout.readline() == "ready\n"
        self.pid = int(self.program.stdout.readline())

    def run(self, line):
        self.program.stdin.write(f"{line}\n")
        self.program.stdin.flush()

    def end(self):
        self.program.stdin.close()
        self.program.wait()
        self.program.stdout.close()


@contextmanager
def shell(*words):
    made = Shell(*words)
    try:
        yield made
    finally:
        made.end()


class Reference:
    def __enter__(self):
        self.program = subprocess.Popen(["sleep", "60"])
        return self.program

    def __exit__(self, *_):
        self.program.kill()
        self.program.wait()


def next_tick():
    """Return when a process that starts now has a later start time than every process that exists."""
    with Reference() as first:
        started = process(first.pid).started
    while True:
        with Reference() as later:
            if process(later.pid).started > started:
                return


@pytest.fixture
def home(tmp_path):
    made = StateHome(str(tmp_path / "home"))
    made.prepare()
    return made


class Asked:
    """The command that says whether it was taken for a person's."""

    def __init__(self, home, directory):
        self._answer = os.path.join(directory, "answer")
        program = os.path.join(directory, "check.py")
        with open(program, "w") as file:
            file.write(CHECK)
        self.line = shlex.join([sys.executable, program, home.path, self._answer])

    def answer(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(FileNotFoundError), open(self._answer) as file:
                return file.read()
            select.select([], [], [], 0.01)
        raise AssertionError("no answer")


@pytest.fixture
def asked(home, tmp_path):
    return Asked(home, str(tmp_path))


DESCENDS = "it descends from this client"
SHARES = "it shares the session of this client"
LOOSE = "it was cut loose from its parents, and has no terminal older than this client"

SPELLINGS = {
    "plainly": ("{}", DESCENDS),
    "with setsid": ("setsid -w {}", DESCENDS),
    "in a new terminal": ("script -qec {quoted} /dev/null </dev/null >/dev/null", DESCENDS),
    "as an orphan": ("(sh -c {orphan} &)", SHARES),
    "as an orphan in a session of its own": ("setsid sh -c {orphan}", LOOSE),
    "as an orphan with a new terminal": ("setsid sh -c {terminal}", LOOSE),
}


ELSEWHERE = "it runs in another container or namespace, where haft cannot compare processes"


def may_unshare(*options):
    return subprocess.run(["unshare", *options, "true"], check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    "options",
    [("-Urpf", "--mount-proc"), ("-Urpf",), ("-UrT", "--boottime", "100000")],
    ids=["pids", "pids, with the old /proc", "times"],
)
def test_a_namespace_of_its_own_hides_no_command_of_a_client(options, home, asked):
    if shutil.which("unshare") is None or not may_unshare(*options):
        pytest.skip("this user can make no such namespace")
    with shell() as agent:
        announce(home, "agent", agent.pid)
        loose = spelled("setsid sh -c {orphan}", f"unshare {shlex.join(options)} {asked.line}")
        agent.run(loose)
        assert asked.answer() == ELSEWHERE


@pytest.mark.parametrize("is_released", [False, True], ids=["announced", "its server was killed"])
def test_a_command_that_sees_no_processes_may_be_a_clients(is_released, home, asked):
    if shutil.which("unshare") is None or not may_unshare("-Urm", "sh", "-c", "mount -t tmpfs none /proc"):
        pytest.skip("this user can make no such namespace")
    with shell() as agent:
        announcement = announce(home, "agent", agent.pid)
        if is_released:
            announcement.release()
        agent.run(f"unshare -Urm sh -c {shlex.quote(f'mount -t tmpfs none /proc; {asked.line}')}")
        assert asked.answer() == ELSEWHERE


def test_a_process_outside_the_clients_container_is_a_persons(home):
    if shutil.which("unshare") is None or not may_unshare("-Urpf", "--mount-proc"):
        pytest.skip("this user can make no such namespace")
    code = (
        "import sys; from haft.service import StateHome, announce; "
        "announce(StateHome(sys.argv[1]), 'agent', 1); print('ready', flush=True); sys.stdin.read()"
    )
    words = ["unshare", "-Urpf", "--mount-proc", sys.executable, "-c", code, home.path]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as container:
        assert container.stdout.readline() == "ready\n"
        assert [client.pid for client in clients_alive(home)] == [1]
        assert list(belongs_to(home)) == []
        container.stdin.close()


def spelled(spelling, line):
    orphan = shlex.quote(f"(while kill -0 $$; do :; done; {line}) </dev/null >/dev/null 2>&1 &")
    script = f"script -qec {shlex.quote(line)} /dev/null"
    terminal = shlex.quote(f"(while kill -0 $$; do :; done; {script}) </dev/null >/dev/null 2>&1 &")
    return spelling.format(line, quoted=shlex.quote(line), orphan=orphan, terminal=terminal)


@pytest.mark.parametrize("way", SPELLINGS)
def test_a_command_of_a_client_is_known_however_it_is_started(way, home, asked):
    spelling, why = SPELLINGS[way]
    with shell() as agent:
        announce(home, "agent", agent.pid)
        agent.run(spelled(spelling, asked.line))
        assert asked.answer() == why


@pytest.mark.parametrize("way", ["as an orphan in a session of its own", "as an orphan with a new terminal"])
def test_an_orphan_that_a_subreaper_adopted_is_known(way, home, asked):
    spelling, why = SPELLINGS[way]
    with shell(sys.executable, "-c", SUBREAPER, "sh") as reaper:
        next_tick()
        reaper.run("setsid sh -c 'echo $$; read line; eval \"$line\"; read end' <&0")
        agent = int(reaper.program.stdout.readline())
        announce(home, "agent", agent)
        reaper.run(spelled(spelling, asked.line))
        assert asked.answer() == why


def test_a_subreaper_of_the_client_hides_nothing(home, asked):
    with shell() as agent:
        announce(home, "agent", agent.pid)
        inner = shlex.join(
            [sys.executable, "-c", SUBREAPER, "sh", "-c", f"setsid script -qec '{asked.line}' /dev/null"]
        )
        agent.run(spelled("setsid sh -c {orphan}", inner))
        assert asked.answer() == LOOSE


def test_a_process_older_than_the_client_is_a_persons(home):
    with shell() as agent:
        next_tick()
        with shell() as later:
            announce(home, "agent", later.pid)
            assert list(belongs_to(home)) == []
            assert agent.pid != later.pid


def test_a_new_terminal_that_an_older_program_opened_is_a_persons(home, asked):
    next_tick()
    with shell() as agent:
        announce(home, "agent", agent.pid)
        next_tick()
        subprocess.run(["script", "-qec", asked.line, "/dev/null"], stdin=subprocess.DEVNULL, check=True, timeout=60)
        assert asked.answer() == "a person"


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
def test_a_new_window_of_a_terminal_multiplexer_is_a_persons_though_the_client_runs_in_another(home, asked, tmp_path):
    socket = str(tmp_path / "tmux")
    tmux = ["tmux", "-f", "/dev/null", "-S", socket]
    subprocess.run([*tmux, "new-session", "-d", "sh"], check=True, stdin=subprocess.DEVNULL)
    try:
        next_tick()
        command = [*tmux, "new-window", "-P", "-F", "#{pane_pid}", "sh"]
        agent = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        announce(home, "agent", int(agent.stdout))
        next_tick()
        subprocess.run([*tmux, "new-window", asked.line], check=True, stdin=subprocess.DEVNULL)
        assert asked.answer() == "a person"
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


@pytest.mark.parametrize("start", ["setsid -w ", ""], ids=["in a session of its own", "in the scheduler's session"])
def test_a_command_of_a_scheduler_without_a_terminal_may_be_the_clients(home, asked, tmp_path, start):
    shutil.copy(shutil.which("dash") or shutil.which("sh"), tmp_path / "crond")
    with shell(str(tmp_path / "crond")) as scheduler:
        next_tick()
        with shell() as agent:
            announce(home, "agent", agent.pid)
            next_tick()
            scheduler.run(f"{start}{asked.line}")
            assert asked.answer() == "crond started it without a terminal, after this client"


def test_a_client_that_ended_counts_no_more_and_leaves_no_file(home):
    with shell() as agent:
        announced = announce(home, "agent", agent.pid)
        assert [client.name for client in clients_alive(home)] == ["agent"]
    assert clients_alive(home) == []
    announced.release()
    assert os.listdir(os.path.join(home.path, "clients")) == []


def test_a_client_counts_after_the_server_that_announced_it_was_killed(home, asked):
    with shell() as agent:
        code = (
            "import os, sys; from haft.service import StateHome, announce; "
            "announce(StateHome(sys.argv[1]), 'agent', int(sys.argv[2])); os.kill(os.getpid(), 9)"
        )
        subprocess.run([sys.executable, "-c", code, home.path, str(agent.pid)], check=False)
        agent.run(asked.line)
        assert asked.answer() == DESCENDS


def test_an_announcement_that_was_removed_comes_back(home):
    with shell() as agent:
        announced = announce(home, "agent", agent.pid)
        (name,) = os.listdir(os.path.join(home.path, "clients"))
        os.unlink(os.path.join(home.path, "clients", name))
        assert clients_alive(home) == []
        announced.renew()
        assert [client.pid for client in clients_alive(home)] == [agent.pid]


def test_two_announcements_of_one_client_are_one_client(home):
    with shell() as agent:
        announce(home, "agent", agent.pid)
        announce(home, "agent", agent.pid)
        assert len(clients_alive(home)) == 1


def test_a_refusal_names_the_client_and_is_in_the_audit_log(home):
    announced = announce(home, "agent", os.getpid())
    try:
        with pytest.raises(RefusedToClient) as refused:
            refuse_clients(home, "haft approve")
    finally:
        announced.release()
        for name in os.listdir(os.path.join(home.path, "clients")):
            os.unlink(os.path.join(home.path, "clients", name))
    assert f"`agent` (pid {os.getpid()})" in refused.value.message
    (entry,) = entries(open_stores(home).audit_log())
    assert (entry["type"], entry["command"], entry["who"], entry["whoKind"]) == (
        "refuse",
        "haft approve",
        "agent",
        "agent",
    )
    assert entry["reason"] == DESCENDS


def test_a_login_after_the_client_is_a_persons(monkeypatch):
    """The two signs of a login: what the kernel counts, and a parent of root."""
    init, login, own = _process(1, 0, "init", 0), _process(50, 500, "login", 0), _process(60, 600, "haft", 1000)
    chain = [replace(own, parent=50), replace(login, parent=1), init]
    client = living_clients.LivingClient("agent", 40, 400, 40, process_tree.namespaces())
    monkeypatch.setattr(process_tree, "sees_real_owners", lambda: True)
    assert living_clients._is_other_login(chain[1], chain, client)
    for name in ("sudo", "su", "pkexec"):
        switched = [chain[0], replace(chain[1], name=name), init]
        assert not living_clients._is_other_login(switched[1], switched, client), name
    plain = [chain[0], replace(chain[1], owner=1000), init]
    assert not living_clients._is_other_login(plain[1], plain, client)
    monkeypatch.setattr(process_tree, "login_of", {60: 7, 40: 6}.get)
    assert living_clients._is_other_login(plain[1], plain, client)


def _process(pid, started, name, owner):
    return process_tree.Process(pid, started, 0, pid, 0, name, owner)


def test_a_file_that_is_not_an_announcement_is_no_client(home):
    os.makedirs(os.path.join(home.path, "clients"))
    with open(os.path.join(home.path, "clients", "x"), "w") as file:
        file.write("rubbish")
    assert clients_alive(home) == []
