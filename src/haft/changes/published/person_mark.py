"""The mark of a call that waits for a person, or has made a call that does. All processes see it: whoever waits for the
call says so, and undo and apply do not wait for it."""

from __future__ import annotations

from haft.changes.published.register import Register


class PersonMark:
    """The mark of one call. Nothing is on disk as long as nobody is asked."""

    __slots__ = ("_asked", "_register", "_run")

    def __init__(self, register: Register, run: str) -> None:
        self._register = register
        self._run = run
        self._asked = 0
        """How many requests to people are open."""

    def begin_person(self) -> None:
        """Say that the call waits for a person, for a request of its own or of a call that it made."""
        self._asked += 1
        if self._asked == 1:
            self._register.set_person(self._run, waits=True)

    def end_person(self) -> None:
        """Say that one such request has ended."""
        self._asked -= 1
        if not self._asked:
            self._register.set_person(self._run, waits=False)
