"""Runs the client scenarios of the conformance suite with haft as the client: `conformance_client.py` says how."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from suite import Scenario

import npm_programs

CLIENT = Path(__file__).parents[1] / "conformance_client.py"
OLD, NEW = "2025-11-25", "2026-07-28"
BOTH = [
    "tools_call",
    "json-schema-2020-12-preservation",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
]
SCENARIOS = {
    "2025-03-26": ["auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"],
    OLD: ["initialize", "elicitation-sep1034-client-defaults", "sse-retry", *BOTH],
    NEW: [
        "request-metadata",
        *BOTH,
        "auth/resource-mismatch",
        "auth/offline-access-scope",
        "auth/offline-access-not-supported",
        "auth/authorization-server-migration",
        "auth/iss-supported",
        "auth/iss-not-advertised",
        "auth/iss-supported-missing",
        "auth/iss-wrong-issuer",
        "auth/iss-unexpected",
        "auth/iss-normalized",
        "auth/metadata-issuer-mismatch",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
    ],
}
EXTENSIONS = ["auth/client-credentials-basic"]
"""Of the extensions, those that haft offers."""
ALL = [(version, scenario) for version, scenarios in SCENARIOS.items() for scenario in scenarios]
ALL += [(NEW, scenario) for scenario in EXTENSIONS]
PATIENCE = 120


def run_client(version, name, place):
    """Run one scenario in an empty directory. Returns it, and what the suite printed."""
    words = ["client", "--command", f"{sys.executable} {CLIENT}", "--scenario", name, "-o", str(place)]
    words += [] if name in EXTENSIONS else ["--spec-version", version]
    words += ["--timeout", str(PATIENCE * 1000)]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HAFT_HOME", "HAFT_APPROVAL"))}
    began = time.time()
    command = [*npm_programs.command("conformance"), *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE + 60, env=env, cwd=place)
    (found,) = Path(place).rglob("checks.json")
    scenario = Scenario(name, began, json.loads(found.read_text()))
    return scenario, f"exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
