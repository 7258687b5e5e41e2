"""Metrics of a server in the text format of Prometheus. `METRICS` lists all of them with their labels; the
dashboard and the alert rules in `deploy/` are tested against it.

The only module that imports the client of Prometheus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from haft.service.telemetry.request_counts import RequestCounts
from haft.service.telemetry.run_counts import Histogram, RunCounts
from haft.service.telemetry.state_facts import StateFacts
from haft.values import dataclass
from haft.version import __version__

METRICS_TYPE: Final = CONTENT_TYPE_LATEST


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric, as the documentation lists it."""

    kind: Literal["counter", "gauge", "histogram"]
    what: str
    labels: tuple[str, ...] = ()


METRICS: Final[Mapping[str, MetricSpec]] = {
    "haft_info": MetricSpec("gauge", "The version of haft; always 1.", ("version",)),
    "haft_ready": MetricSpec("gauge", "1 while the server takes new calls."),
    "haft_calls_total": MetricSpec("counter", "Calls that have ended.", ("kind", "status", "decision")),
    "haft_call_errors_total": MetricSpec("counter", "Calls that ended with an error, by its code.", ("code",)),
    "haft_call_duration_seconds": MetricSpec(
        "histogram", "How long calls took, with all that they waited for.", ("kind",)
    ),
    "haft_call_wait_seconds": MetricSpec("histogram", "How long calls waited, and what for.", ("reason",)),
    "haft_commit_duration_seconds": MetricSpec("histogram", "How long it took to commit the changes of a call."),
    "haft_calls_live": MetricSpec("gauge", "Calls that have not ended.", ("status",)),
    "haft_calls_from_cache_total": MetricSpec("counter", "Calls that the cache answered."),
    "haft_changed_files_total": MetricSpec("counter", "Files that calls changed."),
    "haft_output_bytes_total": MetricSpec("counter", "Bytes that tools wrote."),
    "haft_approvals_waiting": MetricSpec("gauge", "Requests that wait for a person, in the whole state home."),
    "haft_http_requests_total": MetricSpec("counter", "Answered HTTP requests.", ("route", "method", "status")),
    "haft_http_request_duration_seconds": MetricSpec(
        "histogram", "How long HTTP requests took, without streams.", ("method",)
    ),
    "haft_http_requests_open": MetricSpec("gauge", "HTTP requests that have not ended.", ("type",)),
    "haft_store_bytes": MetricSpec("gauge", "Disk space of the parts of the store.", ("part",)),
    "haft_store_used_bytes": MetricSpec("gauge", "Disk space that counts against `changes.store_bytes`."),
    "haft_store_limit_bytes": MetricSpec("gauge", "The setting `changes.store_bytes`."),
    "haft_undoable_runs": MetricSpec("gauge", "Runs that can be undone."),
    "haft_held_changes": MetricSpec("gauge", "Runs with held changes, which wait for a person."),
    "haft_database_bytes": MetricSpec("gauge", "The size of the database."),
    "haft_disk_free_bytes": MetricSpec("gauge", "Free space on the disk with the state home."),
    "haft_audit_records": MetricSpec("gauge", "Records of the audit log."),
    "haft_audit_bytes": MetricSpec("gauge", "The size of the audit log."),
    "haft_audit_intact": MetricSpec("gauge", "1 if the last check found the audit log intact."),
    "haft_state_measured_timestamp_seconds": MetricSpec("gauge", "When the state home was measured last."),
}
"""All metrics of haft itself. The process adds its own: memory, processor time and open files."""

Samples = Iterable[tuple[tuple[str, ...], float]]


class _Haft(Collector):
    def __init__(self, counts: RunCounts, requests: RequestCounts, state: StateFacts | None, *, is_ready: bool) -> None:
        self._counts = counts
        self._requests = requests
        self._state = state
        self._is_ready = is_ready

    def collect(self) -> Iterator[Metric]:
        values = {**self._of_calls(), **self._of_requests(), **({} if self._state is None else _of_state(self._state))}
        values["haft_info"] = [((__version__,), 1)]
        values["haft_ready"] = [((), float(self._is_ready))]
        for name, samples in values.items():
            spec = METRICS[name]
            family = (CounterMetricFamily if spec.kind == "counter" else GaugeMetricFamily)(
                name.removesuffix("_total"), spec.what, labels=spec.labels
            )
            for labels, value in samples:
                family.add_metric(labels, value)
            yield family
        for name, histograms in self._histograms().items():
            spec = METRICS[name]
            made = HistogramMetricFamily(name, spec.what, labels=spec.labels)
            for labels, histogram in histograms:
                made.add_metric(labels, histogram.buckets(), histogram.sum)
            yield made

    def _of_calls(self) -> dict[str, Samples]:
        counts = self._counts
        return {
            "haft_calls_total": counts.calls.items(),
            "haft_call_errors_total": [((code,), count) for code, count in counts.errors.items()],
            "haft_calls_live": [((status,), count) for status, count in counts.live()],
            "haft_calls_from_cache_total": [((), counts.cached)],
            "haft_changed_files_total": [((), counts.changed_files)],
            "haft_output_bytes_total": [((), counts.output_bytes)],
        }

    def _of_requests(self) -> dict[str, Samples]:
        requests = self._requests
        return {
            "haft_http_requests_total": requests.answered.items(),
            "haft_http_requests_open": [((type_,), count) for type_, count in requests.open.items()],
        }

    def _histograms(self) -> dict[str, list[tuple[tuple[str, ...], Histogram]]]:
        counts = self._counts
        return {
            "haft_call_duration_seconds": [((kind,), each) for kind, each in counts.durations.items()],
            "haft_call_wait_seconds": [((reason,), each) for reason, each in counts.waits.items()],
            "haft_commit_duration_seconds": [((), counts.commits)],
            "haft_http_request_duration_seconds": [
                ((method,), each) for method, each in self._requests.durations.items()
            ],
        }


def _of_state(state: StateFacts) -> dict[str, Samples]:
    single = {
        "haft_approvals_waiting": state.waiting,
        "haft_store_used_bytes": state.used,
        "haft_store_limit_bytes": state.limit,
        "haft_undoable_runs": state.undoable,
        "haft_held_changes": state.held,
        "haft_database_bytes": state.database,
        "haft_disk_free_bytes": state.free,
        "haft_audit_records": state.audit_records,
        "haft_audit_bytes": state.audit_bytes,
        "haft_audit_intact": state.audit_intact,
        "haft_state_measured_timestamp_seconds": state.at,
    }
    return {
        "haft_store_bytes": [((part,), size) for part, size in state.store.items()],
        **{name: [((), float(value))] for name, value in single.items()},
    }


def metrics_text(counts: RunCounts, requests: RequestCounts, state: StateFacts | None, *, is_ready: bool) -> bytes:
    """All metrics, as Prometheus reads them. `state` is None if the state home could not be measured."""
    registry = CollectorRegistry()
    registry.register(_Haft(counts, requests, state, is_ready=is_ready))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return generate_latest(registry)
