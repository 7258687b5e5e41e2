"""The client that the conformance suite starts for each scenario: haft, as a person uses it at a command line.

The suite gives the address of its server as the last word, and the scenario in the environment. Here the server becomes
a provider of a fresh state home; its tools are called with `haft tools use`, and `haft providers login` logs in, with
this program as the browser. haft is loaded once, and every command is a process forked from this one.

    node …/conformance client --command "python tests/mcp/conformance_client.py" --scenario tools_call
"""

import contextlib
import json
import os
import select
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request
from pathlib import Path

NAME = "suite"
MOST_LOGINS = 3
SECONDS = 60
CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
"""The address that the suite knows as a client's description of itself."""


class Haft:
    """haft, with one provider, in a place of its own."""

    def __init__(self, place, url, oauth):
        self._workspace = Path(place) / "workspace"
        self._workspace.mkdir()
        config = Path(place) / "config" / "haft"
        config.mkdir(parents=True)
        settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in oauth.items())
        (config / "haft.toml").write_text(
            f'permissions = [{{tool = "*", action = "allow"}}]\n'
            f"[providers.{NAME}]\nurl = {json.dumps(url)}\n[providers.{NAME}.oauth]\n{settings}"
        )
        self._env = {"HAFT_HOME": str(Path(place) / "home"), "XDG_CONFIG_HOME": str(Path(place) / "config")}
        self._logins = 0

    def run(self, *words, watch=None):
        """Run a command of haft: see `_forked`."""
        return self._forked(lambda: _command(words), " ".join(words), watch)

    def list_everything(self):
        """Ask for resources and prompts: an MCP client of haft would, for whom no command is."""
        self._forked(_list_everything, "(resources and prompts)", None)

    def _forked(self, work, words, watch):
        """Run a command, and return its exit code, what it printed and what it said. `watch` gets each line that it
        says."""
        out, err = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become(work, out[1], err[1])
        os.close(out[1])
        os.close(err[1])
        said = {out[0]: b"", err[0]: b""}
        end, told = time.monotonic() + SECONDS, 0
        waiting = set(said)
        while waiting:
            for one in select.select(waiting, [], [], 0.3)[0]:
                part = os.read(one, 65536)
                said[one] += part
                if not part:
                    waiting.discard(one)
                    os.close(one)
            lines = said[err[0]].decode().splitlines(keepends=True)
            for line in [line for line in lines if line.endswith("\n")][told:]:
                told += 1
                print("haft:", line, end="", file=sys.stderr, flush=True)
                if watch is not None:
                    watch(line.strip())
            if time.monotonic() > end:
                os.kill(pid, 9)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print("$ haft", words, "→", code, file=sys.stderr, flush=True)
        return code, said[out[0]].decode(), said[err[0]].decode()

    def _become(self, work, out, err):
        code = 70
        try:
            nothing = os.open(os.devnull, os.O_RDONLY)
            for number, stream in enumerate((nothing, out, err)):
                os.dup2(stream, number)
            os.environ.update(self._env)
            os.chdir(self._workspace)
            work()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def connect(self):
        """Ask the server for its tools, after a login if it wants one. Returns whether that worked."""
        code, _out, err = self.run("providers", "restart", NAME)
        return code == 0 or ("providers login" in err and self.login())

    def login(self):
        """Log in, with this program as the browser. Returns whether that worked."""
        if self._logins >= MOST_LOGINS:
            return False
        self._logins += 1
        code, _out, _err = self.run("providers", "login", NAME, "--no-browser", watch=browse)
        return code == 0

    def tools(self):
        """The tools of the server by their names there, as haft lists them."""
        listed = json.loads(self.run("tools", "list", "--source", "mcp", "--json")[1])
        return {tool["meta"]["mcp"]["tool"]: tool for tool in listed if "tool" in tool["meta"].get("mcp", {})}

    def use(self, tool, arguments):
        """Call a tool, once more after each login that it wants."""
        return self.use_own(f"mcp__{NAME}__{tool}", arguments)

    def use_own(self, tool, arguments):
        words = ("tools", "use", tool, "--args", json.dumps(arguments), "--wait", str(SECONDS), "--json")
        while True:
            outcome = json.loads(self.run(*words, watch=self._answer)[1])
            hint = (outcome["error"] or {}).get("hint") or ""
            if "providers login" not in hint or not self.login():
                return outcome

    def _answer(self, line):
        """Answer the questions of a server with the values that it suggests."""
        if f"the MCP server `{NAME}`" not in line:
            return
        end = time.monotonic() + 10  # The inbox has the question a moment later than the terminal.
        while not (waiting := json.loads(self.run("inbox", "--json")[1])) and time.monotonic() < end:
            time.sleep(0.1)
        for request in waiting:
            properties = request["question"]["params"]["requestedSchema"].get("properties", {})
            values = {name: field["default"] for name, field in properties.items() if "default" in field}
            self.run("approve", request["id"], "--args", json.dumps(values))


