"""A stage that changes a call: it lets the tool make what its calls need, mostly a Python environment, before the
deadline and the transaction start. It also fills in the secrets of the person who makes the call, now that the call is
approved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from haft.contracts import Outcome, Principal, Secrets, secret_names, with_secrets
from haft.pipeline.chain import Proceed
from haft.pipeline.context import CallContext
from haft.pipeline.run import Run

SecretsOf = Callable[[Sequence[str], Principal], Awaitable[Mapping[str, str]]]
"""The values of secrets, by their names, for the person behind a principal."""


class Prepare:
    """Runs the tool's `prepare`, for tools whose spec has `prepares`, and fills in the settings in `secret_config`, for
    tools that have such settings."""

    def __init__(self, context: Callable[[Run], CallContext], secrets_of: SecretsOf) -> None:
        self._context = context
        self._secrets_of = secrets_of

    @staticmethod
    def skips(run: Run) -> bool:
        return not run.tool.spec.prepares and not getattr(run.tool, "secret_config", None)

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        tool: Any = run.tool
        if tool.spec.prepares:
            await tool.prepare(self._context(run).progress)
        config = getattr(tool, "secret_config", None)
        if config:
            call = run.call
            found = await self._secrets_of(secret_names(config), call.principal)
            filled = {name: with_secrets(value, found) for name, value in config.items()}
            run.revise(config={**filled, **call.config}, secrets=call.secrets | Secrets(found.values()))
        return await proceed(run)
