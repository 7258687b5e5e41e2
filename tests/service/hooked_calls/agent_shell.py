"""An agent's shell, as tests have it: the streams of the process that runs a rewritten line."""

import asyncio
import os
import threading

from haft import ToolService


class Shell:
    """The streams of an agent's shell: pipes, whose other ends are read to the end."""

    def __init__(self, stdin=b"", merged=False):
        self.stdin, feed = os.pipe()
        os.write(feed, stdin)
        os.close(feed)
        self.read, self.texts = [], {}
        self.stdout = self._pipe("stdout")
        self.stderr = os.dup(self.stdout) if merged else self._pipe("stderr")

    def _pipe(self, name):
        reading, writing = os.pipe()

        def read():
            with os.fdopen(reading, "rb") as file:
                self.texts[name] = file.read().decode()

        self.read.append(threading.Thread(target=read))
        self.read[-1].start()
        return writing

    def streams(self):
        return {"stdin": self.stdin, "stdout": self.stdout, "stderr": self.stderr}

    def close(self):
        for descriptor in (self.stdin, self.stdout, self.stderr):
            os.close(descriptor)
        for thread in self.read:
            thread.join()


def with_service(tmp_path, body, **options):
    async def main():
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        async with ToolService.open(workspace, home=tmp_path / "home", **options) as service:
            return await body(service, workspace)

    return asyncio.run(main())


async def run(service, decision, command, cwd, stdin=b"", merged=False):
    shell = Shell(stdin, merged)
    try:
        end = await service.hooked.run(decision.ticket, command, cwd=str(cwd), **shell.streams())
    finally:
        shell.close()
    return end, shell.texts
