"""The judge: enablement, rules, command analysis and pins, brought to one decision.

- Enablement only narrows.
- A call is judged in units: each part of a command line by itself, any other call as one. Of each origin of rules the
  first that fits counts. What anyone rejects is rejected; else remembered answers come first, then the embedding
  program's rules, the workspace's, the user's. Where no rule fits, a part that only reads passes, and so does a tool
  whose reading is vouched for; everything else asks.
- Where the written rules alone would allow a call, with all that a remembered answer grants and more, they decide it.
- In a line that rules let pass, a part that analysis alone lets pass may not start other programs.
- A dangerous part asks even where a rule allows it, unless that rule names the danger.
- A tool that nobody vouches for is bound to the definition that a person agreed to, or that ran first because a rule
  allowed it.
- The strictest unit decides: reject, then delegate, ask, try, allow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from haft.contracts import NO_GRANTS, Action, DecidedPart, Decision, Delegation, Grants, HaftError, foreign_locale
from haft.policy.allowable import allowable
from haft.policy.analysis.verdict import DANGERS, EVALUATED, Analysis, Danger, Ground, Part, unread
from haft.policy.approval.environments import ENVIRONMENT, Environments, finds_environment
from haft.policy.approval.pins import Pin, difference, pin_of
from haft.policy.baseline import SOURCE, decide
from haft.policy.enablement import Enablement
from haft.policy.file_words import file_words
from haft.policy.question import Explained, Question, Step
from haft.policy.rules.matching import Question as Asked
from haft.policy.rules.matching import endangered, first_match, raw_reject, rule_fits, speaks_of
from haft.policy.rules.rule import Context, Rule
from haft.values import dataclass, replace

LONGEST_TOLD: Final = 100
_STRICTNESS: Final[Mapping[Action, int]] = {"allow": 0, "try": 1, "ask": 2, "delegate": 3, "reject": 4}
_HARMLESS_VARIABLES: Final = frozenset(
    {"LANG", "LC_ALL", "LC_CTYPE", "TZ", "NO_COLOR", "COLUMNS", "TERM", "FORCE_COLOR"}
)


@dataclass(frozen=True, slots=True)
class _Unit:
    """What was decided about one unit of a call."""

    action: Action
    reason: str
    part: Part | None
    rule: Rule | None = None
    """None where analysis or haft's own rules decided."""
    least: Action = "allow"
    """What is decided even where a delegate allows it."""


