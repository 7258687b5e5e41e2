"""The policy engine combines enablement, rules, command analysis and pins (approved definitions of tools) into one
decision.

- Enablement can only take tools away.
- A call is decided in units: each part of a command line is one unit, and any other call is one unit. From each origin
  of rules, the first rule that matches counts. If any origin rejects a unit, the unit is rejected. Otherwise remembered
  answers come first, then the rules of the embedding program, of the workspace and of the user. If no rule matches, a
  part that only reads is allowed, and so is a tool that a trusted party declares read-only; everything else needs
  approval.
- A remembered answer counts for the person who gave it, for the caller whose call it approved, and for agents that act
  for this person. With `approval.four_eyes`, it does not count for the person who gave it.
- A remembered answer about a connection decides nothing: it only adds its grant to the calls that it matches, if they
  run with an approval.
- If the written rules alone would allow a call, and grant everything that a remembered answer grants and more, these
  rules decide the call.
- If rules allow some parts of a line, a part that only analysis allows needs approval if it may start other programs.
- A dangerous part needs approval even if a rule allows it, unless that rule names the danger.
- A tool that no trusted party vouches for is bound to the definition that a person approved, or that ran first because
  a rule allowed it.
- The strictest unit decides: reject, then delegate, ask, try, allow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from haft.contracts import (
    NO_GRANTS,
    Action,
    DecidedPart,
    Decision,
    Delegation,
    Grants,
    HaftError,
    Isolation,
    non_utf8_variable,
    restricted_holder,
)
from haft.policy.allowable import allowable
from haft.policy.analysis import analyse
from haft.policy.analysis.verdict import (
    DANGERS,
    EVALUATED_VARIABLES,
    Analysis,
    AnalysisContext,
    Danger,
    Part,
    not_understood_part,
)
from haft.policy.approval.environments import ENVIRONMENT, Environments, may_use_environment
from haft.policy.approval.pins import Pin, difference, pin_of
from haft.policy.baseline import BUILT_IN_SOURCE, decide
from haft.policy.enablement import Enablement
from haft.policy.file_summary import file_summary
from haft.policy.query import Explanation, PolicyQuery, Step
from haft.policy.rights import why_beyond_rights, why_decision_beyond_rights
from haft.policy.rules.matching import (
    CallFacts,
    first_match,
    mentions_program,
    reject_unparsed,
    rejected_dangers,
    rule_mismatch,
)
from haft.policy.rules.rule import Context, Rule
from haft.values import dataclass, replace

MAX_SHOWN_LENGTH: Final = 100
_STRICTNESS: Final[Mapping[Action, int]] = {"allow": 0, "try": 1, "ask": 2, "delegate": 3, "reject": 4}
_HARMLESS_VARIABLES: Final = frozenset(
    {"LANG", "LC_ALL", "LC_CTYPE", "TZ", "NO_COLOR", "COLUMNS", "TERM", "FORCE_COLOR"}
)


@dataclass(frozen=True, slots=True)
class _Unit:
    """The decision about one unit of a call: about one part of its command line, or about the whole call if it has no
    command line.
    """

    action: Action
    reason: str
    part: Part | None
    rule: Rule | None = None
    """The rule that decided; None if the analysis or haft's own rules decided."""
    least: Action = "allow"
    """If a delegate decides: the action that counts if the delegate allows the call."""


