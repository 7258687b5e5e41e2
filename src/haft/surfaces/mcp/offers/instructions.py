"""What a server tells the model about itself: how approval, waiting and undo work."""

from __future__ import annotations

from collections.abc import Iterator


def instructions(*, lazy: bool, read_only: bool) -> str:
    """The instructions of a server with these options."""
    return "\n".join(_lines(lazy=lazy, read_only=read_only))


def _lines(*, lazy: bool, read_only: bool) -> Iterator[str]:
    yield "haft runs these tools for a person: under the person's rules, in a sandbox, with an audit log of every call."
    if lazy:
        yield "- Tools: find a tool with `search_tools`, and call it with `call_tool`."
    if read_only:
        yield "- Only tools that change nothing are offered here."
    yield (
        "- Approval: some calls need a person's approval. A call may then return early and say that it waits for "
        "approval. This is no error: call `wait` with its run to go on waiting. The same call, made again, joins the "
        "waiting run. If a person or a rule rejects a call, do not look for another way to do the same: ask the user."
    )
    if not read_only:
        yield (
            "- Undo: a result names its run and the files that it changed. `undo` takes back exactly that run, even if "
            "other runs changed other things since; `redo` brings its changes back; `diff` shows them."
        )
    yield (
        "- Output: of a long output, a result shows the beginning and the end. `output` with the run pages through all "
        "of it."
    )
    yield "- Runs: `runs` lists your runs, `wait` waits for one that takes long, and `cancel` stops one."
    if lazy:
        yield "  `call_tool` calls these, too."
