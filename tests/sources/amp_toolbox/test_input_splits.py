"""Whole tools, in the styles in which people publish them: each splits other things as well, and is given what it reads
its input by. Where its interpreter is here, it is run, and must find its parameter."""

import os
import shutil
import subprocess

import pytest

from haft.sources.amp_toolbox.separator import COLON, EQUALS, DetectedSeparator, detect_separator
from haft.sources.amp_toolbox.wire import as_text

EQUALS_TOOLS = {
    "bash, and the parts of an address": """#!/usr/bin/env bash
if [ "$TOOLBOX_ACTION" = "describe" ]; then
cat << 'EOF'
name: port_check
description: Look whether a port is open: host:port.
target: string the address, such as localhost:80
EOF
exit 0
fi
while IFS='=' read -r key value; do
  case "$key" in
    target) target="$value" ;;
  esac
done
host="${target%%:*}"
port=$(echo "$target" | cut -d: -f2)
echo "$target $host $port" >/dev/null; echo "$target"
""",
    "bash, and jq on an answer": """#!/bin/bash
set -euo pipefail
describe() { printf 'name: issue\\ndescription: d\\ntarget: string\\n'; }
execute() {
    local target=""
    while IFS="=" read -r k v || [ -n "$k" ]; do
        [[ "$k" == "target" ]] && target="$v"
    done
    response=$(printf '{"at": "12:30"}')
    when=$(echo "$response" | grep -o '"at": "[^"]*"' | sed 's/.*"at": "//')
    command -v jq >/dev/null && when=$(jq -r .at <<< "$response")
    IFS=':' read -r hours minutes <<< "$when"
    echo "$target"
}
[ "$TOOLBOX_ACTION" = describe ] && describe || execute
""",
    "bash, and the lines of git": """#!/usr/bin/env bash
input=$(cat)
target=$(echo "$input" | grep '^target=' | cut -d= -f2-)
git log --format='%h:%s' 2>/dev/null | while IFS=: read -r hash subject; do
  : "$hash" "$subject"
done || true
printf '%s\\n' "$target"
""",
    "bash, and a file of users": """#!/usr/bin/env bash
while IFS= read -r line; do
  key=${line%%=*}
  value=${line#*=}
  if [ "$key" = target ]; then target=$value; fi
done
while IFS=: read -r user _ id _; do
  [ "$id" = 0 ] && root=$user
done < /etc/passwd
echo "$target"
""",
    "bash, a regular expression, and a case of schemes": """#!/bin/bash
while read -r line; do
  if [[ $line =~ ^([a-z_]+)=(.*)$ ]]; then
    declare "arg_${BASH_REMATCH[1]}=${BASH_REMATCH[2]}"
  fi
done
case "$arg_target" in
  http:*) scheme=http ;;
  ssh:*) scheme=ssh ;;
esac
echo "$arg_target"
""",
    "sh, sed, and PATH": """#!/bin/sh
args=$(cat)
target=$(printf '%s\\n' "$args" | sed -n 's/^target=//p')
OLD="$IFS"; IFS=:
for directory in $PATH; do [ -x "$directory/git" ] && git="$directory/git"; done
IFS="$OLD"
echo "$target"
""",
    "Python, and the lines of grep": """#!/usr/bin/env python3
import os, subprocess, sys

def search(pattern):
    out = subprocess.run(["grep", "-rn", pattern, "/dev/null"], capture_output=True, text=True).stdout
    for line in out.splitlines():
        path, number, text = line.split(":", 2)
        yield path, int(number), text

def main():
    if os.environ.get("TOOLBOX_ACTION") == "describe":
        print("name: find\\ndescription: d\\ntarget: string")
        return
    arguments = {}
    for line in sys.stdin:
        if "=" in line:
            key, value = line.rstrip("\\n").split("=", 1)
            arguments[key] = value
    list(search("x"))
    print(arguments["target"])

main()
""",
    "Python, a comprehension, and a time": """#!/usr/bin/env python3
import sys
pairs = dict(row.strip().split("=", 1) for row in sys.stdin.read().splitlines() if "=" in row)
hours, minutes = "12:30".split(":")
host, _, port = pairs.get("target", "").partition(":")
print(pairs["target"])
""",
    "Python, a compiled expression": """#!/usr/bin/env python3
import re, sys
PAIR = re.compile(r"^(\\w+)=(.*)$")
found = {}
for text in sys.stdin.read().split("\\n"):
    one = PAIR.match(text)
    if one:
        found[one.group(1)] = one.group(2)
stamp = re.match(r"(\\d+):(\\d+)", "12:30")
print(found["target"])
""",
    "node, and headers": """#!/usr/bin/env node
const fs = require('fs');
const args = {};
for (const row of fs.readFileSync(0, 'utf8').split('\\n')) {
  const at = row.indexOf('=');
  if (at > 0) args[row.slice(0, at)] = row.slice(at + 1);
}
function header(text) {
  const [name, value] = text.split(': ');
  return { name, value };
}
header('content-type: text/plain');
const [host, port] = args.target.split(':');
console.log(args.target);
""",
    "node, readline, and a clock": """#!/usr/bin/env node
const readline = require('readline');
const rl = readline.createInterface({ input: process.stdin });
const given = {};
rl.on('line', (row) => {
  const [key, ...rest] = row.split('=');
  given[key] = rest.join('=');
});
rl.on('close', () => {
  const clock = new Date(0).toISOString().split('T')[1].split(':')[0];
  console.log(given.target);
});
""",
    "ruby": """#!/usr/bin/env ruby
args = {}
STDIN.each_line do |row|
  key, value = row.chomp.split("=", 2)
  args[key] = value
end
host, port = args["target"].split(":")
puts args["target"]
""",
    "perl": """#!/usr/bin/perl
use strict;
my %args;
while (my $row = <STDIN>) {
    chomp $row;
    my ($key, $value) = split /=/, $row, 2;
    $args{$key} = $value;
}
my ($host, $port) = split /:/, $args{target};
print "$args{target}\\n";
""",
    "php": """#!/usr/bin/env php
<?php
$args = [];
while (($row = fgets(STDIN)) !== false) {
    [$key, $value] = explode('=', rtrim($row, "\\n"), 2);
    $args[$key] = $value;
}
$parts = explode(':', $args['target']);
echo $args['target'], "\\n";
""",
    "go": """//usr/bin/env go run "$0"; exit
package main
func main() {
	scanner := bufio.NewScanner(os.Stdin)
	args := map[string]string{}
	for scanner.Scan() {
		row := scanner.Text()
		parts := strings.SplitN(row, "=", 2)
		args[parts[0]] = parts[1]
	}
	host := strings.Split(args["target"], ":")[0]
	fmt.Println(args["target"], host)
}
""",
}
COLON_TOOLS = {
    "bash, and options": """#!/usr/bin/env bash
while IFS=': ' read -r key value; do
  case "$key" in target) target="$value" ;; esac
done
for pair in "a=1" "b=2"; do
  IFS='=' read -r name setting <<< "$pair"
done
echo "$target"
""",
    "bash, and its own flags": """#!/bin/bash
for arg in "$@"; do
  case "$arg" in --dry=*) dry="${arg#--dry=}" ;; esac
done
while read -r line; do
  case "$line" in
    target:*) target="${line#target: }" ;;
  esac
done
echo "$target"
""",
    "bash, and variables of a file": """#!/usr/bin/env bash
input=$(cat)
target=$(echo "$input" | grep '^target:' | cut -d: -f2- | sed 's/^ *//')
while IFS='=' read -r name value; do
  [ "$name" = NAME ] && system=$value
done < /etc/os-release
echo "$target"
""",
    "sh, and the environment": """#!/bin/sh
target=$(sed -n 's/^target: //p')
env | grep '^HOME=' | cut -d= -f2 >/dev/null
echo "$target"
""",
    "awk in sh": """#!/bin/sh
input=$(cat)
target=$(printf '%s\\n' "$input" | awk -F': ' '$1 == "target" { print $2 }')
printf '%s\\n' "$target"
""",
    "Python, and a file of settings": """#!/usr/bin/env python3
import sys
arguments = {}
for line in sys.stdin:
    key, _, value = line.partition(":")
    arguments[key.strip()] = value.strip()
with open("/dev/null") as file:
    settings = dict(line.split("=", 1) for line in file)
print(arguments["target"])
""",
    "Python, and a query": """#!/usr/bin/env python3
import sys
found = {}
for row in sys.stdin.read().splitlines():
    if row.startswith("target: "):
        found["target"] = row[len("target: "):]
query = dict(part.split("=") for part in "a=1&b=2".split("&"))
print(found["target"])
""",
    "node, and a query": """#!/usr/bin/env node
const text = require('fs').readFileSync(0, 'utf8');
const found = {};
text.split('\\n').forEach((row) => {
  const match = row.match(/^([^:]+):\\s*(.*)$/);
  if (match) found[match[1]] = match[2];
});
const query = 'a=1&b=2'.split('&').map((part) => part.split('='));
console.log(found.target);
""",
    "node, and its arguments": """#!/usr/bin/env node
const flags = {};
for (const flag of process.argv.slice(2)) {
  const [name, value] = flag.split('=');
  flags[name] = value;
}
let all = '';
process.stdin.on('data', (chunk) => { all += chunk; });
process.stdin.on('end', () => {
  const found = {};
  for (const line of all.split('\\n')) {
    const at = line.indexOf(':');
    if (at > 0) found[line.slice(0, at)] = line.slice(at + 1).trim();
  }
  console.log(found.target);
});
""",
    "ruby": """#!/usr/bin/env ruby
found = {}
$stdin.each_line do |line|
  key, value = line.chomp.split(': ', 2)
  found[key] = value
end
ENV['OPTIONS'].to_s.split(',').each { |option| name, value = option.split('=') }
puts found['target']
""",
    "perl": """#!/usr/bin/perl
my %found;
while (<STDIN>) {
    chomp;
    $found{$1} = $2 if /^(\\w+):\\s*(.*)$/;
}
for my $option (@ARGV) { my ($name, $value) = split(/=/, $option); }
print "$found{target}\\n";
""",
    "php": """#!/usr/bin/env php
<?php
$found = [];
foreach (file('php://stdin') as $row) {
    [$key, $value] = explode(': ', rtrim($row), 2);
    $found[$key] = $value;
}
foreach (array_slice($argv, 1) as $option) { $pair = explode('=', $option); }
echo $found['target'], "\\n";
""",
}
ALL = {
    f"{mark.strip()} {name}": (script, mark)
    for table, mark in ((EQUALS_TOOLS, EQUALS), (COLON_TOOLS, COLON))
    for name, script in table.items()
}


