"""Settings that had another name in earlier versions, or have another name in other programs. haft reads the other
name, with the same effect. For an earlier name, haft logs the new name once."""

from __future__ import annotations

from haft.config.settings import RENAMED, SYNONYMS
from haft.contracts import BadConfig
from haft.files import shown

_noted: set[tuple[str, str]] = set()


def current_name(name: str, source: str, written: dict[str, str], *, new: str | None = None) -> str:
    """The current name of a setting. `written` maps the current name of each setting that this source has set so far to
    the name that the source used. Raises `BadConfig` if the source uses both names of a setting. If the source is an
    environment variable, `new` is the current name of this variable."""
    today = RENAMED.get(name) or SYNONYMS.get(name, name)
    other = written.setdefault(today, name)
    if other != name:
        if not {name, other} & RENAMED.keys():
            raise BadConfig(
                f"{source}: `{name}` and `{other}` are names of the same setting, and both are set",
                hint=f"write everything under `{today}`",
            )
        old, better = sorted((name, other), key=lambda one: one not in RENAMED)
        raise BadConfig(
            f"{source}: `{old}` is the earlier name of `{better}`, and both are set", hint=f"remove `{old}`"
        )
    if name in RENAMED and (name, source) not in _noted:
        import logging

        _noted.add((name, source))
        old = f"{shown(source)}: `{name}`" if new is None else source
        logging.getLogger("haft").warning("%s is now called `%s`", old, new or today)
    return today
