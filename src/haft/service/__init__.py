"""The service: puts a host together, and offers the facades that programs and surfaces (such as the command line) use.
It makes no decisions.

Surfaces import only this package and nothing below it. So this package also re-exports the few values and functions of
lower packages that surfaces need. Each name is imported when it is first used, so that a command that only lists tools
does not import what only calls need.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.agents import AgentType, AgentTypes, ChosenModel, ListedType
    from haft.changes import (
        BlamedLine,
        FileDifference,
        HeldChangeSet,
        Origin,
        PathChange,
        Row,
        Usage,
        format_bytes,
        stat_lines,
    )
    from haft.config import (
        SETTINGS,
        Config,
        ConfigFile,
        ForeignFile,
        Ignored,
        Setting,
        check_workspace,
        config_signature,
        find_workspace,
        load_config,
        newly_ignored,
    )
    from haft.files import grant_words
    from haft.pipeline import BatchedCall, BatchPlan, Pause, Run, read_calls
    from haft.policy import (
        Explanation,
        Rule,
        Signer,
        SimpleCommand,
        Suggestion,
        Waiting,
        WrittenWord,
        name_matches,
        split_commands,
    )
    from haft.processes import start_spare
    from haft.registry import search, unknown_tool
    from haft.runs import Frame, History, RunRecord, follow
    from haft.schema import coerce
    from haft.service.agent_types import DescribedType, budget_of, described_type, find_agent_types, model_of
    from haft.service.approval_secret import ApprovalSecret
    from haft.service.audit_log import AuditLogFacade
    from haft.service.backup.backup import BackupResult, make_backup
    from haft.service.backup.restore import RestoreResult, restore_backup
    from haft.service.backup.verify import StoreVerdict, verify_store
    from haft.service.call_arguments import check_arguments, check_form, never_granted
    from haft.service.changes import ChangesFacade, ChangesPart, changed_since, nothing_to, rows_for, with_batches
    from haft.service.checks import Check
    from haft.service.client_announcements import announce_caller, announce_peer
    from haft.service.desktop import DesktopNotifier
    from haft.service.doctor import diagnose
    from haft.service.facades.batches import BatchRun
    from haft.service.facades.changes import HeldMerge, still_in_conflict
    from haft.service.facades.paused_runs import AskedNow
    from haft.service.facades.programs import ProgramPlan
    from haft.service.facades.providers import HostProviders
    from haft.service.hook_messages import (
        BadHookMessage,
        HookConnection,
        HookKind,
        HookMessage,
        HookMessageReader,
        answer_inside_run,
        ask_where,
        encode_hook_message,
        hook_socket_path,
        no_decision,
    )
    from haft.service.hooked_calls.calls import HookedCalls, HookedDecision, HookedEnd
    from haft.service.hooked_calls.tickets import Ticket, Tickets
    from haft.service.hooked_calls.variables import environment_key, environment_of
    from haft.service.housekeeping import bounds_of
    from haft.service.inbox import InboxFacade, Reply, answered_by, check_together, to_json
    from haft.service.listening import (
        LOOPBACK_NAMES,
        CannotListen,
        check_names,
        is_loopback,
        listen,
        place_of,
        split_address,
    )
    from haft.service.living_clients import (
        Announcement,
        LivingClient,
        announce,
        belongs_to,
        clients_alive,
        refuse_clients,
    )
    from haft.service.local_clients import LocalClients
    from haft.service.observed_calls import Observed, ObservedCalls, ObservedDecision
    from haft.service.offered_names import SERVER_TOOLS, offered_name
    from haft.service.output_pages import LONGEST_PAGE, OutputPage, output_lines, output_page
    from haft.service.own_file import OwnFile
    from haft.service.paused_runs import request_cancel
    from haft.service.people.identity import Identity
    from haft.service.people.known_people import KnownPeople
    from haft.service.people.roles import (
        ACTIONS,
        ALLOWED,
        MEANING,
        NEVER_FOR_A_PART,
        NEVER_FOR_AGENTS,
        ROLES,
        Action,
        Kind,
        Role,
    )
    from haft.service.people.sessions import LINK_SECONDS, Session, Sessions, SignInLinks
    from haft.service.people.tokens import ClientToken, Tokens
    from haft.service.permissions import (
        Replayed,
        decided_by,
        missing_from,
        replayed,
        replayed_change,
        rules_at,
        rules_in,
        shown_rules,
        with_delegates,
    )
    from haft.service.plugins import ListedPlugin, PluginsFacade
    from haft.service.previews import missed_scratch
    from haft.service.principals import this_user, user_name
    from haft.service.programs.program import AgentFiles, CarriedBack, Program
    from haft.service.providers import (
        ListedProvider,
        ProviderChange,
        ProvidersFacade,
        RemovedProvider,
        StartProposal,
        provider_text,
    )
    from haft.service.providers_login import login_provider
    from haft.service.reachable_hosts import Reach, network_reach, one_host
    from haft.service.recovery import recover_into
    from haft.service.retention import Retention, retention_of
    from haft.service.rule_changes import RuleChange, RuleChanges
    from haft.service.rule_listing import is_all_there, listed_rules
    from haft.service.run_events import RunEvents
    from haft.service.sealed_states import SealedStates
    from haft.service.served_workspaces import DEFAULT_NAME, NamedWorkspace, ServedWorkspace, ServedWorkspaces
    from haft.service.service import ToolService
    from haft.service.state_news import News, StateNews
    from haft.service.state_reader import has_state, open_changes, open_history, recover_dead_hosts
    from haft.service.store import StoreFacade, Tidied
    from haft.service.suggestions import Suggested, add_line, suggested
    from haft.service.sync import SyncToolService
    from haft.service.telemetry.metrics import METRICS_TYPE, metrics_text
    from haft.service.telemetry.request_counts import CountedRequest, RequestCounts
    from haft.service.telemetry.run_counts import RunCounts
    from haft.service.telemetry.state_facts import MeasuredState
    from haft.service.templates import TemplateState, really_inside, template_environments, template_state
    from haft.service.tool_forms import LIST_FORMS, SINGLE_FORMS, accepted_schema, mcp_definition, tool_definitions
    from haft.service.tool_listing import ListedTools, approval_of, withheld_from
    from haft.service.transcripts import Transcript, TranscriptEntry, transcript_of
    from haft.service.trust import Proposal, TrustChange, TrustFacade
    from haft.service.uncovered_calls import is_harmless, person_command_in, record_uncovered
    from haft.service.webhooks.deliveries import Delivery
    from haft.service.webhooks.settings import EVENTS, Webhook, webhooks_in
    from haft.service.webhooks.webhooks import Webhooks, deliveries_of
    from haft.sources import NOT_DESCRIBED
    from haft.sources.amp_toolbox import PROJECT
    from haft.sources.mcp import START_SECONDS
    from haft.sources.skills import Activations, Skill, Skills, lies_in, server_names
    from haft.storage import Filter, StateHome, default_home
    from haft.toolsets import Discovery, TemplateEnvironments, Updated, fill_catalogue, probe_launcher
else:
    __getattr__ = face(
        __name__,
        {
            "agent_types": "DescribedType budget_of find_agent_types described_type model_of",
            "principals": "this_user user_name",
            "changes": "ChangesFacade ChangesPart changed_since nothing_to rows_for with_batches",
            "checks": "Check",
            "desktop": "DesktopNotifier",
            "doctor": "diagnose",
            "hook_messages": (
                "BadHookMessage HookConnection HookKind HookMessage HookMessageReader answer_inside_run ask_where "
                "encode_hook_message hook_socket_path no_decision"
            ),
            "hooked_calls.calls": "HookedCalls HookedDecision HookedEnd",
            "hooked_calls.tickets": "Ticket Tickets",
            "hooked_calls.variables": "environment_key environment_of",
            "housekeeping": "bounds_of",
            "inbox": "InboxFacade Reply answered_by check_together to_json",
            "backup.backup": "BackupResult make_backup",
            "backup.restore": "RestoreResult restore_backup",
            "backup.verify": "StoreVerdict verify_store",
            "call_arguments": "check_arguments check_form never_granted",
            "reachable_hosts": "Reach network_reach one_host",
            "listening": "LOOPBACK_NAMES CannotListen check_names is_loopback listen place_of split_address",
            "living_clients": ("Announcement LivingClient announce belongs_to clients_alive refuse_clients"),
            "local_clients": "LocalClients",
            "observed_calls": "Observed ObservedCalls ObservedDecision",
            "offered_names": "SERVER_TOOLS offered_name",
            "output_pages": "LONGEST_PAGE OutputPage output_lines output_page",
            "own_file": "OwnFile",
            "paused_runs": "request_cancel",
            "people.identity": "Identity",
            "people.known_people": "KnownPeople",
            "people.roles": "ACTIONS ALLOWED MEANING NEVER_FOR_AGENTS NEVER_FOR_A_PART ROLES Action Kind Role",
            "people.sessions": "LINK_SECONDS Session Sessions SignInLinks",
            "people.tokens": "ClientToken Tokens",
            "permissions": (
                "Replayed decided_by missing_from replayed replayed_change rules_at rules_in shown_rules with_delegates"
            ),
            "plugins": "ListedPlugin PluginsFacade",
            "previews": "missed_scratch",
            "facades.batches": "BatchRun",
            "facades.changes": "HeldMerge still_in_conflict",
            "facades.paused_runs": "AskedNow",
            "facades.programs": "ProgramPlan",
            "facades.providers": "HostProviders",
            "programs.program": "AgentFiles CarriedBack Program",
            "providers": "ListedProvider ProviderChange ProvidersFacade RemovedProvider StartProposal provider_text",
            "providers_login": "login_provider",
            "haft.sources.mcp": "START_SECONDS",
            "state_news": "News StateNews",
            "state_reader": "has_state open_changes open_history recover_dead_hosts",
            "client_announcements": "announce_caller announce_peer",
            "approval_secret": "ApprovalSecret",
            "audit_log": "AuditLogFacade",
            "recovery": "recover_into",
            "retention": "Retention retention_of",
            "rule_changes": "RuleChange RuleChanges",
            "rule_listing": "is_all_there listed_rules",
            "run_events": "RunEvents",
            "sealed_states": "SealedStates",
            "served_workspaces": "DEFAULT_NAME NamedWorkspace ServedWorkspace ServedWorkspaces",
            "service": "ToolService",
            "store": "StoreFacade Tidied",
            "suggestions": "Suggested add_line suggested",
            "sync": "SyncToolService",
            "templates": "TemplateState really_inside template_environments template_state",
            "transcripts": "Transcript TranscriptEntry transcript_of",
            "telemetry.metrics": "METRICS_TYPE metrics_text",
            "telemetry.request_counts": "CountedRequest RequestCounts",
            "telemetry.run_counts": "RunCounts",
            "telemetry.state_facts": "MeasuredState",
            "tool_forms": "LIST_FORMS SINGLE_FORMS accepted_schema mcp_definition tool_definitions",
            "tool_listing": "ListedTools approval_of withheld_from",
            "trust": "Proposal TrustChange TrustFacade",
            "haft.agents": "AgentType AgentTypes ChosenModel ListedType",
            "haft.changes": (
                "BlamedLine Origin PathChange FileDifference HeldChangeSet Row Usage format_bytes stat_lines"
            ),
            "uncovered_calls": "is_harmless person_command_in record_uncovered",
            "haft.config": (
                "Config ConfigFile Ignored SETTINGS Setting ForeignFile check_workspace config_signature "
                "find_workspace load_config newly_ignored"
            ),
            "haft.files": "grant_words",
            "haft.pipeline": "BatchPlan BatchedCall Pause Run read_calls",
            "haft.policy": (
                "Explanation Rule Signer SimpleCommand Suggestion Waiting WrittenWord name_matches split_commands"
            ),
            "haft.processes": "start_spare",
            "haft.registry": "search unknown_tool",
            "haft.runs": "Frame History RunRecord follow",
            "haft.schema": "coerce",
            "webhooks.deliveries": "Delivery",
            "webhooks.settings": "EVENTS Webhook webhooks_in",
            "webhooks.webhooks": "Webhooks deliveries_of",
            "haft.sources": "NOT_DESCRIBED",
            "haft.sources.amp_toolbox": "PROJECT",
            "haft.sources.skills": "Activations Skill Skills lies_in server_names",
            "haft.storage": "Filter StateHome default_home",
            "haft.toolsets": "Discovery TemplateEnvironments Updated fill_catalogue probe_launcher",
        },
    )
