"""Servers that come as packages of npm or PyPI: `npx`, `uvx`, `bunx`, `pipx run` and the like.

haft installs such a package once, in a sandbox that reaches only package indexes. From then on the server runs from
there, without the network, until a person asks for a newer version.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.toolsets.providers.packages.servers import PackagedServers, why_not_installable
else:
    __getattr__ = face(__name__, {"servers": "PackagedServers why_not_installable"})