@pytest.mark.parametrize(("script", "mark"), ALL.values(), ids=ALL)
def test_a_tool_is_given_what_it_reads_its_input_by_whatever_else_it_splits(script, mark):
    shown = detect_separator(script)
    assert (shown.separator or COLON, shown.is_unsure) == (mark, False)


@pytest.mark.parametrize(("script", "mark"), ALL.values(), ids=ALL)
def test_such_a_tool_finds_its_parameter(script, mark, tmp_path):
    program = os.path.basename(script.split("\n", 1)[0].split()[-1])
    if script.startswith("//") or shutil.which(program) is None:
        pytest.skip("its interpreter is not installed")
    path = tmp_path / "tool"
    path.write_text(script)
    stdin = as_text({"other": "x", "target": "host:80"}, (), mark)
    env = {**os.environ, "TOOLBOX_ACTION": "execute"}
    ran = subprocess.run([program, path], input=stdin, capture_output=True, env=env, check=False)
    assert ran.stdout.decode().splitlines()[-1:] == ["host:80"], ran.stderr


UNSURE = {
    "two loops over its input": "while IFS=: read -r a b; do :; done\nwhile IFS== read -r c d; do :; done",
    "something is split at equals, nobody can tell what": 'key, value = something.split("=")',
    "two functions of lines": 'def one(line):\n    return line.split(":")\ndef two(line):\n    return line.split("=")',
}


