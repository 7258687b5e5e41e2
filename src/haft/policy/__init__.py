"""Decides whether a call may run: rules, the analysis of commands, answers of people, and an explanation of each
decision.

`policy_engine` brings these together. This module imports nothing when it is loaded, because listing tools needs only
`enablement`.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.policy.allowable import host_offers, with_variables
    from haft.policy.analysis import analyse, prepare_analysis
    from haft.policy.analysis.line_footprint import footprint_of_line
    from haft.policy.analysis.repeatable_lines import RepeatableLine, repeatable_line
    from haft.policy.analysis.verdict import AnalysisContext
    from haft.policy.approval.environments import ENVIRONMENT, Environments, may_use_environment
    from haft.policy.approval.inbox import NEVER, Answered, Inbox, Waiting, digest_of, fingerprint_of, new_request_id
    from haft.policy.approval.loaded_code import LoadedFiles, files_run_by, loaded_by
    from haft.policy.approval.memory import Memory, Remembered, with_people, with_proof
    from haft.policy.approval.pins import Pin, Pins, is_unchanged, loaded_files, pin_of, pinned_files
    from haft.policy.approval.proofs import Signer, Verifier
    from haft.policy.baseline import BUILT_IN_SOURCE
    from haft.policy.candidates import Candidate
    from haft.policy.enablement import Enablement, Feature, NameList
    from haft.policy.links import links_on_way
    from haft.policy.person_commands import person_command
    from haft.policy.policy_engine import PolicyEngine
    from haft.policy.query import Explanation, PolicyQuery, Step
    from haft.policy.reading_commands import only_reads
    from haft.policy.rules.examples import check_examples
    from haft.policy.rules.lines import rule_lines
    from haft.policy.rules.missing import is_for_other_workspace, missing_target
    from haft.policy.rules.names import name_matches
    from haft.policy.rules.reading import rule_from, rule_source, rules_from
    from haft.policy.rules.rule import Rule, RuleOrigin
    from haft.policy.rules.shapes import shapes_of
    from haft.policy.rules.tool_grants import RUNNABLE_ACTIONS, grants_for_all_calls
    from haft.policy.rules.unmatchable import check_rule, check_rules
    from haft.policy.simple_commands import Redirection, SimpleCommand, SimpleCommands, WrittenWord, split_commands
    from haft.policy.suggester import PastAnswer, PastCall, Suggester, Suggestion
else:
    __getattr__ = face(
        __name__,
        {
            "allowable": "host_offers with_variables",
            "analysis": "analyse prepare_analysis",
            "analysis.line_footprint": "footprint_of_line",
            "analysis.repeatable_lines": "RepeatableLine repeatable_line",
            "analysis.verdict": "AnalysisContext",
            "approval.environments": "ENVIRONMENT Environments may_use_environment",
            "approval.inbox": "NEVER Answered Inbox Waiting digest_of fingerprint_of new_request_id",
            "approval.loaded_code": "LoadedFiles files_run_by loaded_by",
            "approval.memory": "Memory Remembered with_people with_proof",
            "approval.pins": "Pin Pins pinned_files is_unchanged loaded_files pin_of",
            "approval.proofs": "Signer Verifier",
            "baseline": "BUILT_IN_SOURCE",
            "candidates": "Candidate",
            "enablement": "Enablement Feature NameList",
            "links": "links_on_way",
            "person_commands": "person_command",
            "reading_commands": "only_reads",
            "policy_engine": "PolicyEngine",
            "query": "Explanation PolicyQuery Step",
            "rules.examples": "check_examples",
            "rules.lines": "rule_lines",
            "rules.missing": "is_for_other_workspace missing_target",
            "rules.names": "name_matches",
            "rules.unmatchable": "check_rule check_rules",
            "rules.reading": "rule_from rule_source rules_from",
            "rules.rule": "Rule RuleOrigin",
            "rules.shapes": "shapes_of",
            "rules.tool_grants": "RUNNABLE_ACTIONS grants_for_all_calls",
            "simple_commands": "Redirection SimpleCommand SimpleCommands WrittenWord split_commands",
            "suggester": "PastAnswer PastCall Suggester Suggestion",
        },
    )
