"""The service: assembly, and the facade that programs and surfaces use. It decides nothing itself.

Names are fetched when they are first used: a command that only lists tools must not pay for the whole house.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.config.config import Config as Config
    from haft.config.config import load_config as load_config
    from haft.config.settings import SETTINGS as SETTINGS
    from haft.config.settings import Setting as Setting
    from haft.config.workspace import check_workspace as check_workspace
    from haft.config.workspace import find_workspace as find_workspace
    from haft.service.changes import ChangesFacade as ChangesFacade
    from haft.service.checks import Check as Check
    from haft.service.doctor import diagnose as diagnose
    from haft.service.reading import open_changes as open_changes
    from haft.service.reading import open_history as open_history
    from haft.service.reading import recover_dead_hosts as recover_dead_hosts
    from haft.service.record import RecordFacade as RecordFacade
    from haft.service.recovering import recover_into as recover_into
    from haft.service.service import ToolService as ToolService
    from haft.service.service import user_name as user_name
    from haft.service.store import StoreFacade as StoreFacade
    from haft.toolsets.catalogue import fill_catalogue as fill_catalogue
    from haft.toolsets.looking import looking_launcher as looking_launcher

__getattr__ = face(
    __name__,
    {
        "ChangesFacade": "changes",
        "Check": "checks",
        "Config": "haft.config.config",
        "RecordFacade": "record",
        "SETTINGS": "haft.config.settings",
        "Setting": "haft.config.settings",
        "StoreFacade": "store",
        "ToolService": "service",
        "check_workspace": "haft.config.workspace",
        "diagnose": "doctor",
        "fill_catalogue": "haft.toolsets.catalogue",
        "find_workspace": "haft.config.workspace",
        "load_config": "haft.config.config",
        "looking_launcher": "haft.toolsets.looking",
        "open_changes": "reading",
        "open_history": "reading",
        "recover_dead_hosts": "reading",
        "recover_into": "recovering",
        "user_name": "service",
    },
)
