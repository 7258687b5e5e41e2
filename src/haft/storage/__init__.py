"""Storage: the ports (interfaces) for all stored data, the SQLite implementation, and append-only files.

`open_stores` returns an implementation; the packages above do not see which one. This package knows tables and bytes,
not their meaning. Names are imported on first use, so that code which only needs the path of the state home does not
load a database.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.storage.answer_files import AnswerFiles
    from haft.storage.append_only_file import AppendOnlyFile
    from haft.storage.conversation_files import ConversationFiles
    from haft.storage.definitions import DefinitionCache
    from haft.storage.encoding import decode, encode, fragment
    from haft.storage.home import StateHome, default_home
    from haft.storage.implementation import open_stores
    from haft.storage.ports.approvals import NEVER, Answered, ApprovalStore, Waiting, digest_of
    from haft.storage.ports.audit_log import AuditLog
    from haft.storage.ports.change_sets import Ledger, Row, Verb
    from haft.storage.ports.leases import Lease, Leases
    from haft.storage.ports.request_keys import KeyedRequest, RequestKeys
    from haft.storage.ports.rules_and_pins import KeptPin, KeptRule, PinStore, RuleStore
    from haft.storage.ports.runs import Filter, RunStore
    from haft.storage.ports.stores import Connection, Health, Stores
else:
    __getattr__ = face(
        __name__,
        {
            "answer_files": "AnswerFiles",
            "append_only_file": "AppendOnlyFile",
            "conversation_files": "ConversationFiles",
            "definitions": "DefinitionCache",
            "encoding": "decode encode fragment",
            "home": "StateHome default_home",
            "implementation": "open_stores",
            "ports.approvals": "NEVER Answered ApprovalStore Waiting digest_of",
            "ports.audit_log": "AuditLog",
            "ports.change_sets": "Ledger Row Verb",
            "ports.leases": "Lease Leases",
            "ports.request_keys": "KeyedRequest RequestKeys",
            "ports.rules_and_pins": "KeptPin KeptRule PinStore RuleStore",
            "ports.runs": "Filter RunStore",
            "ports.stores": "Connection Health Stores",
        },
    )
