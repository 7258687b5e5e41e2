"""Decides whether a host sends traces, and where to. Imports nothing of OpenTelemetry itself."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from haft.audit import Redactor
from haft.contracts import BadConfig

if TYPE_CHECKING:
    from haft.service.telemetry.traces import Traces

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

Destination = Literal["program", "collector"]
"""To whatever the program that embeds haft has set up, or to a collector that haft sends spans to itself."""


def wants_traces(values: Mapping[str, Any], environ: Mapping[str, str]) -> Destination | None:
    """Where the traces of a host with these settings and variables go; None if it makes none. The host's own settings
    count more than what the program has set up, and that counts more than the variables."""
    wanted = values["telemetry.traces"]
    if wanted == "off" or environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if values["telemetry.endpoint"]:
        return "collector"
    if _is_set_up():
        return "program"
    return "collector" if wanted == "on" or _names_collector(environ) else None


def make_traces(
    redactor: Redactor, destination: Destination, endpoint: str, *, with_content: bool, is_wanted: bool
) -> Traces | None:
    """What makes the spans of a host. If OpenTelemetry is not installed, returns None, or raises `BadConfig` if a
    setting asks for it: variables may be meant for other programs."""
    try:
        from haft.service.telemetry.traces import Traces
    except ImportError as error:
        if not is_wanted:
            return None
        raise BadConfig(
            f"traces need OpenTelemetry, which is not installed: {error}",
            hint='pip install "haft[telemetry]", or set `telemetry.traces` to "off"',
        ) from None
    return Traces(redactor, destination, endpoint, with_content=with_content)


def _is_set_up() -> bool:
    """Whether the program has set up OpenTelemetry. A package that only imports it has not."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return False
    provider = api.get_tracer_provider()
    return not isinstance(provider, api.ProxyTracerProvider | api.NoOpTracerProvider)


def _names_collector(environ: Mapping[str, str]) -> bool:
    """Whether the standard variables name a collector that understands OTLP over HTTP."""
    if environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() not in ("", "otlp"):
        return False
    protocol = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    return (protocol or "http/protobuf").startswith("http") and any(environ.get(name) for name in ENDPOINTS)
