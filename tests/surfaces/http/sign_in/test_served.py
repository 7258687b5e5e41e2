"""A server as a person starts it: signing in with a link from the command line, and its webhooks."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from haft import Principal
from haft.service import Tokens, user_name

SECONDS = 60


class Receiver(ThreadingHTTPServer):
    """Keeps the messages that it receives."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.messages = []
        self.news = threading.Condition()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.news:
            self.server.messages.append(message)
            self.server.news.notify_all()
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_words):
        pass


@pytest.fixture
def receiver():
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def environment(tmp_path, receiver):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "config/haft").mkdir(parents=True)
    hook = f'url = "http://127.0.0.1:{receiver.server_port}/"\nsecret = "0123456789abcdef"\nprivate = true\n'
    (tmp_path / "config/haft/haft.toml").write_text(f"[[server.webhooks]]\n{hook}")
    return os.environ | {"HAFT_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def served(tmp_path, environment):
    command = [sys.executable, "-m", "haft", "serve", "http", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        command, cwd=tmp_path / "workspace", stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        try:
            line = server.stderr.readline()
            assert line.startswith("haft serves http://127.0.0.1:"), line + server.stderr.read()
            yield line.split()[-1]
        finally:
            server.kill()


def test_a_person_signs_in_with_a_link_and_a_receiver_hears_of_a_failed_call(tmp_path, environment, served, receiver):
    made = subprocess.run(
        [sys.executable, "-m", "haft", "tokens", "link", served],
        capture_output=True,
        text=True,
        env=environment,
        timeout=SECONDS,
    )
    address, _, link = made.stdout.strip().partition("#")
    assert address == f"{served}/sign-in", made.stderr
    token = Tokens(tmp_path / "state").add("ben", Principal("ana"), kind="person")[1]
    with httpx.Client(base_url=served, timeout=SECONDS, trust_env=False) as browser:
        assert browser.get(address).status_code == 200
        assert browser.post("/sign-in/session", json={"token": link}).json() == {"name": user_name()}
        me = browser.get("/api/v1/me").json()
        assert (me["kind"], me["roles"]) == ("person", ["operator"])
        call = {"tool": "read_file", "args": {"path": "the-secret-plan"}}
        bearer = {"Authorization": f"Bearer {token}"}
        outcome = browser.post("/api/v1/workspaces/default/calls", json=call, headers=bearer).json()
        assert (outcome["status"], outcome["who"]) == ("error", "ben")
        with receiver.news:
            assert receiver.news.wait_for(lambda: receiver.messages, SECONDS)
        (message,) = receiver.messages
        assert (message["type"], message["data"]["run"]) == ("run.failed", outcome["run"])
        assert message["data"]["link"] == f"{served}/w/default/runs/{outcome['run']}"
        assert "the-secret-plan" not in json.dumps(message)
        assert browser.get(message["data"]["link"]).status_code == 200
        browser.cookies.clear()
        asked = browser.get(message["data"]["link"])
        assert asked.status_code == 303 and asked.headers["location"].startswith("/sign-in?to=")
