"""Sets up signing in as a configuration says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from haft.contracts import BadConfig
from haft.service import ROLES
from haft.surfaces.http.sign_in.authenticator import SignIn
from haft.surfaces.http.sign_in.oidc import OidcProvider, OidcSettings

if TYPE_CHECKING:
    from haft.service import Config, Role, StateHome


def sign_in_for(config: Config, home: StateHome, *, has_tls: bool) -> SignIn:
    """The authenticator of a server with this configuration, which must be the user's own. Raises `BadConfig` if it is
    wrong."""
    settings = oidc_settings(config)
    return SignIn(home, has_tls=has_tls, oidc=None if settings is None else OidcProvider(settings, home))


def oidc_settings(config: Config) -> OidcSettings | None:
    """What `[server.oidc]` says; None if it is not there. Raises `BadConfig` if it names a role that does not exist."""
    told = config.values["server.oidc"]
    if not told:
        return None
    groups: dict[str, frozenset[Role]] = {}
    for group, roles in told["groups"].items():
        unknown = [role for role in roles if role not in ROLES]
        if unknown:
            raise BadConfig(
                f"{config.sources['server.oidc']}: `groups` in `[server.oidc]` gives {group!r} the role `{unknown[0]}`",
                hint=f"the roles are {', '.join(ROLES)}",
            )
        groups[group] = frozenset(roles)
    return OidcSettings(
        told["issuer"],
        told["client_id"],
        told["client_secret"],
        groups,
        told["groups_claim"],
        tuple(told["scopes"]),
    )
