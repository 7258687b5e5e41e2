"""Servers that come as packages of npm or PyPI: `npx`, `uvx`, `bunx`, `pipx run` and the like.

haft installs such a package once, in a sandbox that reaches only package indexes. From then on the server runs from
there, without the network, until a person asks for a newer version.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.toolsets.providers.packages.refusals import why_not_installable
    from haft.toolsets.providers.packages.servers import PackagedServers
else:
    __getattr__ = face(__name__, {"refusals": "why_not_installable", "servers": "PackagedServers"})
