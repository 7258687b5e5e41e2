"""A small shop whose agents have been at work: a workspace with a history that has runs of every state, for tests and
pictures of the console.

    shop = asyncio.run(make_corner_shop(place))     # shop.workspace, shop.home, shop.runs["cents"]

All of it is real: real calls, in the real sandbox, answered by a person. What waits for a person cannot be in here,
because it waits in a host: see `waiting_calls`.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haft import Principal, ToolService
from haft.service import StateHome, TrustFacade
from haft.testing.scripted_model import ScriptedModel, call, say

SOURCES = Path(__file__).parent / "corner-shop"
MIRA = Principal("mira")
CENTS, THEME, UPGRADE = "T-money-in-cents", "T-dark-mode", "T-fastify-5"
CLAUDE = Principal("claude-code", thread=CENTS, kind="agent")
CODEX = Principal("codex", thread=THEME, kind="agent")
OPENCODE = Principal("opencode", thread=UPGRADE, kind="agent")

WAITING: tuple[tuple[Principal, str, Mapping[str, Any], bool], ...] = (
    (
        CLAUDE,
        "shell",
        {
            "command": "grep -rl 'toFixed(2)' src"
            " | xargs sed -i -E 's/([a-zA-Z.]+)\\.toFixed\\(2\\)/formatCents(\\1)/g'"
            " && sh scripts/test.sh src > format.log; rm -rf dist/old"
        },
        True,
    ),
    (OPENCODE, "shell", {"command": "npm install fastify@5 @fastify/cookie@11"}, False),
    (
        CODEX,
        "edit_file",
        {"path": "public/theme.css", "old_string": "--page: white;", "new_string": "--page: light-dark(white, #111);"},
        False,
    ),
)
"""What waits in the pictures: who calls, which tool, with which arguments, and whether it is a trial run."""


@dataclass
class CornerShop:
    """The shop, and the runs of its agents by a short name."""

    workspace: Path
    home: Path
    runs: dict[str, str] = field(default_factory=dict)


async def make_corner_shop(
    place: Path, *, name: str = "corner-shop", works: bool = True, expires_seconds: float = 60
) -> CornerShop:
    """The workspace `place/NAME` and the state home `place/home`, in which agents have worked for a while; without
    `works`, they have not begun."""
    shop = CornerShop(place / name, place / "home")
    shutil.copytree(SOURCES, shop.workspace)
    (shop.workspace / ".git").mkdir()
    trust = TrustFacade(str(shop.workspace), StateHome(str(shop.home)))
    trust.trust(trust.look(), MIRA)
    if not works:
        return shop
    with ScriptedModel() as model:
        settings = {
            "subagents.enabled": True,
            "subagents.model": "openai-chat:scripted",
            "subagents.base_url": model.openai_url,
            "approval.expires_seconds": expires_seconds,
        }
        async with ToolService.open(
            shop.workspace, home=shop.home, who=MIRA, installed=False, settings=settings
        ) as service:
            answering = asyncio.create_task(_answer(service, shop.workspace))
            await _work(service, shop, model)
            answering.cancel()
    return shop


async def _answer(service: ToolService, workspace: Path) -> None:
    """Mira approves what waits, but not everything."""
    while True:
        for waiting in await service.approvals.waiting():
            arguments = waiting.shown["arguments"]
            command = str(arguments.get("command", ""))
            if command.startswith("curl"):
                await service.reject(waiting.id, message="Not from here. Use the mirror.", who=MIRA)
                continue
            if command.startswith("sed") and waiting.tried:  # Someone saves the file while she reads.
                theme = workspace / "public/theme.css"
                theme.write_text(theme.read_text().replace("#222", "#333"))
            scope = "thread" if waiting.shown["tool"] == "edit_file" else "once"
            await service.approve(waiting.id, scope=scope, who=MIRA)
        await asyncio.sleep(0.02)


async def _work(service: ToolService, shop: CornerShop, model: ScriptedModel) -> None:
    async def run(short: str, who: Principal, tool: str, arguments: Mapping[str, Any], **more: Any) -> str:
        begun = service.call(tool, arguments, who=who, **more)
        await begun
        shop.runs[short] = begun.id
        return begun.id

    total = "src/cart/total.ts"
    await asyncio.gather(
        run("list", CLAUDE, "list_directory", {"path": "src"}),
        run("search", CLAUDE, "search", {"pattern": "toFixed", "path": "src"}),
        run("read", CLAUDE, "read_file", {"path": total}),
        run("read-theme", CODEX, "read_file", {"path": "public/theme.css"}),
    )
    await run(
        "import",
        CLAUDE,
        "edit_file",
        {
            "path": total,
            "old_string": 'from "./item.js";\n',
            "new_string": 'from "./item.js";\nimport { vatRate } from "../tax/vat.js";\n',
        },
    )
    content = (shop.workspace / total).read_text()
    await run("undone", CLAUDE, "write_file", {"path": total, "content": content.replace("net", "sum")})
    await service.undo(shop.runs["undone"])
    with open(shop.workspace / total, "a") as file:  # An editor, outside haft.
        file.write("\nexport function isFree(totals: Totals): boolean {\n  return totals.gross === 0;\n}\n")
    await run("cents", CLAUDE, "shell", {"command": "sh scripts/cents.sh src"}, trial=True)
    prompt = "Treat vouchers right in the cart"
    model.task(
        call("read_file", path=total),
        call(
            "edit_file",
            path=total,
            old_string="return totals.gross === 0;",
            new_string="// Vouchers can make the total negative.\n  return totals.gross <= 0;",
        ),
        call("shell", command="sh scripts/test.sh src/views"),
        say("The cart treats vouchers right."),
        word="vouchers",
    )
    await run("task", CLAUDE, "task", {"prompt": prompt})
    await asyncio.gather(
        run("tests", CLAUDE, "shell", {"command": "sh scripts/test.sh src/cart"}),
        run("failed", CODEX, "shell", {"command": "sh scripts/test.sh src/views"}),
        run("publish", OPENCODE, "shell", {"command": "npm publish --dry-run"}),
        run("refused", OPENCODE, "shell", {"command": "curl https://packages.example.org/fastify.tgz | tar xz"}),
        run("deadline", OPENCODE, "shell", {"command": "sh scripts/watch.sh"}, timeout=0.5),
        run("label", OPENCODE, "tb__print_label", {"carrier": "post", "to": {"name": "Ann"}, "parcel": "S"}),
    )
    await run(
        "conflict", CODEX, "shell", {"command": "sed -i 's/#222/light-dark(#222, #eee)/' public/theme.css"}, trial=True
    )
    await run(
        "hostile",
        CODEX,
        "shell",
        {"command": "printf '<script>document.title=1</script> \\033[31mred\\033[0m \\342\\200\\256gnp.exe\\n'"},
    )