class Judge:
    """Decides, and explains. `remembered` and `pinned` look up what people answered before."""

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
    ) -> None:
        self._rules = {
            origin: tuple(rule for rule in rules if rule.origin == origin) for origin in ("caller", "workspace", "user")
        }
        self._is_plain = not rules
        """Whether no rules were written: haft's own then decide most calls, and quickly."""
        self._enablement = enablement
        self._workspace = workspace
        self._home = home
        self._remembered = remembered
        self._pinned = pinned
        self._locate = locate
        self._environments = environments

    def decide(self, question: Question) -> Decision:
        """May it happen?"""
        spec = question.spec
        if self._is_plain and not spec.commands and spec.is_vouched_for:
            base = decide(spec, confined=question.confined)
            off = self._enablement.why_not(spec.name, spec.kind)
            if off is None and base.action == "allow" and not self._remembered():
                return base
        return self.explain(question).decision

    def explain(self, question: Question) -> Explained:
        """The decision, with every step that led to it."""
        steps: list[Step] = []
        spec = question.spec
        off = self._enablement.why_not(spec.name, spec.kind)
        if off is not None:
            steps.append(Step("enablement", spec.name, off))
            return Explained(Decision("reject", "enablement", off, "tools.disable", "rule", off), tuple(steps))
        steps.append(Step("enablement", spec.name, "enabled"))
        pin = pin_of(spec)
        analysis = self._analysis(question)
        call = self._as_rules_see_it(question, pin)
        units = self._units(question, call, analysis, self._remembered(), steps)
        if any(unit.rule is not None and unit.rule.origin == "remembered" for unit in units):
            untold: list[Step] = []
            alone = self._units(question, call, analysis, (), untold)
            if all(unit.action == "allow" for unit in alone) and _granted(alone).exceeds(_granted(units)):
                steps += [Step("rules", spec.name, "written rules allow it too, and grant more"), *untold]
                units = alone
        decision = self._combined(question, units, pin, is_command=analysis is not None)
        decision = self._held_to_pin(question, decision, units, pin, steps)
        return Explained(self._held_to_environment(question, decision, units, steps), tuple(steps))

    def parts(self, question: Question) -> tuple[Part, ...] | None:
        """The parts of its command lines, as they are judged; None where it has none."""
        analysis = self._analysis(question)
        return None if analysis is None else analysis.parts

    def fits(self, rule: Rule, question: Question, part: Part | None) -> bool:
        """Whether a rule speaks of a call, or of this part of it. It need not be one of the judge's own."""
        return rule_fits(rule, self._as_rules_see_it(question, None), part) is None

    # One unit.

    def _analysis(self, question: Question) -> Analysis | None:
        """Of the command lines among the arguments; None where there are none."""
        spec, arguments = question.spec, question.arguments
        lines = [arguments[name] for name in spec.commands if isinstance(arguments.get(name), str)]
        if not lines:
            return None
        from haft.policy.analysis import analyse

        cwd = arguments.get("cwd")
        ground = Ground(
            self._workspace, cwd if isinstance(cwd, str) else question.cwd, confined=question.confined, home=self._home
        )
        found = [analyse(line, ground) for line in lines]
        parts = [part for each in found for part in each.parts]
        env = arguments.get("env")
        variables = {**question.env, **(env if isinstance(env, Mapping) else {})}
        foreign = foreign_locale(variables)
        if foreign is not None:
            return _unreadable(lines, foreign, str(variables[foreign]))
        if variables:
            parts.append(_with(variables))
        return Analysis(tuple(parts), all(each.understood for each in found))

    def _units(
        self, question: Question, call: Asked, analysis: Analysis | None, answers: Sequence[Rule], steps: list[Step]
    ) -> list[_Unit]:
        """Every unit of a call, by the rules and by these remembered answers."""
        if analysis is None:
            return [self._unit(question, call, None, answers, steps)]
        units = [self._unit(question, call, part, answers, steps) for part in analysis.parts]
        units = self._beside_rules(units, steps)
        return units if analysis.understood else self._raw(call, units, steps)

    def _unit(
        self, question: Question, call: Asked, part: Part | None, answers: Sequence[Rule], steps: list[Step]
    ) -> _Unit:
        rule, least = self._ruling(call, part, answers, steps)
        if rule is not None:
            unit = self._by_rule(rule, part, steps)
            return replace(unit, least=max(unit.least, least, key=lambda each: _STRICTNESS[each]))
        if part is not None:
            action: Action = "allow" if part.safe else "ask"
            reason = part.reason if part.safe or not part.dangers else f"{part.reason}; it {_dangers(part.dangers)}"
            steps.append(Step("analysis", part.text, f"{action}: {reason}"))
            return _Unit(action, reason, part)
        base = decide(question.spec, confined=question.confined)
        steps.append(Step("built-in", base.rule, f"{base.action}: {base.reason}", base.source))
        return _Unit(base.action, base.reason, None)

    def _ruling(
        self, call: Asked, part: Part | None, answers: Sequence[Rule], steps: list[Step]
    ) -> tuple[Rule | None, Action]:
        """The rule that decides a unit, if one does; and what is decided at least, where it leaves it to a program."""
        first = {origin: self._first_of(rules, call, part, steps) for origin, rules in self._rules.items()}
        rejecting = next((rule for rule in first.values() if rule is not None and rule.action == "reject"), None)
        if rejecting is not None:
            return rejecting, "reject"
        chosen = self._first(answers, call, part, steps)
        chosen = chosen or next((rule for rule in first.values() if rule is not None), None)
        for origin in ("user", "caller", "workspace"):
            rule = first[origin]
            # It may reject what others allow or ask about; and what the user wants tried is not run untried.
            if rule is not None and chosen is not None and rule.action == "delegate":
                return rule, "allow" if chosen.action == "delegate" else chosen.action
        tried = first["user"]
        if chosen is not None and chosen.action == "ask" and tried is not None and tried.action == "try":
            return tried, "allow"
        return chosen, "allow"

    def _first_of(self, rules: Sequence[Rule], call: Asked, part: Part | None, steps: list[Step]) -> Rule | None:
        """The rule of one origin that counts. One that rejects a danger comes before all others but those that stand
        above it and name the danger."""
        chosen = self._first(rules, call, part, steps)
        if part is None or chosen is None or chosen.action == "reject":
            return chosen
        later = rules[rules.index(chosen) + 1 :]
        for rule in later:
            if rule.rejects_dangers and rule_fits(rule, call, part) is None:
                spared = endangered(rule, part) <= {*chosen.dangers}
                steps.append(Step("rules", _about(rule, part), "is spared" if spared else "fits", rule.source))
                if not spared:
                    return rule
        return chosen

    @staticmethod
    def _first(rules: Sequence[Rule], call: Asked, part: Part | None, steps: list[Step]) -> Rule | None:
        found = first_match(rules, call, part)
        for rule, why_not in found.passed:
            steps.append(Step("rules", _about(rule, part), f"does not fit: {why_not}", rule.source))
        if found.rule is not None:
            steps.append(Step("rules", _about(found.rule, part), "fits", found.rule.source))
        return found.rule

    def _as_rules_see_it(self, question: Question, pin: Pin | None) -> Asked:
        spec = question.spec
        paths = {
            name: self._located(value) for name in spec.paths if isinstance(value := question.arguments.get(name), str)
        }
        context: Context = "subagent" if question.subagent else "thread"
        return Asked(
            spec.name,
            spec.kind,
            question.arguments,
            context,
            spec.commands,
            paths,
            question.thread,
            _digest(pin),
            is_bare=question.cwd == "." and not question.env,
            aside=spec.meta.get("timeoutArgument"),
        )

    def _located(self, path: str) -> str | None:
        """Where a path really leads; None where nowhere it may."""
        try:
            return self._locate(path)
        except (HaftError, OSError, ValueError):
            return None

    def _may_be_rejected(self, part: Part) -> bool:
        """Whether a rule rejects something of the program that this part runs."""
        return any(
            rule.action == "reject" and speaks_of(rule, part.program)
            for rules in self._rules.values()
            for rule in rules
        )

    def _by_rule(self, rule: Rule, part: Part | None, steps: list[Step]) -> _Unit:
        unnamed = [danger for danger in part.dangers if danger not in rule.dangers] if part is not None else []
        if part is not None and unnamed and rule.action == "delegate":
            return _Unit("delegate", f"it {_dangers(unnamed)}", part, rule, "ask")
        if part is not None and unnamed and rule.action == "allow":
            reason = f"it {_dangers(unnamed)}: that asks even where a rule allows, unless it names this"
            steps.append(Step("rules", part.text, f"ask: {reason}", rule.source))
            return _Unit("ask", reason, part, rule)
        if part is not None and rule.action in ("allow", "try") and not part.literal and self._may_be_rejected(part):
            reason = f"what `{_brief(part.text)}` will be is not known, and a rule rejects some of what it may be"
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
    def _beside_rules(units: list[_Unit], steps: list[Step]) -> list[_Unit]:
        """A line that rules let pass runs as approved: it sees all of the host. A part that analysis alone lets pass
        names nothing there, but its program may start others, which then see more than in a call of their own. Where a
        rule allows that program in the same line, it may start them anyway."""
        if not any(unit.rule is not None for unit in units) or any(_asks(unit) for unit in units):
            return units
        approved = {unit.part.program for unit in units if unit.rule is not None and unit.part is not None}
        found = []
        for unit in units:
            part = unit.part
            if unit.rule is None and part is not None and part.starts_others and part.program not in approved:
                reason = f"`{_brief(part.text)}` may start other programs, which would see all of the machine here"
                steps.append(Step("analysis", part.text, f"ask: {reason}"))
                unit = _Unit("ask", f"{reason}; alone it passes", part)
            found.append(unit)
        return found

    def _raw(self, call: Asked, units: list[_Unit], steps: list[Step]) -> list[_Unit]:
        """What could not be parsed: rules that reject are held against the text as it stands."""
        text = "\n".join(value for name in call.commands if isinstance(value := call.arguments.get(name), str))
        every = [rule for rules in self._rules.values() for rule in rules]
        rule = raw_reject(every, call, text)
        if rule is None or any(unit.action == "reject" for unit in units):
            return units
        steps.append(Step("rules", rule.words, "fits the text, which was not understood", rule.source))
        return [_Unit("reject", rule.message or f"the rule says {rule.words}", units[0].part, rule)]

    # All of them.

    def _combined(self, question: Question, units: list[_Unit], pin: Pin | None, *, is_command: bool) -> Decision:
        strictest = max(units, key=_weight)
        rule = strictest.rule
        parts = tuple(_shown(unit) for unit in units if unit.part is not None)
        if rule is None and not is_command:
            return replace(decide(question.spec, confined=question.confined), pin=_digest(pin))
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
            rule=rule.words if rule is not None else _rule_of(action),
            source=rule.source if rule is not None else SOURCE,
            by="rule",
            reason=strictest.reason if len(units) == 1 else _reason(strictest, units),
            parts=parts,
            profile="read-only" if reads_only or self._only_reads(question) else "workspace",
            neutral=reads_only,
            unasked=reads_only,
            grants=_granted(units) if action != "reject" else NO_GRANTS,
            message=rule.message if rule is not None else None,
            delegates=delegates,
            otherwise=max(rest, key=lambda each: _STRICTNESS[each], default="allow"),
            pin=_digest(pin),
        )

    @staticmethod
    def _only_reads(question: Question) -> bool:
        return question.spec.effects.readonly

    def _held_to_pin(
        self, question: Question, decision: Decision, units: list[_Unit], pin: Pin | None, steps: list[Step]
    ) -> Decision:
        """What nobody vouches for asks until a person has agreed to it as it is. What is asked can be remembered."""
        spec = question.spec
        if pin is not None and not spec.is_vouched_for and decision.action != "reject":
            decision = self._agreed_to(question, decision, pin, steps)
        if decision.action not in ("ask", "try", "delegate"):
            return decision
        if pin is not None and spec.provenance != "embedded":
            decision = replace(decision, definition=pin.definition)
        asked = [unit.part for unit in units if unit.part is not None and not unit.part.safe]
        offered = allowable(question, asked if any(unit.part is not None for unit in units) else None)
        return replace(decision, to_allow=offered)

    def _agreed_to(self, question: Question, decision: Decision, pin: Pin, steps: list[Step]) -> Decision:
        """A tool that is not what was agreed to asks; a program that rules leave it to is asked all the same."""
        spec = question.spec
        agreed = self._pinned(spec.name)
        shown = None
        if agreed is not None and agreed.digest != pin.digest:
            reason = "it is not what was agreed to before: its definition or its files have changed"
            shown = difference(agreed, pin)
        elif agreed is None and spec.provenance == "workspace" and decision.action != "ask":
            reason = f"it comes from the workspace, and is used for the first time{file_words(spec, self._workspace)}"
        else:
            return decision
        steps.append(Step("pins", spec.name, f"ask: {reason}"))
        if decision.action == "delegate":
            return replace(decision, otherwise="ask", reason=reason, definition_diff=shown)
        return replace(decision, action="ask", layer="pins", reason=reason, definition_diff=shown)

    def _held_to_environment(
        self, question: Question, decision: Decision, units: list[_Unit], steps: list[Step]
    ) -> Decision:
        """What a line finds in the workspace, since a person has activated an environment there, is held to what was
        agreed to. Calls that nobody approves find nothing there, nor do those that a rule allows and that carry
        grants."""
        unlike = decision.unasked or decision.action == "reject" or question.spec.hosting != "per-call"
        if self._environments is None or unlike or not finds_environment(question.spec):
            return decision
        named = [(unit, unit.part.program) for unit in units if unit.part is not None]
        names = {name for _unit, name in named if name is not None and os.sep not in name}
        ruled = {name for unit, name in named if name in names and unit.rule is not None}
        held = self._environments.held(
            lambda: self._pinned(ENVIRONMENT),
            names,
            {str(name) for name in ruled},
            is_asked=decision.action == "ask",
            carries=decision.grants | question.grants != NO_GRANTS,
        )
        decision = replace(decision, activated=held.state)
        if held.reason is None or held.to_agree is None:
            return decision
        steps.append(Step("pins", ENVIRONMENT, f"ask: {held.reason}"))
        kept = held.to_agree.digest, held.to_agree.definition
        both = "\n".join(text for text in (decision.definition_diff, held.difference) if text) or None
        decision = replace(decision, environment=kept, definition_diff=both)
        if decision.action == "ask":
            return replace(decision, reason=f"{decision.reason}; {held.reason}")
        if decision.action == "delegate":
            return replace(decision, otherwise="ask", reason=held.reason)
        return replace(decision, action="ask", layer="pins", reason=held.reason)