class PolicyEngine:
    """Decides about calls and explains the decisions. `remembered` and `pinned` look up earlier answers of people. For
    each decision, `remembered` is called before `pinned`."""

    def __init__(
        self,
        rules: Sequence[Rule],
        enablement: Enablement,
        workspace: str,
        home: str,
        *,
        remembered: Callable[[], Sequence[Rule]] = lambda: (),
        pinned: Callable[[str], Pin | None] = lambda _tool: None,
        locate: Callable[[str], str] = os.path.normpath,
        environments: Environments | None = None,
        four_eyes: bool = False,
    ) -> None:
        self._four_eyes = four_eyes
        self._rules = {
            origin: tuple(rule for rule in rules if rule.origin == origin) for origin in ("caller", "workspace", "user")
        }
        self._is_plain = not rules
        """Whether nobody wrote any rules. Then haft's own rules can decide most calls quickly."""
        self._enablement = enablement
        self._workspace = workspace
        self._home = home
        self._remembered = remembered
        self._pinned = pinned
        self._locate = locate
        self._environments = environments

    def decide(self, query: PolicyQuery) -> Decision:
        """The decision about this call."""
        spec = query.spec
        if self._is_plain and not spec.commands and spec.is_vouched_for and not query.rights:
            base = decide(spec, confined=query.confined)
            off = self._enablement.why_not(spec.name, spec.kind)
            if off is None and base.action == "allow" and not self._remembered():
                return base
        return self.explain(query).decision

    def explain(self, query: PolicyQuery) -> Explanation:
        """The decision about this call, with every step that led to it."""
        steps: list[Step] = []
        spec = query.spec
        off = self._enablement.why_not(spec.name, spec.kind)
        if off is not None:
            steps.append(Step("enablement", spec.name, off))
            return Explanation(Decision("reject", "enablement", off, "tools.disable", "rule", off), tuple(steps))
        steps.append(Step("enablement", spec.name, "enabled"))
        beyond = why_beyond_rights(query)
        if beyond is not None:
            steps.append(Step("rights", spec.name, beyond))
            return Explanation(_beyond_rights(beyond), tuple(steps))
        pin = pin_of(spec)
        analysis = self._analysis(query)
        call = self._call_facts(query, pin)
        answers = [rule for rule in self._remembered() if self._counts(rule, query)]
        if restricted_holder(query.rights) is not None:
            answers = [rule for rule in answers if rule.thread is not None and rule.thread == query.thread]
        hosts = [rule for rule in answers if rule.only_grants]
        answers = [rule for rule in answers if not rule.only_grants] if hosts else answers
        units = self._units(query, call, analysis, answers, steps)
        if any(unit.rule is not None and unit.rule.origin == "remembered" for unit in units):
            unshown: list[Step] = []
            alone = self._units(query, call, analysis, (), unshown)
            if all(unit.action == "allow" for unit in alone) and _granted(alone).exceeds(_granted(units)):
                steps += [Step("rules", spec.name, "the written rules alone allow it, and grant more"), *unshown]
                units = alone
        decision = self._combine(query, units, pin, is_command=analysis is not None)
        if not query.trial:
            decision = _with_hosts(decision, [rule for rule in hosts if rule_mismatch(rule, call) is None], steps)
        decision = self._check_pin(query, decision, units, pin, steps)
        return self._within_rights(query, self._check_environment(query, decision, units, steps), steps)

    def _counts(self, rule: Rule, query: PolicyQuery) -> bool:
        """Whether a remembered answer counts for this caller."""
        if query.who is None or rule.by is None:
            return True
        is_own = rule.by in (query.who, query.on_behalf)
        return not self._four_eyes if is_own else query.who == rule.caller

    @staticmethod
    def _within_rights(query: PolicyQuery, decision: Decision, steps: list[Step]) -> Explanation:
        """The decision, as far as the rights of the call permit it."""
        beyond = why_decision_beyond_rights(query, decision)
        if beyond is not None:
            steps.append(Step("rights", query.spec.name, beyond))
            decision = replace(_beyond_rights(beyond), parts=decision.parts)
        elif restricted_holder(query.rights) is not None and decision.grants != NO_GRANTS:
            steps.append(Step("rights", query.spec.name, "the grants of rules do not count"))
            decision = replace(decision, grants=NO_GRANTS, granted_by=())
        return Explanation(decision, tuple(steps))

    def parts(self, query: PolicyQuery) -> tuple[Part, ...] | None:
        """The parts of the call's command lines, in the order of the decision's parts; None if the call has no command
        line."""
        analysis = self._analysis(query)
        return None if analysis is None else analysis.parts

    def fits(self, rule: Rule, query: PolicyQuery, part: Part | None) -> bool:
        """Whether a rule matches a call, or only `part` of it. The rule need not be one of this engine's rules."""
        return rule_mismatch(rule, self._call_facts(query, None), part) is None

    # Deciding one unit.

    def _analysis(self, query: PolicyQuery) -> Analysis | None:
        """The analysis of the command lines among the arguments; None if there are none."""
        spec, arguments = query.spec, query.arguments
        lines = [arguments[name] for name in spec.commands if isinstance(arguments.get(name), str)]
        if not lines:
            return None
        cwd = arguments.get("cwd")
        context = AnalysisContext(
            self._workspace, cwd if isinstance(cwd, str) else query.cwd, confined=query.confined, home=self._home
        )
        found = [analyse(line, context) for line in lines]
        parts = [part for each in found for part in each.parts]
        env = arguments.get("env")
        variables = {**query.env, **(env if isinstance(env, Mapping) else {})}
        foreign = non_utf8_variable(variables)
        if foreign is not None:
            return _unreadable(lines, foreign, str(variables[foreign]))
        if variables:
            parts.append(_variables_part(variables))
        return Analysis(tuple(parts), all(each.understood for each in found))

    def _units(
        self, query: PolicyQuery, call: CallFacts, analysis: Analysis | None, answers: Sequence[Rule], steps: list[Step]
    ) -> list[_Unit]:
        """The decisions about all units of a call (the parts of its command line, or the whole call), by the rules and
        by the remembered `answers`.
        """
        if analysis is None:
            return [self._unit(query, call, None, answers, steps)]
        units = [self._unit(query, call, part, answers, steps) for part in analysis.parts]
        units = self._ask_about_starters(units, steps)
        return units if analysis.understood else self._reject_unparsed(call, units, steps)

    def _unit(
        self, query: PolicyQuery, call: CallFacts, part: Part | None, answers: Sequence[Rule], steps: list[Step]
    ) -> _Unit:
        rule, least = self._deciding_rule(call, part, answers, steps)
        if rule is not None:
            unit = self._decide_by_rule(rule, part, steps)
            return replace(unit, least=max(unit.least, least, key=lambda each: _STRICTNESS[each]))
        if part is not None:
            action: Action = "allow" if part.safe else "ask"
            reason = (
                part.reason if part.safe or not part.dangers else f"{part.reason}; it {_name_dangers(part.dangers)}"
            )
            steps.append(Step("analysis", part.text, f"{action}: {reason}"))
            return _Unit(action, reason, part)
        base = decide(query.spec, confined=query.confined)
        steps.append(Step("built-in", base.rule, f"{base.action}: {base.reason}", base.source))
        return _Unit(base.action, base.reason, None)

    def _deciding_rule(
        self, call: CallFacts, part: Part | None, answers: Sequence[Rule], steps: list[Step]
    ) -> tuple[Rule | None, Action]:
        """The rule that decides about `part`, or about the whole call if `part` is None; None if no rule matches. The
        second value is an action. If the rule delegates to a program, this action applies when the program allows the
        call.
        """
        first = {origin: self._first_of_origin(rules, call, part, steps) for origin, rules in self._rules.items()}
        rejecting = next((rule for rule in first.values() if rule is not None and rule.action == "reject"), None)
        if rejecting is not None:
            return rejecting, "reject"
        chosen = self._first(answers, call, part, steps)
        chosen = chosen or next((rule for rule in first.values() if rule is not None), None)
        for origin in ("user", "caller", "workspace"):
            rule = first[origin]
            # A `delegate` rule counts even if a stronger origin allows or asks, because the delegate may reject the
            # call. A `try` rule of the user also counts if a stronger origin asks: the trial run comes before the
            # approval.
            if rule is not None and chosen is not None and rule.action == "delegate":
                return rule, "allow" if chosen.action == "delegate" else chosen.action
        tried = first["user"]
        if chosen is not None and chosen.action == "ask" and tried is not None and tried.action == "try":
            return tried, "allow"
        return chosen, "allow"

    def _first_of_origin(
        self, rules: Sequence[Rule], call: CallFacts, part: Part | None, steps: list[Step]
    ) -> Rule | None:
        """The rule that counts among the rules of one origin: the first rule that matches. But a later rule that
        rejects a danger of the part counts instead, unless the first rule names this danger. None if no rule matches.
        """
        chosen = self._first(rules, call, part, steps)
        if part is None or chosen is None or chosen.action == "reject":
            return chosen
        later = rules[rules.index(chosen) + 1 :]
        for rule in later:
            if rule.rejects_dangers and rule_mismatch(rule, call, part) is None:
                spared = rejected_dangers(rule, part) <= {*chosen.dangers}
                outcome = "a rule above allows this danger" if spared else "matches"
                steps.append(Step("rules", _step_title(rule, part), outcome, rule.source))
                if not spared:
                    return rule
        return chosen

    @staticmethod
    def _first(rules: Sequence[Rule], call: CallFacts, part: Part | None, steps: list[Step]) -> Rule | None:
        found = first_match(rules, call, part)
        for rule, why_not in found.passed:
            steps.append(Step("rules", _step_title(rule, part), f"does not match: {why_not}", rule.source))
        if found.rule is not None:
            steps.append(Step("rules", _step_title(found.rule, part), "matches", found.rule.source))
        return found.rule

    def _call_facts(self, query: PolicyQuery, pin: Pin | None) -> CallFacts:
        spec = query.spec
        paths = {
            name: self._located(value) for name in spec.paths if isinstance(value := query.arguments.get(name), str)
        }
        context: Context = "subagent" if query.subagent else "thread"
        return CallFacts(
            spec.name,
            spec.kind,
            query.arguments,
            context,
            spec.commands,
            paths,
            query.thread,
            _digest(pin),
            is_bare=query.cwd == "." and not query.env,
            aside=spec.meta.get("timeoutArgument"),
        )

    def _located(self, path: str) -> str | None:
        """The path with symbolic links followed; None if haft cannot resolve the path, or tools may not use it."""
        try:
            return self._locate(path)
        except (HaftError, OSError, ValueError):
            return None

    def _may_be_rejected(self, part: Part) -> bool:
        """Whether any rule rejects some commands of the program that this part runs."""
        return any(
            rule.action == "reject" and mentions_program(rule, part.program)
            for rules in self._rules.values()
            for rule in rules
        )

    def _decide_by_rule(self, rule: Rule, part: Part | None, steps: list[Step]) -> _Unit:
        unnamed = [danger for danger in part.dangers if danger not in rule.dangers] if part is not None else []
        if part is not None and unnamed and rule.action == "delegate":
            return _Unit("delegate", f"it {_name_dangers(unnamed)}", part, rule, "ask")
        if part is not None and unnamed and rule.action == "allow":
            reason = f"it {_name_dangers(unnamed)}; a rule that allows this must name it in `dangers`"
            steps.append(Step("rules", part.text, f"ask: {reason}", rule.source))
            return _Unit("ask", reason, part, rule)
        if part is not None and rule.action in ("allow", "try") and not part.literal and self._may_be_rejected(part):
            reason = (
                f"`{_brief(part.text)}` is known only when it runs, and a rule rejects some commands that it may be"
            )
            steps.append(Step("rules", part.text, f"ask: {reason}", rule.source))
            return _Unit("ask", reason, part, rule)
        reason = rule.message or f"the rule says {rule.words}"
        if part is not None and rule.rejects_dangers:
            reason = f"{reason}; {_why_rejected(rule, part)}"
        if part is not None and rule.action in ("ask", "try") and not part.safe:
            reason = f"{reason}; {part.reason}"
        steps.append(
            Step("rules", part.text if part is not None else rule.tool, f"{rule.action}: {reason}", rule.source)
        )
        return _Unit(rule.action, reason, part, rule)

    @staticmethod
    def _ask_about_starters(units: list[_Unit], steps: list[Step]) -> list[_Unit]:
        """Require approval for parts that only analysis allows and that may start other programs, if rules allow the
        rest of the line. Returns the changed units.

        A line that rules allow runs like an approved call, which can read more of the machine than a call that only
        analysis allows. A part that only analysis allows names no files outside of the workspace, but the programs that
        it starts could read them. If a rule allows the same program in another part of the line, nobody is asked,
        because that part may start other programs, too.
        """
        if not any(unit.rule is not None for unit in units) or any(_stops(unit) for unit in units):
            return units
        approved = {unit.part.program for unit in units if unit.rule is not None and unit.part is not None}
        found = []
        for unit in units:
            part = unit.part
            if unit.rule is None and part is not None and part.starts_others and part.program not in approved:
                reason = f"`{_brief(part.text)}` may start other programs, which could read the whole machine here"
                steps.append(Step("analysis", part.text, f"ask: {reason}"))
                unit = _Unit("ask", f"{reason}; on its own it needs no approval", part)
            found.append(unit)
        return found

    def _reject_unparsed(self, call: CallFacts, units: list[_Unit], steps: list[Step]) -> list[_Unit]:
        """Reject a line that haft could not parse, if a rule that rejects has a pattern that occurs anywhere in the
        text of the line. Returns the units, changed if the line is rejected.
        """
        text = "\n".join(value for name in call.commands if isinstance(value := call.arguments.get(name), str))
        every = [rule for rules in self._rules.values() for rule in rules]
        rule = reject_unparsed(every, call, text)
        if rule is None or any(unit.action == "reject" for unit in units):
            return units
        steps.append(Step("rules", rule.words, "matches the text, which haft could not parse", rule.source))
        return [_Unit("reject", rule.message or f"the rule says {rule.words}", units[0].part, rule)]

    # Combining the units.

    def _combine(self, query: PolicyQuery, units: list[_Unit], pin: Pin | None, *, is_command: bool) -> Decision:
        strictest = max(units, key=_weight)
        rule = strictest.rule
        parts = tuple(_decided_part(unit) for unit in units if unit.part is not None)
        if rule is None and not is_command:
            return replace(decide(query.spec, confined=query.confined), pin=_digest(pin))
        by_analysis = all(unit.rule is None for unit in units)
        action = strictest.action
        delegates = tuple(
            dict.fromkeys(
                Delegation(unit.rule.to or "", unit.rule.words, unit.rule.source)
                for unit in units
                if unit.action == "delegate" and unit.rule is not None
            )
        )
        rest = [unit.least if unit.action == "delegate" else unit.action for unit in units]
        reads_only = by_analysis and action == "allow"
        return Decision(
            action=action,
            layer="rules" if rule is not None else "analysis",
            rule=rule.words if rule is not None else _analysis_rule(action),
            source=rule.source if rule is not None else BUILT_IN_SOURCE,
            by="rule",
            reason=strictest.reason if len(units) == 1 else _reason(strictest, units),
            parts=parts,
            profile="read-only" if reads_only or self._only_reads(query) else "workspace",
            neutral=reads_only,
            unasked=reads_only,
            grants=_granted(units) if action != "reject" else NO_GRANTS,
            granted_by=tuple(
                (unit.rule.source, unit.rule.grant)
                for unit in units
                if unit.rule is not None and unit.rule.grant != NO_GRANTS and action != "reject"
            ),
            isolation=_isolation(units),
            message=rule.message if rule is not None else None,
            delegates=delegates,
            otherwise=max(rest, key=lambda each: _STRICTNESS[each], default="allow"),
            pin=_digest(pin),
            is_dangerous=any(unit.part is not None and bool(unit.part.dangers) for unit in units),
        )

    @staticmethod
    def _only_reads(query: PolicyQuery) -> bool:
        return query.spec.effects.readonly

    def _check_pin(
        self, query: PolicyQuery, decision: Decision, units: list[_Unit], pin: Pin | None, steps: list[Step]
    ) -> Decision:
        """If no trusted party vouches for the tool, and nobody has approved its present definition, return a decision
        by which the call needs approval; otherwise return the given decision. If the call needs approval, the returned
        decision also offers rules, which the person may choose to remember.
        """
        spec = query.spec
        if pin is not None and not spec.is_vouched_for and decision.action != "reject":
            decision = self._check_approved_definition(query, decision, pin, steps)
        if decision.action not in ("ask", "try", "delegate"):
            return decision
        if pin is not None and spec.provenance != "embedded":
            decision = replace(decision, definition=pin.definition)
        asked = [unit.part for unit in units if unit.part is not None and not unit.part.safe]
        offered = allowable(query, asked if any(unit.part is not None for unit in units) else None)
        return replace(decision, to_allow=offered)

    def _check_approved_definition(
        self, query: PolicyQuery, decision: Decision, pin: Pin, steps: list[Step]
    ) -> Decision:
        """If the tool's definition is not the one that a person approved, return a decision by which the call needs
        approval; otherwise return the given decision. If a rule delegates the decision to a program, this program runs
        first, and a person is asked only if the program allows the call.
        """
        spec = query.spec
        approved = self._pinned(spec.name)
        shown = None
        if approved is not None and approved.digest != pin.digest:
            reason = "its definition or its files have changed since you approved it"
            shown = difference(approved, pin)
        elif approved is None and spec.provenance == "workspace" and decision.action != "ask":
            reason = f"it comes from the workspace, and this is its first use{file_summary(spec, self._workspace)}"
        else:
            return decision
        steps.append(Step("pins", spec.name, f"ask: {reason}"))
        if decision.action == "delegate":
            return replace(decision, otherwise="ask", reason=reason, definition_diff=shown)
        return replace(decision, action="ask", layer="pins", reason=reason, definition_diff=shown)

    def _check_environment(
        self, query: PolicyQuery, decision: Decision, units: list[_Unit], steps: list[Step]
    ) -> Decision:
        """If the line would run a program of an activated environment, and this program has changed since a person
        approved it, return a decision by which the call needs approval; otherwise return the given decision, with the
        state of the environment. If a person has activated an environment (such as a virtual environment) inside the
        workspace, its programs are on the PATH of calls. These programs are not on the PATH of calls that need no
        approval because they only read, nor on the PATH of calls that have grants and that a rule allows.
        """
        unlike = decision.unasked or decision.action == "reject" or query.spec.hosting != "per-call"
        if self._environments is None or unlike or not may_use_environment(query.spec):
            return decision
        named = [(unit, unit.part.program) for unit in units if unit.part is not None]
        names = {name for _unit, name in named if name is not None and os.sep not in name}
        ruled = {name for unit, name in named if name in names and unit.rule is not None}
        environment = self._environments.check(
            lambda: self._pinned(ENVIRONMENT),
            names,
            {str(name) for name in ruled},
            is_asked=decision.action == "ask",
            carries=decision.grants | query.grants != NO_GRANTS,
        )
        decision = replace(decision, activated=environment.state)
        if environment.reason is None or environment.to_approve is None:
            return decision
        steps.append(Step("pins", ENVIRONMENT, f"ask: {environment.reason}"))
        kept = environment.to_approve.digest, environment.to_approve.definition
        both = "\n".join(text for text in (decision.definition_diff, environment.difference) if text) or None
        decision = replace(decision, environment=kept, definition_diff=both)
        if decision.action == "ask":
            return replace(decision, reason=f"{decision.reason}; {environment.reason}")
        if decision.action == "delegate":
            return replace(decision, otherwise="ask", reason=environment.reason)
        return replace(decision, action="ask", layer="pins", reason=environment.reason)


