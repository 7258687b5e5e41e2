"""Templates, and what all of them can use. Autoescape is on: a template that shows text of a tool passes it through
`written` or `written_line`, which also show invisible characters. The guard sets the headers, among them the content
security policy: nothing inline, and nothing from another host."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from haft.surfaces.http.console.figures import FILTERS
from haft.surfaces.http.console.icons import MARK, icon
from haft.surfaces.http.console.navigation import ENTRIES
from haft.surfaces.http.console.static_files import static_files
from haft.surfaces.http.console.written import plain_line, written, written_line, written_words

TEMPLATES: Final = os.path.join(os.path.dirname(__file__), "templates")


@functools.cache
def environment() -> Environment:
    """The templates of this installation."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(FILTERS)
    made.filters.update(plain_line=plain_line, written=written, written_line=written_line, written_words=written_words)
    made.globals.update(static=static_files().address, entries=ENTRIES, icon=icon, mark=MARK)
    return made


def rendered(template: str, facts: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    """A page. `base.html` has the top bar and needs `place`; `frame.html` has none, for pages without a person."""
    return HTMLResponse(environment().get_template(template).render(facts), status)
