"""A workspace and a scripted model, for tests of tasks."""

from haft import ToolService

KINDS = ("openai-chat", "openai-responses", "anthropic")


class World:
    """A workspace, a state home and a model."""

    def __init__(self, base, model):
        self.model = model
        self.workspace = base / "workspace"
        self.home = base / "home"
        self.workspace.mkdir()

    def settings(self, kind="openai-chat", **more):
        address = self.model.url if kind == "anthropic" else self.model.openai_url
        values = {"enabled": True, "model": f"{kind}:scripted", "base_url": address, **more}
        return {f"subagents.{name}": value for name, value in values.items() if value is not None}

    def open(
        self, kind="openai-chat", *, approver=lambda _request: True, more=None, thread="T-1", tools=(), **settings
    ):
        return ToolService.open(
            self.workspace,
            home=self.home,
            approver=approver,
            thread=thread,
            tools=tools,
            settings={**self.settings(kind, **settings), **(more or {})},
        )

    def write(self, path, text):
        place = self.workspace / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def read(self, path):
        return (self.workspace / path).read_text()


async def told(run):
    """The outcome of a task, and what it told meanwhile."""
    events = [event async for event in run]
    return await run, [event.facts["task"] for event in events if event.type == "progress" and "task" in event.facts]
