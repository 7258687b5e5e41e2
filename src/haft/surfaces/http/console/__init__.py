"""The console: the web pages on which people see what agents do, answer their calls, and take back what they changed.

The server renders every page whole (`pages/`, `templates/`), and each has its own address, filters included. The
pages' JavaScript (`static/js/`) adds keys, live updates and answers, all through the API: `routes` has only GET.
Everything that a tool or an agent wrote is text: `written` makes HTML of it, and nothing else does.
"""

from haft.surfaces.http.console.routes import routes

__all__ = ["routes"]
