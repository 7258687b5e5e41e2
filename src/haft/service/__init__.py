"""The service: assembly, and the facade that programs and surfaces use. It decides nothing itself.

Names are fetched when they are first used: a command that only lists tools must not pay for the whole house.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.config.config import Config, load_config
    from haft.config.settings import SETTINGS, Setting
    from haft.config.workspace import check_workspace, find_workspace
    from haft.service.acting import this_user, user_name
    from haft.service.changes import ChangesFacade, nothing_to, rows_for
    from haft.service.checks import Check
    from haft.service.doctor import diagnose
    from haft.service.housekeeping import bounds_of
    from haft.service.inbox import InboxFacade, Reply, answered_by, to_json
    from haft.service.misuse import never_granted
    from haft.service.permissions import Replayed, missing_from, replayed, rules_in, shown_rules, with_delegates
    from haft.service.reading import has_state, open_changes, open_history, recover_dead_hosts
    from haft.service.record import RecordFacade
    from haft.service.recovering import recover_into
    from haft.service.service import ToolService
    from haft.service.store import StoreFacade, Tidied
    from haft.service.suggestions import Suggested, add_line, suggested
    from haft.service.sync import SyncToolService
    from haft.toolsets.catalogue import fill_catalogue
    from haft.toolsets.looking import looking_launcher

__getattr__ = face(
    __name__,
    {
        "acting": "this_user user_name",
        "changes": "ChangesFacade nothing_to rows_for",
        "checks": "Check",
        "doctor": "diagnose",
        "housekeeping": "bounds_of",
        "inbox": "InboxFacade Reply answered_by to_json",
        "misuse": "never_granted",
        "permissions": "Replayed missing_from replayed rules_in shown_rules with_delegates",
        "reading": "has_state open_changes open_history recover_dead_hosts",
        "record": "RecordFacade",
        "recovering": "recover_into",
        "service": "ToolService",
        "store": "StoreFacade Tidied",
        "suggestions": "Suggested add_line suggested",
        "sync": "SyncToolService",
        "haft.config.config": "Config load_config",
        "haft.config.settings": "SETTINGS Setting",
        "haft.config.workspace": "check_workspace find_workspace",
        "haft.toolsets.catalogue": "fill_catalogue",
        "haft.toolsets.looking": "looking_launcher",
    },
)