def _beyond_rights(reason: str) -> Decision:
    return Decision("reject", "rights", "no call may do more than its callers", BUILT_IN_SOURCE, "rule", reason)


def _isolation(units: Sequence[_Unit]) -> Isolation | None:
    """The strictest isolation that the rules of these units want."""
    wanted = {unit.rule.isolation for unit in units if unit.rule is not None}
    return "serial" if "serial" in wanted else "snapshot" if "snapshot" in wanted else None


def _granted(units: Sequence[_Unit]) -> Grants:
    granted = NO_GRANTS
    for unit in units:
        if unit.rule is not None and unit.action != "reject":
            granted = granted | unit.rule.grant
    return granted


def _with_hosts(decision: Decision, answers: Sequence[Rule], steps: list[Step]) -> Decision:
    """The decision with the grants of remembered answers about connections. A call that runs without approval does not
    get them, and neither does a trial run."""
    if decision.unasked or decision.action in ("reject", "try"):
        return decision
    for rule in answers:
        steps.append(Step("rules", rule.words, "adds its grant", rule.source))
        by = (*decision.granted_by, (rule.source, rule.grant))
        decision = replace(decision, grants=decision.grants | rule.grant, granted_by=by)
    return decision


def _stops(unit: _Unit) -> bool:
    return unit.action in ("ask", "reject")


