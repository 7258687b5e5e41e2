"""A server for git over ssh: it lets everybody in, and runs only `git-upload-pack` of one repository."""

import contextlib
import shlex
import socket
import subprocess
import threading

import paramiko


class Anybody(paramiko.ServerInterface):
    def __init__(self):
        self.command = threading.Event()
        self.words = []

    def check_auth_none(self, _username):
        return paramiko.AUTH_SUCCESSFUL

    def get_allowed_auths(self, _username):
        return "none"

    def check_channel_request(self, _kind, _number):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_env_request(self, _channel, _name, _value):
        return True

    def check_channel_exec_request(self, _channel, command):
        self.words = shlex.split(command.decode())
        self.command.set()
        return True


def serve_ssh(address, place, seen):
    listener = socket.create_server((address, 22))
    key = paramiko.ECDSAKey.generate()

    def talk(end):
        with contextlib.suppress(Exception), end:
            with paramiko.Transport(end) as transport:
                transport.add_server_key(key)
                server = Anybody()
                transport.start_server(server=server)
                channel = transport.accept(20)
                server.command.wait(20)
                upload(channel, server.words[0])

    def upload(channel, program):
        git = subprocess.Popen(
            ["git", "-c", "safe.directory=*", program.removeprefix("git-"), f"{place}/www/repo.git"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

        def forward():
            with contextlib.suppress(OSError):
                while data := channel.recv(1 << 15):
                    git.stdin.write(data)
                    git.stdin.flush()
                git.stdin.close()

        threading.Thread(target=forward, daemon=True).start()
        while data := git.stdout.read1(1 << 15):
            channel.sendall(data)
        channel.send_exit_status(git.wait())
        channel.close()

    def accept():
        while True:
            end, _ = listener.accept()
            seen.add(address=address, port=22)
            threading.Thread(target=talk, args=(end,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
