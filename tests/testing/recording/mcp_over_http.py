"""An MCP server over HTTP that says which header it got."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}}


@contextmanager
def telling_server():
    """Yields the URL. Its tool `tell` answers with its argument and with the header `Authorization`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            method = message.get("method")
            if method == "initialize":
                info = {"name": "telling", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            elif method == "tools/list":
                result = {"tools": [{"name": "tell", "description": "Tell.", "inputSchema": SCHEMA}]}
            elif method == "tools/call":
                word = message["params"]["arguments"].get("word")
                result = {"content": [{"type": "text", "text": f"{word}, {self.headers['authorization']}\n"}]}
            else:
                self.send_response(404 if "id" in message else 202)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.send_response(405)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
