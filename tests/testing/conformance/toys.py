"""A small tool source that keeps all promises, and sources that each break one."""

import json
import os
import subprocess

from haft.contracts import Answer, BadUsage, Command, DiscoveredTool, ToolFailed, ToolSpec
from haft.sources import ToolSource
from haft.sources.checks import Code, Finding, Report
from haft.sources.identity import identity_at
from haft.testing.conformance import SourceCase

RUDE = Code("toy-rude", "warning", "It is rude.", "Nobody likes to play with it.", "Go!", "Hi")
SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "description": "Whom to greet."},
        "mood": {"type": "string", "enum": ["sad", "slow"], "description": "Another mood than good."},
    },
}


class Toy:
    """Says its word."""

    def __init__(self, spec, says):
        self.spec = spec
        self.says = says

    async def preprocess(self, arguments, context):
        return arguments

    async def invoke(self, arguments, context):
        if arguments.get("mood") == "sad":
            raise ToolFailed("the toy is sad", hint="hug it")
        words = ["sleep", "600"] if arguments.get("mood") == "slow" else ["echo", self.says, arguments.get("to", "you")]
        return Answer(exit_code=(await context.launcher.run(Command(words), context)).code)


class Toys(ToolSource):
    """`NAME.toy` in the folder `toys` of a workspace: JSON with what it says."""

    name = "toy"
    codes = (RUDE,)

    def __init__(self, host):
        self.folder = os.path.join(host.workspace, "toys")
        self.seen = {}

    def find(self):
        names = sorted(os.listdir(self.folder)) if os.path.isdir(self.folder) else []
        paths = [os.path.join(self.folder, name) for name in names if name.endswith(".toy")]
        self.seen = {path: identity_at(path) for path in paths}
        return [self.read(path) for path in paths]

    def read(self, path):
        try:
            with open(path) as file:
                says, reason = json.load(file)["says"], None
        except (ValueError, KeyError) as error:
            says, reason = "nothing", f"it says nothing: {error!r}"
        spec = self.spec(path, says)
        return DiscoveredTool(spec, None, "broken", reason) if reason else DiscoveredTool(spec, self.toy(spec, says))

    def toy(self, spec, says):
        return Toy(spec, says)

    def spec(self, path, says, **changed):
        facts = {
            "name": os.path.basename(path).removesuffix(".toy"),
            "kind": "cli",
            "description": f"Says {says}.",
            "input_schema": SCHEMA,
            "origin": path,
            "provenance": "workspace",
            "hosting": "per-call",
            "files": (path,),
        }
        return ToolSpec(**{**facts, **changed})

    def places(self):
        return [self.folder]

    def is_current(self, spec):
        return self.seen.get(spec.origin) == identity_at(spec.origin)

    def recognizes(self, path):
        return path.endswith(".toy")

    async def load(self, path, launcher, grants):
        found = self.read(path)
        if found.tool is None:
            raise BadUsage(f"{path} is no toy: {found.reason}")
        return found

    async def check(self, target, launcher, reserved):
        found = self.read(target.path)
        findings = [Finding("describe-form", found.reason)] if found.tool is None else []
        return [Report(target.path, "toy", found.spec.name, findings)]


# One promise is broken by each.


class StartsAProcess(Toys):
    def find(self):
        subprocess.run(["true"], check=True)
        return super().find()

    async def refresh(self, launcher, progress, *, retry_name=None):
        return super().find()


class ListsTwice(Toys):
    async def refresh(self, launcher, progress, *, retry_name=None):
        return [*self.find(), *self.find()]


class HasNoDescription(Toys):
    def spec(self, path, says, **changed):
        return super().spec(path, says, description="", digest=says)


class HasNoSchemaOfAnObject(Toys):
    def spec(self, path, says, **changed):
        return super().spec(path, says, input_schema={"properties": SCHEMA["properties"]})


class Forgets(Toys):
    """`find` lists only what it read itself."""

    def find(self):
        return [] if self.seen else super().find()

    async def refresh(self, launcher, progress, *, retry_name=None):
        self.seen = {}
        return super().find()


