"""The placeholder `${secret:NAME}`: a value that haft fills in when a call runs, for the person who makes the call.

`config` says where the placeholder may stand, tools say which of their settings contain it, and `service` finds the
values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from haft.contracts.secrets import texts_in
from haft.lazy import regex

_PLACE: Final = regex(r"\$\{secret:([^}]*)\}")


def secret_names(value: Any) -> list[str]:
    """The names of the secrets that a value needs, at any depth."""
    return list(dict.fromkeys(match[1] for text in texts_in(value) for match in _PLACE.finditer(text)))


def with_secrets(value: Any, secrets: Mapping[str, str]) -> Any:
    """`value` with the value of each secret in place of its placeholder."""

    def fill(match: re.Match[str]) -> str:
        return secrets[match[1]]

    if isinstance(value, str):
        return _PLACE.sub(fill, value)
    if isinstance(value, Mapping):
        return {name: with_secrets(one, secrets) for name, one in value.items()}
    return [with_secrets(one, secrets) for one in value] if isinstance(value, list) else value


def needing_secrets(config: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Those of the settings with these names that need a secret."""
    return {name: config[name] for name in names if name in config and secret_names(config[name])}
