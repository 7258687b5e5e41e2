"""`haft run --times N`: the same program several times side by side, each in a layer of its own; then the person
chooses."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from haft.contracts import Outcome, Stream
from haft.surfaces.cli.commands.run.review import can_review, show, tell_decided
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.person.line_input import not_understood, read_line
from haft.surfaces.cli.place import change_sets
from haft.surfaces.cli.screen.printing import complain, say, table
from haft.surfaces.cli.screen.waiting import tell_waiting
from haft.surfaces.text.terminal import one_line
from haft.values import replace

if TYPE_CHECKING:
    from haft.service import CarriedBack, ProgramPlan, Run, ToolService
    from haft.surfaces.cli.person.interrupts import Interrupts

MOST_NAMED: Final = 5
"""How many paths in conflict are named at most."""
LONGEST_LINE: Final = 1 << 16
"""A longer line is printed in parts, so that it does not fill the memory."""


async def run_times(
    service: ToolService,
    plan: ProgramPlan,
    times: int,
    options: Globals,
    interrupts: Interrupts,
    carried: list[CarriedBack],
) -> list[Outcome]:
    """Run the program `times` times side by side, and let the person choose."""
    with interrupts:
        runs, lines = [], []
        for number in range(1, times + 1):
            lines.append(_Lines(number))
            program = replace(plan.program, on_output=lines[-1].take, on_carried=carried.append)
            runs.append(service.programs.start(replace(plan, program=program)))

        def cancel() -> bool:
            cancelled = [run.cancel() for run in runs]  # All of them, not only up to the first that has ended.
            return any(cancelled)

        interrupts.cancels(cancel)
        if not options.quiet:
            for number, run in enumerate(runs, 1):
                say(f"  [{number}] {run.id}")
        outcomes = await asyncio.gather(*(_followed(run, options) for run in runs))
    for each in lines:
        each.end()
    await let_choose(service, outcomes, options)
    return outcomes


async def let_choose(service: ToolService, outcomes: Sequence[Outcome], options: Globals) -> None:
    """Show the runs side by side, and let the person apply one of them, if somebody can be asked."""
    if not options.json:
        table(_rows(outcomes))
        if can_review():
            await _choose(service, outcomes, options)
        elif not options.quiet and any(each.changes.state == "held" for each in outcomes):
            say("held: `haft diff RUN`, `haft changes apply RUN [PATH…]`, `haft changes drop RUN`")


async def _followed(run: Run, options: Globals) -> Outcome:
    async for event in run:
        if not options.quiet:
            tell_waiting(event)
    return await run


class _Lines:
    """Prints the output of one of several programs on stderr, line by line, each with the number of the program."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._rest: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}

    def take(self, stream: Stream, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        if whole:
            whole[0] = self._rest[stream] + whole[0]
            self._rest[stream] = b""
        self._rest[stream] += rest
        if len(self._rest[stream]) > LONGEST_LINE:
            whole.append(self._rest[stream])
            self._rest[stream] = b""
        self._print(whole)

    def end(self) -> None:
        """Print what came after the last newline."""
        self._print([rest for rest in self._rest.values() if rest])

    def _print(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            sys.stderr.write(f"[{self._number}] {one_line(line.decode('utf-8', 'replace'))}\n")
        sys.stderr.flush()


def _rows(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """A line for each run: how it ended, how long it took, and how much it changed."""
    rows: list[tuple[str, ...]] = []
    with change_sets() as changes:
        for number, outcome in enumerate(outcomes, 1):
            plus = minus = 0
            if changes is not None and changes.ledger.get(outcome.run_id) is not None:
                for each in changes.differences(changes.find(outcome.run_id)):
                    plus, minus = plus + each.added, minus + each.removed
            count = len(outcome.changes.files)
            how = outcome.status if outcome.exit_code in (0, None) else f"exit {outcome.exit_code}"
            seconds = f"{outcome.duration:.1f} s"
            paths = "1 path" if count == 1 else f"{count} paths"
            changed = f"{paths} {outcome.changes.state}"
            rows.append((f"[{number}]", outcome.run_id, how, seconds, changed, f"+{plus} -{minus}"))
    return rows


async def _choose(service: ToolService, outcomes: Sequence[Outcome], options: Globals) -> None:
    """Let the person apply one of the runs, look at each, and drop the others."""
    held = {str(number): each.run_id for number, each in enumerate(outcomes, 1) if each.changes.state == "held"}
    numbered = {str(each.run_id): number for number, each in enumerate(outcomes, 1)}
    applied: set[str] = set()
    while held:
        numbers = ", ".join(held)
        others = "show a diff (d NUMBER), drop all of these (x), or keep them held (Enter)"
        line = await read_line(f"apply one ({numbers}), {others}? ")
        words = line.strip().lower().split()
        for number in [number for number, run in held.items() if tell_decided(run)]:
            del held[number]
        if not words:
            break
        if words[0] in held and len(words) == 1:
            run = held[words[0]]
            outcome = await service.changes.apply(run)
            if outcome.error is None:
                say(f"{run}: its changes are in the workspace; `haft undo {run}`")
                applied.add(held.pop(words[0]))
            else:
                others_applied = {name: number for name, number in numbered.items() if name in applied}
                _tell_not_applied(outcome, words[0], others_applied)
        elif words[0] == "d" and words[-1] in held:
            show(held[words[-1]], options, is_stat=False)
        elif words == ["x"]:
            for number in [number for number, run in held.items() if await _is_dropped(service, run)]:
                say(f"{held.pop(number)}: its changes were dropped")
        elif held:
            say(not_understood(line.strip(), f"{numbers}, d and a number, x or Enter"))
    for run in held.values():
        say(f"held: `haft changes apply {run}` or `haft changes drop {run}`")


def _tell_not_applied(outcome: Outcome, number: str, applied: Mapping[str, int]) -> None:
    """Say why an attempt could not be applied. `applied` has the numbers of the attempts that the person applied
    before, which often changed the same files."""
    assert outcome.error is not None
    paths: dict[int, list[str]] = {}
    for conflict in outcome.changes.conflicts:
        if conflict.by in applied:
            paths.setdefault(applied[conflict.by], []).append(conflict.path)
    for other, changed in sorted(paths.items()):
        names = ", ".join(f"`{one_line(path)}`" for path in changed[:MOST_NAMED])
        more = f" and {len(changed) - MOST_NAMED} more" if len(changed) > MOST_NAMED else ""
        complain(f"attempt {other}, which you applied, also changed {names}{more}")
    if not paths:
        complain(outcome.error.message, outcome.error.hint)
    else:
        say(f"`d {number}` shows what attempt {number} would change now; `{number}` again overwrites these files")


async def _is_dropped(service: ToolService, run: str) -> bool:
    outcome = await service.changes.drop(run)
    if outcome.error is not None:
        complain(outcome.error.message, outcome.error.hint)
    return outcome.error is None
