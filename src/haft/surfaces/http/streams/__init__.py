"""The event streams: one hub reads what happens, serialises each event once, and hands it to all subscribers.

`hub` ticks; `run_topic` and `feed` read what happens; `topics` hands it to subscribers, each with a bound; `stream` is
what one client gets, and `routes` answers its request.
"""

from haft.surfaces.http.streams.routes import stream_routes as routes

__all__ = ["routes"]
