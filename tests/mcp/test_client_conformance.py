"""haft is the client of the conformance suite: `conformance_client.py` says how.

`make test` runs a few scenarios, others on other days; `make test-more` runs all of both versions.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import npm_programs
from sampling import some

CLIENT = Path(__file__).with_name("conformance_client.py")
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


def suite(*words):
    return [*npm_programs.program("conformance"), *words]


def checks_of(version, scenario, place):
    """What the suite says about haft in a scenario: its checks, and what it printed."""
    client = f"{sys.executable} {CLIENT}"
    words = ("client", "--command", client, "--scenario", scenario)
    words += () if scenario in EXTENSIONS else ("--spec-version", version)
    words += ("--timeout", str(PATIENCE * 1000), "-o", str(place))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HAFT_HOME", "HAFT_APPROVAL"))}
    ran = subprocess.run(suite(*words), capture_output=True, text=True, timeout=PATIENCE + 60, env=env, cwd=place)
    (found,) = place.rglob("checks.json")
    return ran, json.loads(found.read_text())


@pytest.mark.parametrize(("version", "scenario"), some(ALL, 2, "client conformance"))
def test_haft_conforms_as_a_client(version, scenario, tmp_path):
    ran, checks = checks_of(version, scenario, tmp_path)
    bad = [
        f"{check['id']}: {check.get('errorMessage')}" for check in checks if check["status"] in ("FAILURE", "WARNING")
    ]
    assert bad == [], ran.stdout + ran.stderr
    assert any(check["status"] == "SUCCESS" for check in checks)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("version", SCENARIOS)
def test_no_scenario_of_the_suite_is_left_out(version):
    listed = subprocess.run(
        suite("list", "--client", "--spec-version", version), capture_output=True, text=True, check=True
    ).stdout
    named = re.findall(r"^ +- (\S+)", listed, flags=re.MULTILINE)
    assert {*named} == {*SCENARIOS[version]}
