"""Processes: the only room that starts any.

A command is started by a helper program, streamed from its descriptors, and ended with everything below it. Above stand
the tools, which know only the `Launcher` port. This room does not decide, confine or limit.
"""

from haft.processes.environment import built_environment
from haft.processes.handle import Starter
from haft.processes.launcher import ProcessLauncher, default_starter

__all__ = ["ProcessLauncher", "Starter", "built_environment", "default_starter"]