class IsNeverTheSame(Toys):
    def __init__(self, host):
        super().__init__(host)
        self.count = 0

    def spec(self, path, says, **changed):
        return super().spec(path, says, meta={"count": self.count})

    async def refresh(self, launcher, progress, *, retry_name=None):
        self.count += 1
        return self.find()


class Writes(Toys):
    def find(self):
        found = super().find()
        with open(os.path.join(self.folder, "index.json"), "a") as file:
            file.write("x")
        return found


class NamesRelativePlaces(Toys):
    def __init__(self, host):
        super().__init__(host)
        self.is_new = True

    def places(self):
        return [self.folder, "toys"]


class RecognizesAnything(Toys):
    def recognizes(self, path):
        return True


class RecognizesByReading(Toys):
    def recognizes(self, path):
        with open(path) as file:
            return file.read(1) == "{"


class LoadsAnother(Toys):
    async def load(self, path, launcher, grants):
        found = await super().load(path, launcher, grants)
        spec = self.spec(path, "whatever")
        return DiscoveredTool(spec, found.tool)


class ChecksTooMuch(Toys):
    async def check(self, target, launcher, reserved):
        return [Report(target.path, "toy", None, [Finding("describe-form", "it is a toy")])]


class HasUnexplainedFindings(Toys):
    async def check(self, target, launcher, reserved):
        return [Report(target.path, "toy", None, [Finding("toy-ugly", "it is ugly", explained=None)])]


class ClosesOnce(Toys):
    def __init__(self, host):
        super().__init__(host)
        self.lines = ["open"]

    async def close(self):
        self.lines.pop()


class IsAlwaysCurrent(Toys):
    def is_current(self, spec):
        return True


class NamesNoPlaces(Toys):
    def places(self):
        return []


class HidesTheBroken(Toys):
    def find(self):
        return [each for each in super().find() if each.tool is not None]


class RaisesForTheBroken(Toys):
    def find(self):
        found = super().find()
        if any(each.tool is None for each in found):
            raise ValueError("a toy is broken")
        return found


class KeepsTheRemoved(Toys):
    def __init__(self, host):
        super().__init__(host)
        self.known = {}

    def find(self):
        self.known.update({each.spec.name: each for each in super().find()})
        return list(self.known.values())


class SaysNothing(Toys):
    def toy(self, spec, says):
        return Toy(spec, "something else")


class AcceptsAnything(Toys):
    def spec(self, path, says, **changed):
        return super().spec(path, says, input_schema={"type": "object", "properties": {}})


class HidesFailures(Toys):
    def toy(self, spec, says):
        class Cheerful(Toy):
            async def invoke(self, arguments, context):
                return (
                    await super().invoke({"to": arguments.get("to", "you")}, context)
                    if (arguments.get("mood") == "sad")
                    else await super().invoke(arguments, context)
                )

        return Cheerful(spec, says)


class StaysBusyWhenCancelled(Toys):
    def toy(self, spec, says):
        class Busy(Toy):
            is_busy = False

            async def invoke(self, arguments, context):
                if self.is_busy:
                    raise ToolFailed("another call is at work")
                self.is_busy = arguments.get("mood") == "slow"
                return await super().invoke(arguments, context)

        return Busy(spec, says)


def _write(workspace):
    (workspace / "toys").mkdir()
    (workspace / "toys/bear.toy").write_text('{"says": "hello"}')


def case_of(source):
    return SourceCase(
        source="toy",
        tool="bear",
        write=_write,
        opened=source,
        path="toys/bear.toy",
        change=lambda workspace: (workspace / "toys/bear.toy").write_text('{"says": "goodbye"}'),
        spoil=lambda workspace: (workspace / "toys/bear.toy").write_text("{"),
        remove=lambda workspace: (workspace / "toys/bear.toy").unlink(),
        arguments={"to": "Ann"},
        output="hello Ann\n",
        wrong_arguments={"to": 7},
        failing_arguments={"mood": "sad"},
        slow_arguments={"mood": "slow"},
    )
