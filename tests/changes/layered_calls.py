"""A tool in this process whose work is only calls, as that of a sub-agent is: the arguments say which."""

from haft.contracts import Answer, Effects, ToolName, ToolSpec


class Caller:
    """Makes the calls of its argument `calls` one after another, and each list among them as one batch. A call is
    `[tool, arguments]` or `[tool, arguments, options]`. With `layer`, it wants a layer although nobody asks for a trial
    run."""

    def __init__(self, name="caller"):
        self.spec = ToolSpec(
            ToolName(name), "builtin", "Make calls.", {"type": "object"}, effects=Effects(), provenance="builtin",
            trial_in_layer=True,
        )  # fmt: skip
        self.service = None
        self.doors = {}
        """By name: the event for which the call `["wait", {"for": name}]` waits, after the event that says so."""

    async def preprocess(self, arguments, _context):
        return arguments

    def wants_trial(self, arguments):
        return bool(arguments.get("layer"))

    async def invoke(self, arguments, context):
        said = []
        for each in arguments["calls"]:
            if each[0] == "wait":
                begun, opened = self.doors[each[1]["for"]]
                begun.set()
                await opened.wait()
            elif each[0] == "look":
                with context.workspace.open(each[1]["path"]) as file:
                    said.append(file.read().decode())
            elif isinstance(each[0], list):
                batch = self.service.batch([tuple(one) for one in each], parent=context.run)
                said += [self._said(outcome) for outcome in await batch]
            else:
                options = each[2] if len(each) > 2 else {}
                run = self.service.call(each[0], each[1], parent=context.run, **options)
                said.append(self._said(await run))
        return Answer(text="\n".join(said), result=said)

    @staticmethod
    def _said(outcome):
        return outcome.output if outcome.error is None else f"{outcome.error.code}: {outcome.error.message}"


def shell(command):
    return ["shell", {"command": command}]


def write(path, content):
    return ["write_file", {"path": path, "content": content}]


def edit(path, old, new):
    return ["edit_file", {"path": path, "old_string": old, "new_string": new}]


def read(path):
    return ["read_file", {"path": path}]
