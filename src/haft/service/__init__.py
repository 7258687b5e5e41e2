"""The service: configuration, assembly, and the facade that programs and surfaces use. It decides nothing itself.

Names are fetched when they are first used: a command that only lists tools must not pay for the whole house.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haft.service.catalogue import fill_catalogue
    from haft.service.changes import ChangesFacade
    from haft.service.checks import Check
    from haft.service.config import Config, load_config
    from haft.service.doctor import diagnose
    from haft.service.looking import looking_launcher
    from haft.service.reading import open_changes, open_history, recover_dead_hosts
    from haft.service.record import RecordFacade
    from haft.service.recovering import recover_into
    from haft.service.service import ToolService, user_name
    from haft.service.settings import SETTINGS, Setting
    from haft.service.store import StoreFacade
    from haft.service.workspace import check_workspace, find_workspace

_HOMES = {
    "SETTINGS": "settings",
    "ChangesFacade": "changes",
    "Check": "checks",
    "Config": "config",
    "RecordFacade": "record",
    "Setting": "settings",
    "StoreFacade": "store",
    "ToolService": "service",
    "check_workspace": "workspace",
    "diagnose": "doctor",
    "fill_catalogue": "catalogue",
    "find_workspace": "workspace",
    "load_config": "config",
    "looking_launcher": "looking",
    "open_changes": "reading",
    "open_history": "reading",
    "recover_dead_hosts": "reading",
    "recover_into": "recovering",
    "user_name": "service",
}

__all__ = [
    "SETTINGS",
    "ChangesFacade",
    "Check",
    "Config",
    "RecordFacade",
    "Setting",
    "StoreFacade",
    "ToolService",
    "check_workspace",
    "diagnose",
    "fill_catalogue",
    "find_workspace",
    "load_config",
    "looking_launcher",
    "open_changes",
    "open_history",
    "recover_dead_hosts",
    "recover_into",
    "user_name",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
