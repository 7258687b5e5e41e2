#!/usr/bin/env bash
# Prints some lines of a file. Called as `bash read_line_range.bash schema|preview|run|error [ARGUMENT]…`.
set -euo pipefail

most_lines=2000

schema() {
    printf '%s\n' '{
  "id": "read_line_range",
  "version": "0.1.0",
  "args_mode": "positional",
  "positional": [
    {"name": "path", "required": true},
    {"name": "start_line", "required": true},
    {"name": "end_line", "required": true},
    {"name": "show_line_numbers", "default": false}
  ],
  "tools": [
    {
      "type": "function",
      "function": {
        "name": "read_line_range",
        "description": "Print the lines from start_line to end_line of a text file, both included.\nUse this tool to read a known part of a long file, such as a line that a search or an error message named.\nIt reads one file and changes nothing; it prints at most 2000 lines.",
        "parameters": {
          "type": "object",
          "properties": {
            "path": {"type": "string", "description": "The file to read, relative to the workspace."},
            "start_line": {"type": "integer", "minimum": 1, "description": "The first line to print; a file begins with line 1."},
            "end_line": {"type": "integer", "minimum": 1, "description": "The last line to print. Lines after the end of the file are left out."},
            "show_line_numbers": {"type": "boolean", "default": false, "description": "Whether each line begins with its number. Default: false."}
          },
          "required": ["path", "start_line", "end_line"],
          "additionalProperties": false
        }
      }
    }
  ]
}'
}

# Print what is wrong with the arguments; nothing if they are valid.
problem() {
    local path=${1:-} start=${2:-} end=${3:-}
    if ! [[ $start =~ ^[1-9][0-9]{0,8}$ && $end =~ ^[1-9][0-9]{0,8}$ ]]; then
        printf 'start_line and end_line must be whole numbers from 1 on, not %q and %q' "$start" "$end"
    elif ((end < start)); then
        printf 'end_line %s is before start_line %s' "$end" "$start"
    elif ((end - start >= most_lines)); then
        printf '%s lines are more than %s; ask for fewer' "$((end - start + 1))" "$most_lines"
    elif [[ ! -f $path ]]; then
        printf 'there is no file %q' "$path"
    elif [[ ! -r $path ]]; then
        printf '%q cannot be read' "$path"
    fi
}

run() {
    local found
    found=$(problem "$@")
    if [[ -n $found ]]; then
        printf 'Error: %s\n' "$found" >&2
        exit 1
    fi
    # Through `<`, so that a file name that begins with a dash is not read as an option.
    if [[ ${4:-false} == true ]]; then
        awk -v start="$2" -v end="$3" 'NR > end { exit } NR >= start { printf "%d\t%s\n", NR, $0 }' <"$1"
    else
        sed -n -e "$2,$3p" -e "$3q" <"$1"
    fi
}

explain() {
    local code=${1:-1} found
    shift || true
    if [[ ${AGENT_TOOL_TIMED_OUT:-} == 1 ]]; then
        printf 'read_line_range did not finish within %s seconds; ask for fewer lines\n' "${AGENT_TOOL_TIMEOUT_SECONDS:-}"
        return
    fi
    found=$(problem "$@")
    printf 'read_line_range failed with exit code %s%s\n' "$code" "${found:+: $found}"
}

subcommand=${1:-}
shift || true
case $subcommand in
    schema) schema ;;
    preview) printf 'read_line_range path=%q lines %q to %q\n' "${1:-}" "${2:-}" "${3:-}" ;;
    run) run "$@" ;;
    error) explain "$@" ;;
    *)
        printf 'Usage: read_line_range.bash schema|preview|run|error [ARGUMENT]…\n' >&2
        exit 2
        ;;
esac
