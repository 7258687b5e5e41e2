"""The vocabulary of haft: values that all packages exchange, and protocols that other packages implement.

This is the lowest layer. Every package imports it. It imports no other package of haft, does no I/O, and uses only
Python's standard library.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.contracts.attachment import Attachment, Unanswered
    from haft.contracts.call import Call, own_copy
    from haft.contracts.change import (
        NO_CHANGES,
        UNTRACKED,
        Change,
        ChangeKind,
        Changes,
        ChangesState,
        ConflictingPath,
        Engine,
        path_to_json,
    )
    from haft.contracts.claims import LONGEST_CLAIM, read_claim
    from haft.contracts.conditions import NO_CONDITIONS, STAND_INS, CallFaults, Clock, Conditions, StandIns
    from haft.contracts.confinement import (
        NO_CONFINEMENT,
        NO_GRANTS,
        NOT_RUN,
        PLUGIN_ENTRY,
        Confinement,
        Grants,
        Layer,
        Network,
        Profile,
        grants_from,
        network_json,
        written_grant,
    )
    from haft.contracts.connections import GIVEN_UP, NOT_GRANTED, Connection, ConnectionObserver, HeldConnection
    from haft.contracts.decision import (
        Action,
        ApprovalAnswer,
        ApprovalRequest,
        Approver,
        DecidedPart,
        Decision,
        Delegation,
        RuleOffer,
        Scope,
    )
    from haft.contracts.errors import (
        ERROR_CODES,
        EXIT_CODES,
        AmbiguousRun,
        AnsweredBefore,
        BadApprover,
        BadBatchApprover,
        BadConfig,
        BadUsage,
        Bug,
        Busy,
        CallError,
        Conflict,
        Deadlock,
        DependencyFailed,
        Failure,
        HaftError,
        InvalidArguments,
        KeyInUse,
        KeyReused,
        LeaseLost,
        LimitExceeded,
        MachineError,
        NeedsBuild,
        NeedsPerson,
        NetworkOpen,
        NoNetworkByHost,
        NotCovered,
        OwnCall,
        PathEscapes,
        PersonError,
        RefusedToClient,
        Rejected,
        SandboxDenied,
        ScratchFull,
        ShownHasChanged,
        StartFailed,
        StorageFailed,
        TimedOut,
        ToolFailed,
        Unconfined,
        UnknownEnd,
        UnknownRequest,
        UnknownRun,
        UnknownTool,
        UnknownWorkspace,
        near_miss,
    )
    from haft.contracts.events import Event, EventType, iso_time
    from haft.contracts.failure_lines import error_line, error_or_last_line, without_progress
    from haft.contracts.footprint import NOTHING, UNKNOWN, Footprint, Isolation, Paths, meeting_path, why_ordered
    from haft.contracts.frozen_copies import evolve
    from haft.contracts.host_grants import (
        GROUPS,
        PACKAGE_INDEXES,
        HostGrant,
        check_owned,
        grant_for,
        host_grant,
        hosts_in,
        joined_network,
        network_from,
    )
    from haft.contracts.limits import PROCESS_LIMITS, Limits, LimitsApplied
    from haft.contracts.locales import PLAIN_LOCALE, is_locale_variable, non_utf8_variable, reads_utf8
    from haft.contracts.model_answer import MODEL_CHARS, ModelAnswer, cut_middle, facts_for_model, facts_in_words
    from haft.contracts.names import (
        RUN_ID,
        BatchId,
        HostId,
        RunId,
        ThreadId,
        ToolName,
        clean_tool_name,
        is_batch_id,
        is_tool_name,
        new_batch_id,
        new_host_id,
        new_run_id,
        new_thread_id,
    )
    from haft.contracts.outcome import NO_LIMITS, OUTCOME_FIELDS, UNAUDITED_FIELDS, Outcome
    from haft.contracts.passed_variables import ALWAYS_PASSED, EVALUATED_VARIABLES, NETWORK_VARIABLES, PROXY_VARIABLES
    from haft.contracts.personal_secrets import needing_secrets, secret_names, with_secrets
    from haft.contracts.ports import (
        Command,
        Definitions,
        DescribeLauncher,
        EndedChild,
        Environment,
        Environments,
        Exit,
        Launcher,
        LayeredSession,
        Mount,
        OutputSink,
        Session,
        SessionLauncher,
        Stream,
        Terminal,
        ToolContext,
        WarmProgram,
        Workspace,
        WrittenFile,
    )
    from haft.contracts.principal import Principal, PrincipalKind, check_text
    from haft.contracts.questions import FORM, Question, QuestionAnswer, QuestionMethod
    from haft.contracts.renamed_fields import with_current_names
    from haft.contracts.rights import Rights, as_rights, limits_within, restricted_holder, rights_from
    from haft.contracts.secrets import (
        MARK,
        MIN_SECRET_LENGTH,
        NO_SECRETS,
        MaskedStream,
        Secrets,
        named_secrets,
        says_secret,
        texts_in,
    )
    from haft.contracts.server_marks import escaped_marks, marked_text
    from haft.contracts.states import NEXT_STATUSES, STATUSES, TERMINAL, Status
    from haft.contracts.stored_outcome import confinement_from, decision_from, outcome_from, path_from, time_from
    from haft.contracts.tool import (
        DELEGATES,
        Answer,
        AnswerBasis,
        DiscoveredTool,
        Effects,
        Hosting,
        Kind,
        Listing,
        Provenance,
        RenamedTool,
        State,
        TaskSupport,
        Tool,
        ToolResult,
        ToolSpec,
        configured,
    )
    from haft.contracts.trace import Trace, callers_trace, in_trace, parse_traceparent
    from haft.contracts.variables import names_read, names_reported_missing, why_not_granted, withheld
else:
    __getattr__ = face(
        __name__,
        {
            "attachment": "Attachment Unanswered",
            "call": "Call own_copy",
            "claims": "LONGEST_CLAIM read_claim",
            "change": "Change ChangeKind Changes ChangesState ConflictingPath Engine NO_CHANGES UNTRACKED path_to_json",
            "decision": "Action RuleOffer ApprovalAnswer ApprovalRequest "
            "Approver DecidedPart Decision Delegation Scope",
            "renamed_fields": "with_current_names",
            "errors": (
                "AmbiguousRun AnsweredBefore BadApprover BadBatchApprover BadConfig BadUsage Bug Busy CallError "
                "Conflict Deadlock "
                "DependencyFailed ERROR_CODES EXIT_CODES Failure HaftError InvalidArguments LeaseLost LimitExceeded "
                "MachineError "
                "NeedsBuild NeedsPerson NotCovered OwnCall NetworkOpen NoNetworkByHost PathEscapes PersonError "
                "RefusedToClient "
                "Rejected ScratchFull ShownHasChanged StartFailed StorageFailed TimedOut ToolFailed Unconfined "
                "UnknownEnd UnknownRequest UnknownRun UnknownTool UnknownWorkspace KeyInUse KeyReused "
                "SandboxDenied near_miss"
            ),
            "events": "Event EventType iso_time",
            "failure_lines": "error_or_last_line error_line without_progress",
            "footprint": "Footprint Isolation NOTHING Paths UNKNOWN meeting_path why_ordered",
            "limits": "Limits LimitsApplied PROCESS_LIMITS",
            "locales": "PLAIN_LOCALE non_utf8_variable is_locale_variable reads_utf8",
            "model_answer": "MODEL_CHARS ModelAnswer cut_middle facts_for_model facts_in_words",
            "names": (
                "BatchId HostId RUN_ID RunId ThreadId ToolName "
                "clean_tool_name is_batch_id is_tool_name new_batch_id new_host_id new_run_id new_thread_id"
            ),
            "outcome": "UNAUDITED_FIELDS NO_LIMITS OUTCOME_FIELDS Outcome",
            "passed_variables": "EVALUATED_VARIABLES ALWAYS_PASSED NETWORK_VARIABLES PROXY_VARIABLES",
            "personal_secrets": "needing_secrets secret_names with_secrets",
            "ports": (
                "DescribeLauncher Command Definitions EndedChild Environment Environments Exit Launcher "
                "LayeredSession Mount OutputSink WrittenFile Session SessionLauncher Stream Terminal ToolContext "
                "WarmProgram Workspace"
            ),
            "principal": "Principal PrincipalKind check_text",
            "questions": "FORM Question QuestionAnswer QuestionMethod",
            "frozen_copies": "evolve",
            "rights": "Rights as_rights limits_within restricted_holder rights_from",
            "secrets": "MARK MaskedStream NO_SECRETS MIN_SECRET_LENGTH Secrets named_secrets says_secret texts_in",
            "server_marks": "escaped_marks marked_text",
            "states": "NEXT_STATUSES STATUSES Status TERMINAL",
            "stored_outcome": "confinement_from decision_from outcome_from path_from time_from",
            "tool": (
                "DELEGATES Answer AnswerBasis DiscoveredTool Effects Hosting Kind Listing "
                "Provenance RenamedTool State TaskSupport Tool ToolResult ToolSpec configured"
            ),
            "trace": "Trace callers_trace in_trace parse_traceparent",
            "variables": "names_reported_missing names_read why_not_granted withheld",
            "conditions": "CallFaults Clock NO_CONDITIONS STAND_INS Conditions StandIns",
            "confinement": (
                "Grants Layer NOT_RUN NO_GRANTS NO_CONFINEMENT PLUGIN_ENTRY Network Profile Confinement "
                "grants_from network_json written_grant"
            ),
            "connections": "GIVEN_UP NOT_GRANTED Connection ConnectionObserver HeldConnection",
            "host_grants": (
                "GROUPS PACKAGE_INDEXES HostGrant check_owned grant_for host_grant hosts_in joined_network network_from"
            ),
        },
    )