def _granted(units: Sequence[_Unit]) -> Grants:
    granted = NO_GRANTS
    for unit in units:
        if unit.rule is not None and unit.action != "reject":
            granted = granted | unit.rule.grant
    return granted


def _asks(unit: _Unit) -> bool:
    return unit.action in ("ask", "reject")


def _weight(unit: _Unit) -> tuple[int, bool, bool]:
    """Which unit decides, and is told of: the strictest, then the most dangerous, then one that a rule speaks of."""
    return _STRICTNESS[unit.action], unit.part is not None and bool(unit.part.dangers), unit.rule is not None


def _with(variables: Mapping[str, Any]) -> Part:
    """The variables that are set for a command, as a part: no pattern for commands matches it."""
    odd = sorted(str(name) for name in variables if name not in _HARMLESS_VARIABLES)
    shown = " ".join(f"{name}={value}" for name, value in variables.items())
    reason = f"`{odd[0]}` is set for it" if odd else "these variables change nothing but how output looks"
    possible = tuple(DANGERS) if any(map(EVALUATED.fullmatch, odd)) else ()
    return Part("syntax", f"with {shown}", (), not odd, reason, literal=False, possible=possible)


def _unreadable(lines: Sequence[str], name: str, value: str) -> Analysis:
    """Lines that bash would read in another encoding than analysis does."""
    reason = f"bash may read it otherwise: `{name}={_brief(value)}` is set, and lines are analysed as UTF-8"
    return Analysis((unread("\n".join(lines), reason),), understood=False)


