"""The servers of the world: each connection and each request is written to `seen.jsonl`, so that tests can tell what
has really left a call."""

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import resource
import socket
import ssl
import struct
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from names import CHANGING, CHANGING_ADDRESSES, PROBE

IPV6_FREEBIND = 78
BLOCK = b"x" * (1 << 18)


class Seen:
    """Writes what servers see. Several threads use it."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, **facts):
        os.write(self._file, json.dumps(facts).encode() + b"\n")


def serve(place, ready):
    """Serve for ever. `ready` is called when all servers listen."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    threading.stack_size(1 << 18)
    seen = Seen(f"{place}/seen.jsonl")
    serve_web(place, seen)
    serve_names(seen)
    with contextlib.suppress(ImportError):
        from ssh_server import serve_ssh

        serve_ssh("20.0.0.1", place, seen)
        serve_ssh("20.0.0.66", place, seen)
    asyncio.run(serve_streams(seen, ready))


# HTTP


def handler(place, seen):
    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __init__(self, *words):
            super().__init__(*words, directory=f"{place}/www")

        def setup(self):
            super().setup()
            self.see()

        def see(self, **facts):
            address, port = self.connection.getsockname()[:2]
            seen.add(address=address, port=port, **facts)

        def log_message(self, *words):
            pass

        def answer(self, body):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def host(self):
            """The host that the request names: as lenient as servers are that can be deceived."""
            if "://" in self.path:
                return self.path.split("/")[2]
            return (self.headers.get_all("Host") or [""])[-1].strip()

        def do_GET(self):
            self.see(host=self.host(), path=self.path)
            if self.path.startswith("/bytes/"):
                size = int(self.path[7:])
                self.send_response(200)
                self.send_header("Content-Length", str(size))
                self.end_headers()
                while size > 0:
                    self.wfile.write(BLOCK[:size])
                    size -= len(BLOCK)
            elif self.path == "/ws":
                self.speak_websocket()
            elif self.path.startswith(("/npm/", "/simple/", "/repo.git/")):
                super().do_GET()
            else:
                self.answer(f"hello {self.host()} at {self.connection.getsockname()[0]}\n".encode())

        def speak_websocket(self):
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            while head := self.rfile.read(2):
                mask, data = self.rfile.read(4), self.rfile.read(head[1] & 127)
                text = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
                self.wfile.write(bytes((head[0], len(text))) + text)
                if head[0] & 15 == 8:
                    break
            self.close_connection = True

        def do_POST(self):
            self.see(host=self.host(), path=self.path)
            size, got = int(self.headers.get("Content-Length", 0)), 0
            if self.headers.get("Transfer-Encoding"):
                size = 0
                while length := int(self.rfile.readline(), 16):
                    got += len(self.rfile.read(length))
                    self.rfile.readline()
                self.rfile.readline()
            while got < size:
                got += len(self.rfile.read(min(1 << 18, size - got)))
            self.answer(str(got).encode())

        do_PUT = do_POST

        def do_CONNECT(self):
            """As a proxy that opens every host."""
            self.see(connect=self.path)
            host, _, port = self.path.rpartition(":")
            self.close_connection = True
            try:
                outer = socket.create_connection((host, int(port)), 10)
            except OSError as error:
                self.send_error(502, str(error))
                return
            with outer:
                self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                threading.Thread(target=copy, args=(outer, self.connection), daemon=True).start()
                outer.sendall(self.rfile.read1(1 << 16))
                copy(self.connection, outer)

    return Handler


def copy(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


class Server(ThreadingHTTPServer):
    request_queue_size = 1024

    def __init__(self, address, port, handler, context=None):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.context = context
        super().__init__((address, port), handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_bind(self):
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = self.server_address[:2]

    def finish_request(self, request, client):
        if self.context is not None:  # In the thread of the request: a client that says nothing holds up no other.
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client)

    def handle_error(self, *_words):
        pass


def serve_web(place, seen):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(f"{place}/cert.pem", f"{place}/key.pem")
    web = handler(place, seen)
    for address in ("20.0.0.1", "20.0.0.2", "20.0.0.66", "2600::1"):
        Server(address, 80, web)
        Server(address, 443, web, context)
    for address, port in (
        ("20.0.0.1", 8080), ("20.0.0.66", 8080), ("20.0.0.5", 3128), ("169.254.169.254", 80), ("10.1.2.3", 80),
        ("127.0.0.1", 80), ("127.0.0.1", 5599),
    ):  # fmt: skip
        Server(address, port, web)


# Streams


async def serve_streams(seen, ready):
    def talk(speak):
        async def talk(reader, writer):
            address, port = writer.get_extra_info("sockname")[:2]
            seen.add(address=address, port=port)
            with contextlib.suppress(OSError):
                await speak(reader, writer)
                writer.close()

        return talk

    async def echo(reader, writer):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()

    async def pour(_reader, writer):
        while True:
            writer.write(BLOCK)
            await writer.drain()

    async def count(reader, writer):
        total = 0
        while data := await reader.read(1 << 20):
            total += len(data)
        writer.write(str(total).encode())
        await writer.drain()

    async def greet(reader, writer):
        writer.write(b"220 speaks first\r\n")
        await echo(reader, writer)

    for port, speak in ((7000, echo), (7001, pour), (7002, count), (7004, greet)):
        for address in ("20.0.0.1", "20.0.0.66"):
            await asyncio.start_server(talk(speak), address, port, backlog=4096)

    class Datagrams(asyncio.DatagramProtocol):
        def connection_made(self, transport):
            self.transport = transport

        def datagram_received(self, data, who):
            seen.add(address="20.0.0.66", port=443, datagram=len(data))
            self.transport.sendto(b"hello", who)

    await asyncio.get_running_loop().create_datagram_endpoint(Datagrams, ("20.0.0.66", 443))
    ready()
    await asyncio.Event().wait()


# Names


def serve_names(seen):
    """Answer look-ups of the few names that are not in the file of hosts."""
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind(("127.0.0.1", 53))
    told = []

    def address_of(name):
        if name == CHANGING:
            told.append(name)
            return CHANGING_ADDRESSES[0 if len(told) == 1 else 1]
        return "20.0.0.1" if name == PROBE else None

    def answer():
        while True:
            with contextlib.suppress(IndexError, OSError):
                answer_one(*end.recvfrom(2048))

    def answer_one(query, who):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1"))
            at += 1 + query[at]
        name, kind = ".".join(labels).lower(), int.from_bytes(query[at + 1 : at + 3], "big")
        seen.add(query=name, kind=kind)
        is_known = name in (CHANGING, PROBE)
        record = b""
        if is_known and kind == 1:
            record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(address_of(name))
        head = query[:2] + struct.pack(">HHHHH", 0x8180 | (0 if is_known else 3), 1, bool(record), 0, 0)
        end.sendto(head + query[12 : at + 5] + record, who)

    threading.Thread(target=answer, daemon=True).start()


# What they serve


def openssl(place, *words):
    subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=place)


def make_certificates(place, names):
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl(
        place, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=world",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign",
    )  # fmt: skip
    openssl(place, "req", *key, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=good.example")
    with open(f"{place}/extensions", "w") as file:
        file.write("subjectAltName=" + ",".join(f"DNS:{name}" for name in names) + "\n")
    openssl(
        place, "x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
        "-out", "cert.pem", "-days", "2", "-extfile", "extensions",
    )  # fmt: skip
