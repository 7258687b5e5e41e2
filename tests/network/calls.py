"""Makes the calls of the checks, in the world that `world.py` has entered, through haft's Python API.

    python calls.py PLACE PART    # PART: the checks that one process makes

Each call gets a result: how it ended, its output, and the connections and notes of its outcome.
"""

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import sys
import time

from haft.service import ToolService

AT_ONCE = 5
SETTINGS = {"sandbox.network_ask_seconds": 0, "limits.max_concurrent": 40, "limits.max_seconds": 300}
TRUST_VARIABLES = ("GIT_SSL_CAINFO", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")


async def approve(_request):
    return True


class Calls:
    def __init__(self, service, place):
        self.service = service
        self.place = place
        self.results = {}
        variables = dict.fromkeys(TRUST_VARIABLES, f"{service.workspace}/ca.pem")
        variables |= {"HOME": "/tmp", "LANG": "C.UTF-8", "npm_config_update_notifier": "false"}
        self.exports = "export " + " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())

    def start(self, check):
        command = check["command"].replace("@PYTHON@", sys.executable).replace("@HERE@", self.service.workspace)
        grants = {"network": check["network"]} if check["network"] else None
        return self.service.call("shell", {"command": f"{self.exports}\n{command}"}, grants=grants, timeout=200)

    async def run(self, check):
        for program in check["needs"]:
            if not (await self.has_postgres() if program == "postgres" else self.has(program)):
                return {"missing": f"{program} is not on this machine"}
        scenario = getattr(self, check["scenario"], None) if check["scenario"] else None
        return await scenario(check) if scenario else self.result(await self.start(check))

    def result(self, outcome, **more):
        return {
            "status": outcome.status,
            "code": outcome.exit_code,
            "output": outcome.output,
            "connections": [each.to_json() for each in outcome.connections],
            "notes": list(outcome.notes),
            "error": None if outcome.error is None else outcome.error.to_json(),
            **more,
        }

    def has(self, program):
        if program in ("gcc", "go"):
            name = "static" if program == "gcc" else "static-go"
            return os.path.exists(f"{self.service.workspace}/{name}")
        return shutil.which(program) is not None

    async def has_postgres(self):
        while not os.path.exists(f"{self.place}/postgres"):
            await asyncio.sleep(0.05)
        with open(f"{self.place}/postgres") as file:
            return file.read() == "up"

    async def until_output(self, run, words):
        async for event in run:
            if words in event.text:
                return
        raise AssertionError(f"the call ended without {words!r}: {(await run).output}")

    # Scenarios that are more than one call

    async def cancelled(self, check):
        """A call is cancelled while bytes flow."""
        run = self.start(check)
        await self.until_output(run, "flowing")
        run.cancel()
        result = self.result(await run)
        return result | {"next": (await self.start({**check, "command": check["then"]})).output}

    async def slow(self, check):
        """The memory of the egress process, while connections of a call bring bytes that it does not read."""
        before = self.memory()
        run = self.start(check)
        await self.until_output(run, "waiting")
        grown = self.memory() - before
        run.cancel()
        return self.result(await run, grown=grown)

    async def beside(self, check):
        """A call without a grant, while another call has a connection."""
        holder = self.start(check)
        await self.until_output(holder, "holding")
        intruder = await self.start({**check, "command": check["then"], "network": ["dead.example"]})
        holder.cancel()
        return self.result(await holder, intruder=self.result(intruder))

    async def outlived(self, check):
        """A call leaves a child behind. Then another call runs longer than the child would wait."""
        outcome = await self.start(check)
        then = await self.start({**check, "command": check["then"]})
        return self.result(outcome, next=then.output)

    def memory(self):
        pid = self.egress()
        if pid is None:
            return 0
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def egress(self):
        return self.service._host.sandbox.hosts.egress_pid


async def run_all(place, part):
    with open(f"{place}/checks.json") as file:
        checks = [each for each in json.load(file) if each["part"] == part]
    if not checks:
        return {}
    workspace = f"{place}/workspace-{part}"
    os.makedirs(workspace)
    for name in ("ca.pem", "static", "static-go"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(f"{place}/{name}", workspace)
    settings = dict(SETTINGS)
    async with ToolService.open(
        workspace, approver=approve, home=f"{place}/state", installed=False, settings=settings
    ) as service:
        calls, slots = Calls(service, place), asyncio.Semaphore(AT_ONCE)

        async def one(check):
            async with slots:
                began = time.monotonic()
                try:
                    found = await asyncio.wait_for(calls.run(check), 250)
                except Exception as error:
                    found = {"failed": repr(error)}
                found["seconds"] = round(time.monotonic() - began, 2)
                calls.results[check["name"]] = found

        for stage in sorted({each["stage"] for each in checks}):
            await asyncio.gather(*(one(each) for each in checks if each["stage"] == stage))
        return calls.results


def main(place, part):
    results = asyncio.run(run_all(place, part))
    with open(f"{place}/results-{part}.json", "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
