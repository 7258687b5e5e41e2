"""A call that waits for a person, in two lines: for Now, and for the tabs of Approve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.surfaces.http.console.call_words import short_id, subject
from haft.surfaces.http.console.diffs import counts_of
from haft.surfaces.http.console.figures import sentence
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.service import Waiting

_TRIED: Final = "these are the changes of a trial run ("
"""How the reason begins that a trial run waits."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One call that waits."""

    id: str
    run: str
    tool: str
    subject: str
    reason: str
    who: str
    thread: str
    expires_at: float | None
    """None if it waits until somebody answers."""
    counts: tuple[int, int, int] | None
    """For a trial run: lines added, lines removed, changes."""
    digest: str
    """The digest of what is shown: an answer holds for exactly this."""
    form: Mapping[str, Any]
    """The request in its JSON form."""

    @property
    def sentence(self) -> str:
        """The reason, as a sentence."""
        text = self.reason.strip()
        if self.counts is not None:
            inner = text.removeprefix(_TRIED)
            text = f"{inner.removesuffix(')')}. Trial run finished" if inner != text else text
        return sentence(text)

    @property
    def thread_name(self) -> str:
        return short_id(self.thread)


def wait_of(waiting: Waiting, form: Mapping[str, Any]) -> Wait:
    """A request as it is shown."""
    arguments = form["args"]
    connection, question = form.get("connection"), form.get("question")
    about = subject(form["tool"], arguments)
    if connection is not None:
        about = f"{connection['host']}:{connection['port']}"
    elif question is not None:
        about = str(question.get("message", ""))
    return Wait(
        waiting.id,
        waiting.run,
        form["tool"],
        about,
        form["reason"],
        waiting.who,
        str(waiting.thread),
        waiting.expires_at if waiting.expires else None,
        None if form["diff"] is None else counts_of(form["diff"]),
        waiting.digest,
        form,
    )
