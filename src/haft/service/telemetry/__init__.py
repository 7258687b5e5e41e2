"""Telemetry: traces of calls by OpenTelemetry, and metrics of a server for Prometheus.

Both watch runs from the outside, as a `RunWatcher`. Nothing here imports OpenTelemetry or the Prometheus client before
telemetry is in use.
"""
