"""The toolset of a workspace: discovers, fetches, describes and refreshes the tools that the configuration names. Also
makes the environments of templates, and keeps the programs that outlive their calls.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.toolsets.catalogue import ToolLike, as_tool, fill_catalogue
    from haft.toolsets.catalogue_refresher import CatalogueRefresher
    from haft.toolsets.checkouts import NotFetched
    from haft.toolsets.discovery import Discovery
    from haft.toolsets.environments import TemplateEnvironments
    from haft.toolsets.environments.cold import note_cold, why_cold
    from haft.toolsets.environments.installer import find_uv
    from haft.toolsets.fetching import CheckoutState, Updated
    from haft.toolsets.formats import Format, Host, format_named, with_format
    from haft.toolsets.plugins import BashPluginSource, ConfiguredPlugins, PythonPluginSource
    from haft.toolsets.probe import probe_launcher
    from haft.toolsets.providers import (
        ConfiguredServer,
        Input,
        InputStore,
        WrittenServer,
        configured_servers,
        digests_of,
        inputs_in,
        read_server,
        read_server_file,
        secrets_in,
        server_name,
        start_trust,
    )
    from haft.toolsets.providers.finding import WORKSPACE_FILE
    from haft.toolsets.providers.packages.own_files import own_files
    from haft.toolsets.sessions import Sessions
else:
    __getattr__ = face(
        __name__,
        {
            "catalogue": "ToolLike as_tool fill_catalogue",
            "checkouts": "NotFetched",
            "discovery": "Discovery",
            "environments": "TemplateEnvironments",
            "environments.cold": "note_cold why_cold",
            "environments.installer": "find_uv",
            "fetching": "CheckoutState Updated",
            "formats": "Format Host format_named with_format",
            "catalogue_refresher": "CatalogueRefresher",
            "probe": "probe_launcher",
            "plugins": "BashPluginSource ConfiguredPlugins PythonPluginSource",
            "providers": (
                "ConfiguredServer Input InputStore WrittenServer configured_servers digests_of inputs_in read_server "
                "read_server_file secrets_in server_name start_trust"
            ),
            "providers.finding": "WORKSPACE_FILE",
            "providers.packages.own_files": "own_files",
            "sessions": "Sessions",
        },
    )
