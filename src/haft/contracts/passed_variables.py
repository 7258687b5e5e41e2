"""The names of environment variables that calls get without a grant, and of variables whose values a shell runs as
commands."""

from __future__ import annotations

from typing import Final

from haft.lazy import regex

ALWAYS_PASSED: Final = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""The variables that every call gets. Every call also gets `LC_*`."""

NETWORK_VARIABLES: Final = frozenset(
    (
        "ALL_PROXY", "CARGO_HTTP_CAINFO", "CURL_CA_BUNDLE", "FTP_PROXY", "GIT_SSL_CAINFO", "GOPROXY", "GONOPROXY",
        "GONOSUMDB", "GOSUMDB", "HTTPS_PROXY", "HTTP_PROXY", "NODE_EXTRA_CA_CERTS", "NO_PROXY", "NPM_CONFIG_CAFILE",
        "NPM_CONFIG_REGISTRY", "PIP_CERT", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_TRUSTED_HOST",
        "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX",
        "UV_INDEX_URL", "UV_INSECURE_HOST", "UV_NATIVE_TLS", "YARN_NPM_REGISTRY_SERVER",
    )
)  # fmt: skip
"""Variables for certificates, proxies and package indexes, in upper case. They are useful only with network."""

PROXY_VARIABLES: Final = frozenset(("ALL_PROXY", "FTP_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"))
"""Variables that name the proxies of the host, in upper case. A call whose network is decided by host never gets
them."""

EVALUATED_VARIABLES: Final = regex(r"PS[0124]|PROMPT_COMMAND|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*")
"""Variables whose value the shell runs as commands, or that make it run commands."""
