"""May this happen: rules, the analysis of commands, what people answered, and the explanation of every decision.

`judge` brings it together. Nothing is imported here: listing tools needs `enablement` alone.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.policy.allowable import with_variables
    from haft.policy.analysis import analyse, prepare_analysis
    from haft.policy.analysis.verdict import Ground
    from haft.policy.approval.environments import ENVIRONMENT, Environments, finds_environment
    from haft.policy.approval.inbox import Answered, Inbox, Waiting, digest_of, fingerprint_of, new_request_id
    from haft.policy.approval.memory import Memory
    from haft.policy.approval.pins import Pin, Pins, held_files, is_unchanged, loaded_files, pin_of
    from haft.policy.baseline import SOURCE
    from haft.policy.candidates import Candidate
    from haft.policy.enablement import Enablement, Feature, NameList
    from haft.policy.judge import Judge
    from haft.policy.question import Explained, Question, Step
    from haft.policy.rules.examples import check_examples
    from haft.policy.rules.lines import rule_lines
    from haft.policy.rules.missing import is_of_elsewhere, what_is_missing
    from haft.policy.rules.names import name_fits
    from haft.policy.rules.never import check_rule, check_rules
    from haft.policy.rules.reading import rule_from, rule_source, rules_from
    from haft.policy.rules.rule import Rule, RuleOrigin
    from haft.policy.rules.shapes import shapes_of
    from haft.policy.rules.standing import RUNNING, granted_to
    from haft.policy.suggesting import HowAnswered, PastCall, Suggester, Suggestion

__getattr__ = face(
    __name__,
    {
        "allowable": "with_variables",
        "analysis": "analyse prepare_analysis",
        "analysis.verdict": "Ground",
        "approval.environments": "ENVIRONMENT Environments finds_environment",
        "approval.inbox": "Answered Inbox Waiting digest_of fingerprint_of new_request_id",
        "approval.memory": "Memory",
        "approval.pins": "Pin Pins held_files is_unchanged loaded_files pin_of",
        "baseline": "SOURCE",
        "candidates": "Candidate",
        "enablement": "Enablement Feature NameList",
        "judge": "Judge",
        "question": "Explained Question Step",
        "rules.examples": "check_examples",
        "rules.lines": "rule_lines",
        "rules.missing": "is_of_elsewhere what_is_missing",
        "rules.names": "name_fits",
        "rules.never": "check_rule check_rules",
        "rules.reading": "rule_from rule_source rules_from",
        "rules.rule": "Rule RuleOrigin",
        "rules.shapes": "shapes_of",
        "rules.standing": "RUNNING granted_to",
        "suggesting": "HowAnswered PastCall Suggester Suggestion",
    },
)
