"""The output of a past run with its secrets masked, also those that the tool wrote in several pieces, between which it
wrote something to the other stream."""

from __future__ import annotations

from haft.testing.recording.past_run import PastRun
from haft.testing.recording.secret_finder import SecretFinder


def output_of(run: PastRun, finder: SecretFinder) -> str | None:
    """The output as the outcome shows it, with secrets masked; None if a secret may be left in it."""
    shown = str(run.outcome["output"])
    whole = b"".join(data for _stream, data in run.pieces)
    if whole.decode("utf-8", "replace") != shown:
        masked = finder.masked(shown, "the output")
        return str(masked) if not _is_split(run, finder, whole) else None
    maskers = {stream: finder.secrets.stream() for stream, _data in run.pieces}
    parts = [maskers[stream].feed(data) for stream, data in run.pieces]
    parts += [each.end() for each in maskers.values()]
    text = b"".join(parts).decode("utf-8", "replace")
    if text != shown:
        finder.masked_in["the output"] = None
    return str(finder.masked(text, "the output"))


def _is_split(run: PastRun, finder: SecretFinder, whole: bytes) -> bool:
    """Whether one of the streams has a secret that is not in one piece in the whole output."""
    for stream in {name for name, _data in run.pieces}:
        alone = b"".join(data for name, data in run.pieces if name == stream)
        found = [value for value in finder.secrets.values if value.encode("utf-8", "surrogateescape") in alone]
        if any(value.encode("utf-8", "surrogateescape") not in whole for value in found):
            return True
    return False
