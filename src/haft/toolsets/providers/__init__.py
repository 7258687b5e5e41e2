"""The MCP servers that configuration files name: reads them in all their spellings, keeps the values that a person gave
for them, and knows which of them may start.

The modules of `haft.sources.mcp` connect to the servers. Importing this package is cheap.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.toolsets.providers.finding import provider_places, providers_of, start_trust
    from haft.toolsets.providers.inputs import Input, InputStore
    from haft.toolsets.providers.placeholders import inputs_in, secrets_in
    from haft.toolsets.providers.reading import ConfiguredServer, configured_servers, server_name
    from haft.toolsets.providers.server_files import ServerTables, read_server_file
    from haft.toolsets.providers.spellings import WrittenServer, read_server
    from haft.toolsets.providers.trust_records import KeptTrust, StartTrustStore, bound_files, digests_of, needs_person
else:
    __getattr__ = face(
        __name__,
        {
            "finding": "provider_places providers_of start_trust",
            "inputs": "Input InputStore",
            "placeholders": "inputs_in secrets_in",
            "reading": "ConfiguredServer configured_servers server_name",
            "server_files": "ServerTables read_server_file",
            "spellings": "WrittenServer read_server",
            "trust_records": "KeptTrust StartTrustStore bound_files digests_of needs_person",
        },
    )
