"""Claude Code, Codex, opencode and Gemini CLI, each with a home of its own whose settings name a scripted model.

    agent = AGENTS["codex"](base, model.url)
    done = agent.run(model.task(call("exec_command", cmd="ls"), say("done")))

`run` is the agent without a terminal. `words` is its command line for a terminal: see `terminal`. Agents reach nothing
but loopback: their variables name a proxy that refuses.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import installed_agents

PATIENCE = 300
UNTOUCHED = ("PATH", "LANG", "TERM", "USER", "SHELL")


class RealAgent:
    """An agent, its home and its workspace. Subclasses know its settings and its options."""

    id: str
    own_shell: str
    """The name of its own shell tool."""
    unattended: tuple[str, ...] = ()
    """The options that let it call its own tools without a prompt."""
    hook_fields: dict = {}
    """What an entry of a hook says besides: such as to block if it fails."""
    trusting: tuple[str, ...] = ()
    """The options with which it calls hooks that no person has looked at."""

    def __init__(self, base: Path, model: str) -> None:
        self.base, self.model = base, model
        self.home, self.workspace = base / "home", base / "workspace"
        for place in (self.home, self.workspace, base / "tmp"):
            place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "-q"], cwd=self.workspace, check=True)
        self.command = installed_agents.command(self.id)
        self.env = {name: os.environ[name] for name in UNTOUCHED if name in os.environ}
        self.env |= {"HOME": str(self.home), "HAFT_HOME": str(base / "state"), "NO_PROXY": "127.0.0.1,localhost"}
        # Codex puts no programs of its own below TMPDIR: its home must be elsewhere.
        self.env |= dict.fromkeys(("TMPDIR", "CLAUDE_CODE_TMPDIR"), str(base / "tmp"))
        self.env |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
        self.configure()

    def configure(self) -> None:
        """Write the settings that name the model."""
        raise NotImplementedError

    def headless(self, prompt: str) -> list[str]:
        """Its command line without a terminal."""
        raise NotImplementedError

    def words(self, prompt: str) -> list[str]:
        """Its command line in a terminal."""
        raise NotImplementedError

    def install_hooks(self, before: str, after: str, *, seconds: int = 60) -> None:
        """Let it call these shell lines before and after each tool."""
        raise NotImplementedError

    def start(self, prompt: str, *options: str, **more) -> subprocess.Popen:
        """The agent as a process without a terminal, in a session of its own."""
        return subprocess.Popen(
            [*self.command, *self.headless(prompt), *options],
            cwd=self.workspace,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **more,
        )

    def run(self, prompt: str, *options: str, patience: float = PATIENCE) -> subprocess.CompletedProcess:
        """Run the agent without a terminal to its end. `unattended` options are given unless others are."""
        process = self.start(prompt, *(options or self.unattended))
        try:
            out, err = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"{self.id} did not end: {out[-2000:]}\n{err[-4000:]}") from None
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def edit(self, path: Path, change) -> None:
        """Change a JSON file of settings."""
        path.parent.mkdir(parents=True, exist_ok=True)
        settings = json.loads(path.read_text()) if path.exists() else {}
        change(settings)
        path.write_text(json.dumps(settings, indent=2))


class ClaudeCode(RealAgent):
    id = "claude-code"
    own_shell = "Bash"
    unattended = ("--allowedTools", "Bash,Read,Write,Edit,NotebookEdit,Glob,Grep,Task,Agent,Skill,TodoWrite,mcp__haft")

    def configure(self) -> None:
        self.env |= {
            "ANTHROPIC_BASE_URL": self.model,
            "ANTHROPIC_API_KEY": "dummy-key-of-twenty-characters",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ENABLE_TOOL_SEARCH": "false",
            "MCP_CONNECTION_NONBLOCKING": "false",
            "MCP_CONNECT_TIMEOUT_MS": "60000",
        }
        self.edit(
            self.home / ".claude.json",
            lambda found: found.update(
                hasCompletedOnboarding=True,
                theme="dark",
                customApiKeyResponses={"approved": [self.env["ANTHROPIC_API_KEY"][-20:]], "rejected": []},
                projects={str(self.workspace): {"hasTrustDialogAccepted": True, "allowedTools": []}},
            ),
        )

    def headless(self, prompt: str) -> list[str]:
        return ["-p", prompt]

    def words(self, prompt: str) -> list[str]:
        return [prompt]

    def install_hooks(self, before: str, after: str, *, seconds: int = 60) -> None:
        def entry(line: str) -> list[dict]:
            hook = {"type": "command", "command": line, "timeout": seconds, **self.hook_fields}
            return [{"matcher": "*", "hooks": [hook]}]

        lines = {"PreToolUse": before, "PostToolUse": after, "PostToolUseFailure": after, "PermissionRequest": after}
        hooks = {event: entry(line) for event, line in lines.items()}
        self.edit(self.home / ".claude" / "settings.json", lambda found: found.update(hooks=hooks))


class Codex(RealAgent):
    id = "codex"
    own_shell = "exec_command"
    unattended = ("--sandbox", "workspace-write", "-c", 'approval_policy="never"')
    trusting = ("--dangerously-bypass-hook-trust",)
    BYPASS = ("--dangerously-bypass-approvals-and-sandbox",)

    def configure(self) -> None:
        self.env["MODEL_KEY"] = "dummy"
        self.settings = self.home / ".codex" / "config.toml"
        self.settings.parent.mkdir(exist_ok=True)
        self.settings.write_text(f"""model = "scripted"
