"""The only package that starts processes.

A helper program starts each command; this package reads the output, and ends the command with all its descendants.
Tools know only the protocol `Launcher`, not this package. This package decides nothing: it passes on the sandbox and
the limits that it is given."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.processes.blocking import BlockingExit, read_output, run_blocking
    from haft.processes.egress import Egress, EgressCall
    from haft.processes.handle import Starter
    from haft.processes.helper import Helper, start_spare
    from haft.processes.launcher import ProcessLauncher, ProcessSession, StaleHelper, plain_starter, replaced_error
    from haft.processes.warm import WarmStarter
else:
    __getattr__ = face(
        __name__,
        {
            "blocking": "BlockingExit read_output run_blocking",
            "egress": "Egress EgressCall",
            "handle": "Starter",
            "helper": "Helper start_spare",
            "launcher": "ProcessLauncher ProcessSession StaleHelper plain_starter replaced_error",
            "warm": "WarmStarter",
        },
    )
