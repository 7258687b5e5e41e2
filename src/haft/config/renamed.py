"""Settings that earlier versions called otherwise: still read, under the same rules, and noted once."""

from __future__ import annotations

from haft.config.settings import RENAMED
from haft.contracts import BadConfig

_noted: set[tuple[str, str]] = set()


def name_of_today(name: str, source: str, written: dict[str, str], *, new: str | None = None) -> str:
    """The setting that is meant. `written` has the names in the same source so far, by the settings they mean: two for
    one setting are an error. `new` is the source's own name of today, where that is a variable."""
    today = RENAMED.get(name, name)
    other = written.setdefault(today, name)
    if other != name:
        old, better = sorted((name, other), key=lambda one: one not in RENAMED)
        raise BadConfig(
            f"{source}: `{old}` is the earlier name of `{better}`, and both are set", hint=f"remove `{old}`"
        )
    if name != today and (name, source) not in _noted:
        import logging

        _noted.add((name, source))
        old = f"{source}: `{name}`" if new is None else source
        logging.getLogger("haft").warning("%s is now called `%s`", old, new or today)
    return today