def _command(words):
    from haft.surfaces.cli.main import main

    main(words)


def _list_everything():
    import asyncio

    from haft import ToolService

    async def ask():
        async with ToolService.open(workspace=".") as service:
            assert await service.providers.resources()
            assert await service.providers.prompts()

    asyncio.run(ask())


def browse(line):
    """Open the login page that haft shows, as a browser of a person who approves would."""
    if not line.startswith("http"):
        return
    with contextlib.suppress(urllib.error.URLError):
        back = _location(line)
        if back is not None:
            urllib.request.urlopen(back, timeout=10).read()


def _location(address):
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    try:
        urllib.request.build_opener(Stay).open(address, timeout=10)
    except urllib.error.HTTPError as answer:
        return answer.headers.get("location")
    return None


def sample(schema):
    """Arguments that a schema accepts."""
    values = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None}
    properties = schema.get("properties", {})
    return {name: values[properties[name].get("type", "string")] for name in schema.get("required", ())}


def call_all(haft, context):
    """Call all tools, or those that the scenario names."""
    tools = haft.tools()
    wanted = context.get("toolCalls") or [{"name": name, "arguments": None} for name in tools]
    for call in wanted:
        given = sample(tools[call["name"]]["inputSchema"]) if call["arguments"] is None else call["arguments"]
        # haft refuses null where the schema does not allow it; to leave the parameter out means the same.
        haft.use(call["name"], {name: value for name, value in given.items() if value is not None})


def add(haft, _context):
    assert haft.use("add_numbers", {"a": 5, "b": 3})["status"] == "done"


def read_everything(haft, context):
    """Every kind of request that has a name of its own in a header."""
    call_all(haft, context)
    haft.list_everything()
    haft.use_own("read_resource", {"server": NAME, "uri": "file:///path/to/file%20name.txt"})
    haft.use_own("get_prompt", {"server": NAME, "name": "test_prompt"})


def echo_schema(haft, _context):
    schema = haft.tools()["json_schema_2020_12_tool"]["inputSchema"]
    haft.use("json_schema_echo", {"schema": schema})


SCENARIOS = {
    "tools_call": add,
    "http-standard-headers": read_everything,
    "json-schema-2020-12-preservation": echo_schema,
    "initialize": lambda haft, context: None,
    "json-schema-ref-no-deref": lambda haft, context: None,
    "request-metadata": lambda haft, context: None,
}


def main():
    import haft.sources.mcp.remote.http
    import haft.sources.mcp.remote.login
    import haft.sources.mcp.server
    import haft.surfaces.cli.main

    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    oauth = {name: context[name] for name in ("client_id", "client_secret") if context.get(name)}
    if scenario == "auth/client-credentials-basic":
        oauth["grant"] = "client_credentials"
    if scenario == "auth/basic-cimd":
        oauth["client_metadata_url"] = CLIENT_METADATA
    with tempfile.TemporaryDirectory() as place:
        haft = Haft(place, sys.argv[-1], oauth)
        if not haft.connect():
            sys.exit(1)
        SCENARIOS.get(scenario, call_all)(haft, context)


if __name__ == "__main__":
    main()
