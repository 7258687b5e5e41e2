"""Which variables a program reads, by its source, and which it misses, by its words. Names only."""

import pytest

from haft.contracts.variables import names_read, names_reported_missing, why_not_granted, withheld

READ = {
    "python": 'import os\nx = os.environ["A_TOKEN"]\ny = os.environ.get("B_URL", "")\nz = os.getenv(\'C_KEY\')',
    "node": "const a = process.env.A_TOKEN; const { B_URL, C_KEY: key } = process.env",
    "bun": 'const a = Bun.env.A_TOKEN ?? Bun.env["B_URL"]; import.meta.env.C_KEY',
    "deno": 'Deno.env.get("A_TOKEN"); Deno.env.has("B_URL"); Deno.env.get(\'C_KEY\')',
    "bash": 'set -eu\n: "${A_TOKEN:?is required}"\ncurl -H "x: $B_URL"\n[ -z "${C_KEY:-}" ] && exit 1',
    "ruby": 'ENV["A_TOKEN"]; ENV.fetch("B_URL"); ENV.fetch(\'C_KEY\', nil)',
    "perl": 'my $a = $ENV{A_TOKEN}; my $b = $ENV{"B_URL"}; my $c = $ENV{ C_KEY };',
    "php": 'getenv("A_TOKEN"); $_ENV["B_URL"]; $_SERVER[\'C_KEY\'];',
    "go": 'os.Getenv("A_TOKEN")\nv, ok := os.LookupEnv("B_URL")\nos.Getenv("C_KEY")',
    "rust": 'std::env::var("A_TOKEN")?; env::var_os("B_URL"); std::env::var("C_KEY")',
}


@pytest.mark.parametrize("language", READ)
def test_the_variables_that_a_program_reads_are_found_in_its_source(language):
    assert set(names_read(READ[language])) >= {"A_TOKEN", "B_URL", "C_KEY"}


def test_what_a_script_sets_itself_it_does_not_read():
    script = (
        'TOKEN=$(cat file)\nfor NAME in a b; do echo "$NAME $TOKEN"; done\nURL="${URL:-none}"\nread -r LINE; echo $LINE'
    )
    assert names_read(script) == ("URL",)


@pytest.mark.parametrize(
    "words",
    [
        "SRC_ACCESS_TOKEN is required",
        "Error: the environment variable SRC_ACCESS_TOKEN must be set.",
        "SRC_ACCESS_TOKEN not set, skipping",
        "KeyError: 'SRC_ACCESS_TOKEN'",
        "./tool: line 3: SRC_ACCESS_TOKEN: unbound variable",
        'key not found: "SRC_ACCESS_TOKEN" (KeyError)',
        "Missing required environment variable: SRC_ACCESS_TOKEN",
        "export SRC_ACCESS_TOKEN=… first",
    ],
)
def test_the_variable_that_a_program_complains_of_is_found_in_its_words(words):
    assert names_reported_missing(f"some\n{words}\nmore", {"SRC_ACCESS_TOKEN", "OTHER"}) == ("SRC_ACCESS_TOKEN",)


def test_words_name_only_what_is_set_here_and_complained_of():
    said = "GUESS is required\nSRC_ACCESS_TOKEN was used\n/x/SRC_ACCESS_TOKEN not found\n\x1b[2K`--network` required"
    assert names_reported_missing(said, {"SRC_ACCESS_TOKEN"}) == ()


def test_what_is_passed_anyway_or_given_or_not_set_is_not_withheld():
    host = {"TOKEN": "x", "HOME": "/h", "LC_ALL": "C", "HTTPS_PROXY": "p", "PWD": "/", "GIVEN": "y", "HAFT_HOME": "z"}
    names = ("TOKEN", "HOME", "LC_ALL", "HTTPS_PROXY", "PWD", "GIVEN", "HAFT_HOME", "MISSING", "TOKEN")
    assert withheld(names, host, {"GIVEN"}) == ("TOKEN",)


@pytest.mark.parametrize(
    "name", ["", "A B", "1A", "A=B", "A-B", "Ä", "A\n", "LD_PRELOAD", "BASH_ENV", "PATH", "HAFT_HOME"]
)
def test_some_names_are_never_granted(name):
    assert why_not_granted(name) is not None


def test_other_names_can_be_granted():
    assert [why_not_granted(name) for name in ("TOKEN", "_x", "a1", "LD_LIBRARY_PATH")] == [None] * 4