@pytest.mark.parametrize("script", UNSURE.values(), ids=UNSURE)
def test_where_both_are_as_likely_the_protocols_own_is_used_and_it_is_unsure(script):
    shown = detect_separator(script)
    assert shown.separator != EQUALS and shown.is_unsure


def test_a_script_that_takes_either_is_sure_of_both():
    assert detect_separator("while IFS='=:' read -r key value; do :; done") == DetectedSeparator(COLON)


ASSIGNING = {
    "declare": 'while IFS=": " read -r key value; do declare "$key=$value"; done',
    "export": 'while read -r line; do export "$line"; done',
    "printf": 'printf -v "$key" %s "$value"',
    "read": 'read -r "$key" <<< "$value"',
    "eval": 'eval "$(cat)"',
    "source": "source /dev/stdin",
    "perl": "${$key} = $value;",
    "php": "$$key = $value;",
    "python": "globals()[key] = value",
    "environ": "os.environ[key] = value",
    "node": "process.env[key] = value;",
}


@pytest.mark.parametrize("script", ASSIGNING.values(), ids=ASSIGNING)
def test_a_script_that_sets_variables_of_any_name_is_known_by_it(script):
    assert detect_separator(script).assigns


def test_a_script_that_sets_its_own_variables_is_not_one():
    for script in (
        'export PATH="$HOME/bin:$PATH"; local key="$1"; declare -A args; args["$key"]="$value"; set -eu',
        'os.environ["X"] = "1"\nargs[key] = value',
        "process.env.X = '1'; const match = /a/.exec (line)",
    ):
        assert not detect_separator(script).assigns, script