def _weight(unit: _Unit) -> tuple[int, bool, bool]:
    """A sort key for units of a call: the unit with the highest key decides, and gives the reason. A stricter unit has
    a higher key. Of equally strict units, a dangerous one has a higher key, then one that a rule decided.
    """
    return _STRICTNESS[unit.action], unit.part is not None and bool(unit.part.dangers), unit.rule is not None


def _variables_part(variables: Mapping[str, Any]) -> Part:
    """A part that stands for the variables that are set for a command. No pattern for commands matches this part."""
    odd = sorted(str(name) for name in variables if name not in _HARMLESS_VARIABLES)
    shown = " ".join(f"{name}={value}" for name, value in variables.items())
    reason = f"`{odd[0]}` is set for this command" if odd else "these variables only change how output looks"
    possible = tuple(DANGERS) if any(map(EVALUATED_VARIABLES.fullmatch, odd)) else ()
    return Part("syntax", f"with {shown}", (), not odd, reason, literal=False, possible=possible)


def _unreadable(lines: Sequence[str], name: str, value: str) -> Analysis:
    """The analysis of lines that bash would read in another encoding than haft: none of them is understood."""
    reason = f"bash may read it differently: `{name}={_brief(value)}` is set, but haft analyses commands as UTF-8"
    return Analysis((not_understood_part("\n".join(lines), reason),), understood=False)