def _shown(unit: _Unit) -> DecidedPart:
    assert unit.part is not None
    rule = unit.rule
    return DecidedPart(
        unit.part.text,
        unit.action,
        unit.reason,
        None if rule is None else rule.words,
        None if rule is None else rule.source,
    )


def _dangers(named: Sequence[Danger]) -> str:
    return f"{' and '.join(DANGERS[danger] for danger in named)} ({', '.join(named)})"


def _why_rejected(rule: Rule, part: Part) -> str:
    """Why a part falls to a rule that rejects dangers: by its words, or since nobody can tell what they will be."""
    named = [danger for danger in part.dangers if danger in rule.dangers]
    if named:
        return f"it {_dangers(named)}"
    may = [danger for danger in DANGERS if danger in endangered(rule, part)]
    why = part.reason if "not-understood" in part.dangers else "not all of what it runs is known before it runs"
    return f"nobody can tell whether it {_dangers(may)}: {why}"


def _digest(pin: Pin | None) -> str | None:
    return None if pin is None else pin.digest


def _about(rule: Rule, part: Part | None) -> str:
    return rule.words if part is None else f"{rule.words}: {part.text}"


def _rule_of(action: Action) -> str:
    return "commands that only read pass" if action == "allow" else "commands that do not only read ask"


def _reason(strictest: _Unit, units: list[_Unit]) -> str:
    if strictest.action == "allow":
        return "every part of it passes"
    assert strictest.part is not None
    more = sum(unit.action == strictest.action for unit in units) - 1
    others = f", and {more} more part{'s' if more > 1 else ''}" if more else ""
    return f"`{_brief(strictest.part.text)}`: {strictest.reason}{others}"


def _brief(text: str) -> str:
    """On one line, and not too long: a reason must not look like anything else."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TOLD else f"{line[:LONGEST_TOLD]}…"
