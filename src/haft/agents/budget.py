"""What a sub-agent may spend: cycles, tokens, calls, time and money.

A sub-agent also spends the budget of the sub-agent that started it, so that no tree of sub-agents spends more than its
root may. A part of each budget is a reserve: it is spent only on the report at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from haft.agents.agent_type import BUDGET_KEYS
from haft.values import dataclass, field

REPORT_TOKENS: Final = 1_000
"""How many tokens are set aside for the report. They are also the most that the report may have."""
REPORT_SECONDS: Final = 30.0
SPENT_UP: Final = "budget spent"


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The limits of one sub-agent."""

    cycles: int = 10
    """How many answers of the model: a cycle is one answer and the calls in it."""
    tokens: int = 200_000
    calls: int = 100
    seconds: float = 900.0
    """How long it may take. The time in which a person is asked does not count."""
    depth: int = 2
    """How deep sub-agents nest: 1 means that a sub-agent starts no others."""
    children: int = 5
    """How many sub-agents it may have at work at the same time."""
    cost: float = 0.0
    """In US dollars; 0: no limit."""

    @classmethod
    def of(cls, *tables: Mapping[str, float]) -> BudgetLimits:
        """The limits in these tables. A later table wins."""
        merged: dict[str, Any] = {}
        for table in tables:
            merged |= {name: table[name] for name in BUDGET_KEYS if name in table}
        return cls(**merged)


@dataclass(slots=True)
class Spent:
    """What a sub-agent has spent so far."""

    cycles: int = 0
    tokens: int = 0
    calls: int = 0
    seconds: float = 0.0
    """Before the clock of the current run started."""
    cost: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("cycles", "tokens", "calls", "seconds", "cost")}


@dataclass(slots=True)
class Budget:
    """The budget of one sub-agent at work."""

    limits: BudgetLimits
    clock: Callable[[], float]
    """How many seconds the run has been at work, without the time in which a person was asked."""
    above: Budget | None = None
    """The budget of the sub-agent that started this one."""
    spent: Spent = field(default_factory=Spent)

    @property
    def seconds(self) -> float:
        """How many seconds the sub-agent has been at work."""
        return self.spent.seconds + self.clock()

    @property
    def seconds_left(self) -> float:
        """Without the reserve for the report."""
        left = self.limits.seconds - REPORT_SECONDS - self.seconds
        return left if self.above is None else min(left, self.above.seconds_left)

    @property
    def tokens_left(self) -> int:
        """Without the reserve for the report."""
        left = self.limits.tokens - REPORT_TOKENS - self.spent.tokens
        return left if self.above is None else min(left, self.above.tokens_left)

    @property
    def cost_left(self) -> float | None:
        """None if nothing limits the cost."""
        own = self.limits.cost - self.spent.cost if self.limits.cost else None
        above = None if self.above is None else self.above.cost_left
        return min((left for left in (own, above) if left is not None), default=None)

    @property
    def depth_left(self) -> int:
        """How many levels of sub-agents may be below this one."""
        own = self.limits.depth - 1
        return own if self.above is None else min(own, self.above.depth_left - 1)

    def what_is_spent(self, next_request: int = 0) -> str | None:
        """Which limit is reached, in words, so that no cycle can begin; None if none is. `next_request` is how many
        tokens the next request will need at least."""
        if self.spent.cycles >= self.limits.cycles:
            return f"its {_are_spent(self.limits.cycles, 'cycle')}"
        if self.tokens_left <= next_request:
            own = f"its {_are_spent(self.limits.tokens, 'token')}"
            return own if self._own_tokens_bind() else "the tokens of its caller are spent"
        if self.seconds_left <= 0:
            return self.time_is_over
        if (left := self.cost_left) is not None and left <= 0:
            return "its money is spent"
        return None

    @property
    def time_is_over(self) -> str:
        """What is said when the time is over."""
        return f"its {self.limits.seconds:g} seconds are spent"

    def _own_tokens_bind(self) -> bool:
        return self.above is None or self.limits.tokens - REPORT_TOKENS - self.spent.tokens <= self.above.tokens_left

    def take_call(self) -> bool:
        """Take one tool call out of the budget. Returns False if none is left."""
        if not self._has_call():
            return False
        budget: Budget | None = self
        while budget is not None:
            budget.spent.calls += 1
            budget = budget.above
        return True

    def _has_call(self) -> bool:
        return self.spent.calls < self.limits.calls and (self.above is None or self.above._has_call())

    def spend(self, tokens: int, cost: float) -> None:
        """Spend tokens and money, also of the sub-agents above."""
        self.spent.tokens += tokens
        self.spent.cost += cost
        if self.above is not None:
            self.above.spend(tokens, cost)


def _are_spent(number: float, what: str) -> str:
    return f"{number:,} {what} is spent" if number == 1 else f"{number:,} {what}s are spent"