def _decided_part(unit: _Unit) -> DecidedPart:
    assert unit.part is not None
    rule = unit.rule
    return DecidedPart(
        unit.part.text,
        unit.action,
        unit.reason,
        None if rule is None else rule.words,
        None if rule is None else rule.source,
    )


def _name_dangers(named: Sequence[Danger]) -> str:
    return f"{' and '.join(DANGERS[danger] for danger in named)} ({', '.join(named)})"


def _why_rejected(rule: Rule, part: Part) -> str:
    """Why a rule that rejects dangers matches a part: the part's words show the danger, or they are known only when the
    part runs."""
    named = [danger for danger in part.dangers if danger in rule.dangers]
    if named:
        return f"it {_name_dangers(named)}"
    may = [danger for danger in DANGERS if danger in rejected_dangers(rule, part)]
    why = part.reason if "not-understood" in part.dangers else "some of its words are known only when it runs"
    return f"haft cannot tell whether it {_name_dangers(may)}: {why}"


def _digest(pin: Pin | None) -> str | None:
    return None if pin is None else pin.digest


def _step_title(rule: Rule, part: Part | None) -> str:
    return rule.words if part is None else f"{rule.words}: {part.text}"


def _analysis_rule(action: Action) -> str:
    if action == "allow":
        return "commands that only read need no approval"
    return "commands that may do more than read need approval"


def _reason(strictest: _Unit, units: list[_Unit]) -> str:
    if strictest.action == "allow":
        return "every part of it is allowed"
    assert strictest.part is not None
    more = sum(unit.action == strictest.action for unit in units) - 1
    others = f", and {more} more part{'s' if more > 1 else ''}" if more else ""
    return f"`{_brief(strictest.part.text)}`: {strictest.reason}{others}"


def _brief(text: str) -> str:
    """The text on one line, and shortened, so that a command quoted in a reason cannot imitate other output."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN_LENGTH else f"{line[:MAX_SHOWN_LENGTH]}…"