model_provider = "loopback"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.loopback]
name = "scripted"
base_url = "{self.model}/v1"
wire_api = "responses"
env_key = "MODEL_KEY"
request_max_retries = 4
stream_max_retries = 4

[projects."{self.workspace}"]
trust_level = "trusted"
""")

    def headless(self, prompt: str) -> list[str]:
        return ["exec", "--skip-git-repo-check", prompt]

    def words(self, prompt: str) -> list[str]:
        return [prompt]

    def install_hooks(self, before: str, after: str, *, seconds: int = 60) -> None:
        def entry(line: str) -> list[dict]:
            return [{"matcher": "*", "hooks": [{"type": "command", "command": line, "timeout": seconds}]}]

        lines = {"PreToolUse": before, "PostToolUse": after, "PermissionRequest": after}
        hooks = {event: entry(line) for event, line in lines.items()}
        self.edit(self.home / ".codex" / "hooks.json", lambda found: found.update(hooks=hooks))


class Opencode(RealAgent):
    id = "opencode"
    own_shell = "bash"

    def configure(self) -> None:
        # Without ripgrep in its PATH, it tries to download it.
        ripgrep = Path(installed_agents.command("codex")[0]).parent.parent / "codex-path"
        self.env["PATH"] = f"{self.env['PATH']}{os.pathsep}{ripgrep}"
        self.env |= {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        # Where it has plugins, it asks the registry for a package of its own, and waits until that has failed.
        (self.home / ".npmrc").write_text("fetch-retries=0\nregistry=http://127.0.0.1:9/\n")
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": f"{self.model}/v1", "apiKey": "dummy"},
            "models": {
                "scripted": {"name": "scripted", "tool_call": True, "limit": {"context": 200000, "output": 8000}}
            },
        }
        self.settings = self.home / ".config" / "opencode" / "opencode.json"
        self.edit(
            self.settings,
            lambda found: found.update(
                autoupdate=False,
                share="disabled",
                model="loopback/scripted",
                small_model="loopback/scripted",
                enabled_providers=["loopback"],
                provider={"loopback": provider},
            ),
        )

    def headless(self, prompt: str) -> list[str]:
        return ["run", prompt]

    def words(self, prompt: str) -> list[str]:
        return ["--prompt", prompt]

    def install_hooks(self, before: str, after: str, *, seconds: int = 60) -> None:
        plugins = self.settings.parent / "plugins"
        plugins.mkdir(parents=True, exist_ok=True)
        template = (Path(__file__).parent / "recording_plugin.js").read_text()
        (plugins / "recorder.js").write_text(template.replace("BEFORE", before).replace("AFTER", after))


class Gemini(RealAgent):
    id = "gemini"
    own_shell = "run_shell_command"
    unattended = ("--approval-mode", "yolo")

    def configure(self) -> None:
        self.env |= {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": self.model,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_TELEMETRY_ENABLED": "false",
        }
        self.settings = self.home / ".gemini" / "settings.json"
        self.edit(
            self.settings,
            lambda found: found.update(
                security={"auth": {"selectedType": "gemini-api-key"}},
                privacy={"usageStatisticsEnabled": False},
                telemetry={"enabled": False},
                general={"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            ),
        )

    def headless(self, prompt: str) -> list[str]:
        return ["-m", "gemini-2.5-flash", "-p", prompt]

    def words(self, prompt: str) -> list[str]:
        return ["-m", "gemini-2.5-flash", "-i", prompt]

    def install_hooks(self, before: str, after: str, *, seconds: int = 60) -> None:
        def entry(line: str) -> list[dict]:
            hook = {"type": "command", "command": line, "name": "recorder", "timeout": seconds * 1000}
            return [{"matcher": "*", "hooks": [hook]}]

        hooks = {"BeforeTool": entry(before), "AfterTool": entry(after)}
        self.edit(self.settings, lambda found: found.update(hooks=hooks))


AGENTS = {agent.id: agent for agent in (ClaudeCode, Codex, Opencode, Gemini)}
