"""Processes: the only package that starts any.

A command is started by a helper program, streamed from its descriptors, and ended with everything below it. Above stand
the tools, which know only the `Launcher` port. This package decides nothing: the sandbox and the limits come in as
terms."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.processes.handle import Starter
    from haft.processes.helper import Helper
    from haft.processes.launcher import ProcessLauncher, ProcessSession, Stale, plain_starter, replaced
    from haft.processes.warm import WarmStarter

__getattr__ = face(
    __name__,
    {
        "handle": "Starter",
        "helper": "Helper",
        "launcher": "ProcessLauncher ProcessSession Stale plain_starter replaced",
        "warm": "WarmStarter",
    },
)
