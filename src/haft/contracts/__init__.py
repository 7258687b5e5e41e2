"""The vocabulary of haft: values that travel and ports that are filled elsewhere.

The lowest layer. Everything imports it, it imports nothing of ours, does no I/O, and knows no library but Python's own.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.contracts.call import Call, own_copy
    from haft.contracts.change import (
        NO_CHANGES,
        UNTRACKED,
        Change,
        ChangeKind,
        Changes,
        ChangesState,
        Conflicting,
        Engine,
        path_to_json,
    )
    from haft.contracts.confinement import (
        NO_CONFINEMENT,
        NO_GRANTS,
        NOT_RUN,
        Confinement,
        Grants,
        Layer,
        Profile,
        grants_from,
    )
    from haft.contracts.decision import (
        Action,
        Allowable,
        ApprovalAnswer,
        ApprovalRequest,
        Approver,
        DecidedPart,
        Decision,
        Delegation,
        Scope,
    )
    from haft.contracts.earlier import with_names_of_today
    from haft.contracts.errors import (
        EXIT_CODES,
        AmbiguousRun,
        BadApprover,
        BadConfig,
        BadUsage,
        Bug,
        CallError,
        Conflict,
        Deadlock,
        Failure,
        HaftError,
        InvalidArguments,
        LeaseLost,
        LimitExceeded,
        MachineError,
        NeedsBuild,
        NeedsPerson,
        NetworkOpen,
        PathEscapes,
        PersonError,
        Rejected,
        SandboxDenied,
        ScratchFull,
        StartFailed,
        StorageFailed,
        TimedOut,
        ToolFailed,
        Unconfined,
        UnknownRequest,
        UnknownRun,
        UnknownTool,
        near_miss,
    )
    from haft.contracts.events import Event, EventType, iso_time
    from haft.contracts.evolving import evolve
    from haft.contracts.failure_lines import failure_line, telling_line, without_progress
    from haft.contracts.limits import PROCESS_LIMITS, Limits, LimitsApplied
    from haft.contracts.locales import PLAIN_LOCALE, foreign_locale, is_locale_variable, reads_utf8
    from haft.contracts.names import (
        RUN_ID,
        HostId,
        RunId,
        ThreadId,
        ToolName,
        clean_tool_name,
        is_tool_name,
        new_host_id,
        new_run_id,
        new_thread_id,
    )
    from haft.contracts.outcome import KEPT_APART, NO_LIMITS, OUTCOME_FORM, Outcome, outcome_from
    from haft.contracts.passed import EVALUATED, PASSED, WITH_NETWORK
    from haft.contracts.ports import (
        AskingLauncher,
        Command,
        Definitions,
        EndedChild,
        Environment,
        Environments,
        Exit,
        Launcher,
        LayeredSession,
        OutputSink,
        Replaced,
        Session,
        SessionLauncher,
        Stream,
        ToolContext,
        Warmth,
        Workspace,
    )
    from haft.contracts.principal import Principal, PrincipalKind, check_text
    from haft.contracts.secrets import (
        MARK,
        NO_SECRETS,
        SHORTEST,
        MaskedStream,
        Secrets,
        named_secrets,
        says_secret,
        texts_in,
    )
    from haft.contracts.states import FOLLOWS, STATUSES, TERMINAL, Status
    from haft.contracts.tool import (
        Answer,
        Effects,
        Found,
        Hosting,
        Kind,
        Listing,
        Provenance,
        RenamedTool,
        State,
        Tool,
        ToolSpec,
        configured,
    )
    from haft.contracts.variables import names_missed, names_read, why_not_granted, withheld

__getattr__ = face(
    __name__,
    {
        "call": "Call own_copy",
        "change": "Change ChangeKind Changes ChangesState Conflicting Engine NO_CHANGES UNTRACKED path_to_json",
        "decision": "Action Allowable ApprovalAnswer ApprovalRequest Approver DecidedPart Decision Delegation Scope",
        "earlier": "with_names_of_today",
        "errors": (
            "AmbiguousRun BadApprover BadConfig BadUsage Bug CallError Conflict Deadlock EXIT_CODES Failure "
            "HaftError InvalidArguments LeaseLost LimitExceeded MachineError NeedsBuild NeedsPerson "
            "NetworkOpen PathEscapes PersonError Rejected ScratchFull StartFailed StorageFailed TimedOut "
            "ToolFailed Unconfined UnknownRequest UnknownRun UnknownTool SandboxDenied near_miss"
        ),
        "events": "Event EventType iso_time",
        "failure_lines": "failure_line telling_line without_progress",
        "limits": "Limits LimitsApplied PROCESS_LIMITS",
        "locales": "PLAIN_LOCALE foreign_locale is_locale_variable reads_utf8",
        "names": (
            "HostId RUN_ID RunId ThreadId ToolName clean_tool_name is_tool_name new_host_id new_run_id new_thread_id"
        ),
        "outcome": "KEPT_APART NO_LIMITS OUTCOME_FORM Outcome outcome_from",
        "passed": "EVALUATED PASSED WITH_NETWORK",
        "ports": (
            "AskingLauncher Command Definitions EndedChild Environment Environments Exit Launcher "
            "LayeredSession OutputSink Replaced Session SessionLauncher Stream ToolContext Warmth Workspace"
        ),
        "principal": "Principal PrincipalKind check_text",
        "evolving": "evolve",
        "secrets": "MARK MaskedStream NO_SECRETS SHORTEST Secrets named_secrets says_secret texts_in",
        "states": "FOLLOWS STATUSES Status TERMINAL",
        "tool": "Answer Effects Found Hosting Kind Listing Provenance RenamedTool State Tool ToolSpec configured",
        "variables": "names_missed names_read why_not_granted withheld",
        "confinement": "Grants Layer NOT_RUN NO_GRANTS NO_CONFINEMENT Profile Confinement grants_from",
    },
)
