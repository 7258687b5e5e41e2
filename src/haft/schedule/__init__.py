"""When a call happens: admission to a bounded number of places."""

from haft.schedule.admission import Admission

__all__ = ["Admission"]
