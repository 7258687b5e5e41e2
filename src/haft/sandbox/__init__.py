"""The sandbox of calls: what this machine supports, what one call may reach, its environment, and the launcher that
starts its commands.

The helper program makes the mounts and namespaces; this package tells the helper which ones to make. The package
decides nothing: profile and grants come with the decision about the call."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sandbox.abilities import Abilities
    from haft.sandbox.environment import NETWORK_VARIABLES, safe_path
    from haft.sandbox.helper_requests import OWN_PLACES
    from haft.sandbox.identities import with_parents
    from haft.sandbox.neighbours import check_apart
    from haft.sandbox.package_indexes import TOOLS, Tool, package_index_hosts
    from haft.sandbox.sandbox import IN_PROCESS, REMOTE, Mode, Sandbox
    from haft.sandbox.site import CACHES, Site, can_be_hidden, home_of, needed
    from haft.sandbox.thread_scratch import (
        IDLE_SECONDS,
        Removed,
        ThreadScratch,
        not_found,
        remove_scratch,
        scratch_in,
        scratch_root,
        sweep,
    )
    from haft.sandbox.toolchains import is_below
else:
    __getattr__ = face(
        __name__,
        {
            "abilities": "Abilities",
            "environment": "NETWORK_VARIABLES safe_path",
            "identities": "with_parents",
            "package_indexes": "TOOLS Tool package_index_hosts",
            "sandbox": "IN_PROCESS Mode REMOTE Sandbox",
            "neighbours": "check_apart",
            "site": "CACHES Site can_be_hidden home_of needed",
            "helper_requests": "OWN_PLACES",
            "thread_scratch": "IDLE_SECONDS Removed ThreadScratch not_found "
            "remove_scratch scratch_in scratch_root sweep",
            "toolchains": "is_below",
        },
    )
