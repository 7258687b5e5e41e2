"""Pictures, drawn with the colour of the text around them. A word stands beside each, so none has a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup

SHAPES: Final[Mapping[str, str]] = {
    "wait": '<path d="M8 1.2 14.8 8 8 14.8 1.2 8z"/>',
    "held": '<path d="M8 2 14 8l-6 6-6-6z"/><path d="M8 6v4"/>',
    "run": '<circle cx="8" cy="8" r="5.6" opacity=".35"/><path class="arc" d="M8 2.4a5.6 5.6 0 0 1 5.6 5.6"/>',
    "queued": '<circle cx="8" cy="8" r="5.6"/>',
    "done": '<path d="m3 8.6 3.2 3.2L13 4.6"/>',
    "error": '<rect x="2.2" y="2.2" width="11.6" height="11.6" rx="2.4"/><path d="m5.8 5.8 4.4 4.4m0-4.4-4.4 4.4"/>',
    "rejected": '<circle cx="8" cy="8" r="5.8"/><path d="m4 12 8-8"/>',
    "cancelled": '<rect x="3.6" y="3.6" width="8.8" height="8.8" rx="1.4"/>',
    "undone": '<path d="M5.6 3 2.6 6l3 3"/><path d="M3 6h6.2a3.8 3.8 0 0 1 0 7.6H6"/>',
    "redo": '<path d="m10.4 3 3 3-3 3"/><path d="M13 6H6.8a3.8 3.8 0 0 0 0 7.6H10"/>',
    "warn": '<path d="M8 2.2 14.4 13.4H1.6z"/><path d="M8 6.6v3.2m0 1.9v.01"/>',
    "outside": '<path d="M10.8 2.6 13.4 5.2 5.8 12.8l-3.4.8.8-3.4z"/>',
    "create": '<circle cx="8" cy="8" r="5.8"/><path d="M8 5.4v5.2M5.4 8h5.2"/>',
    "edit": '<circle cx="8" cy="8" r="5.8"/><circle cx="8" cy="8" r="1.6" fill="currentColor"/>',
    "conflict": '<circle cx="8" cy="8" r="5.8"/><path d="M8 5v3.6m0 2.2v.01"/>',
    "nonet": '<path d="M2.2 6.4a8.6 8.6 0 0 1 11.6 0M4.4 9a5.4 5.4 0 0 1 7.2 0M8 12.2v.01M2.6 13.4 13.4 2.6"/>',
    "theme": '<circle cx="8" cy="8" r="5.6"/><path d="M8 2.4v11.2A5.6 5.6 0 0 0 8 2.4z" fill="currentColor"/>',
    "help": '<circle cx="8" cy="8" r="5.8"/><path d="M6.3 6.4a1.8 1.8 0 1 1 2.5 1.7c-.6.2-.8.5-.8 1m0 2v.01"/>',
    "close": '<path d="m4 4 8 8m0-8-8 8"/>',
    "search": '<circle cx="7" cy="7" r="4.4"/><path d="m10.4 10.4 3.2 3.2"/>',
    "remove": '<circle cx="8" cy="8" r="5.8"/><path d="M5.4 8h5.2"/>',
    "stop": '<rect x="3.6" y="3.6" width="8.8" height="8.8" rx="1.4"/>',
    "said": '<path d="M2.6 3.4h10.8v7.2H8l-3 2.6v-2.6H2.6z"/>',
}
MARK: Final = Markup(
    '<svg viewBox="0 0 20 20" aria-hidden="true"><path class="shaft" d="M3.5 16.5 9.6 10.4" stroke-width="3.6"'
    ' stroke-linecap="round" fill="none"/><path class="tip" d="m13.4 1.8 4.8 4.8-4.8 4.8-4.8-4.8z"/></svg>'
)
"""haft's mark: a handle. Its tip is orange while a call waits."""


def icon(name: str) -> Markup:
    """A picture by its name."""
    return Markup(f'<svg class="i i-{name}" viewBox="0 0 16 16" aria-hidden="true">{SHAPES[name]}</svg>')  # noqa: S704
