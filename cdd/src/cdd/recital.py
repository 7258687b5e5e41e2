"""The output of `cdd recite`: the next part of the plan, and what to do with it.

The reader may be an agent that has forgotten everything else, so the output ends with the next commands.
"""

from __future__ import annotations

import os

from cdd.names import as_word
from cdd.plan import Section
from cdd.tracks import Track


def recital(track: Track) -> str:
    """The first section with an open task, with the headings above it; or what to do if no task is open."""
    plan = track.plan()
    section = plan.next_section
    if section:
        return "\n".join([*section.above, section.text, "", _go_on(track.name, section)])
    if plan.tasks:
        return (
            "Every task of the plan is done.\n\n"
            f"Check the result against spec.md, then archive the track: cdd archive {as_word(track.name)}"
        )
    where = os.path.join(os.path.relpath(track.path), "plan.md")
    return f"The plan has no tasks.\n\nWrite them into {where}, each on a line like `- [ ] what to do`."


def _go_on(name: str, section: Section) -> str:
    task = section.open_tasks[0]
    task_text = f" ({task.text})" if task.text else ""
    word = as_word(name)
    return (
        f"Go on with track '{name}': do the first open task, line {task.line} of plan.md{task_text}. When it is done "
        f'and checked, change its mark to [x], log what you decided with `cdd log {word} "…"`, and call '
        f"`cdd recite {word}` again."
    )
