"""Which line of what a program printed says why it failed: a table of how programs really end."""

import pytest

from haft.contracts.failure_lines import error_line, error_or_last_line

CASES = {
    "node, a missing package": (
        """node:internal/modules/esm/resolve:873
  throw new ERR_MODULE_NOT_FOUND(packageName, fileURLToPath(base), null);
        ^

Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /w/tools/lookup.mjs
    at packageResolve (node:internal/modules/esm/resolve:873:9)
    at moduleResolve (node:internal/modules/esm/resolve:946:18) {
  code: 'ERR_MODULE_NOT_FOUND'
}

Node.js v20.11.1
""",
        "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /w/tools/lookup.mjs",
    ),
    "node, require": (
        """node:internal/modules/cjs/loader:1147
  throw err;
  ^

Error: Cannot find module 'left-pad'
Require stack:
- /w/tools/pad.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1144:15)
    at Module.require (node:internal/modules/cjs/loader:1235:19) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/w/tools/pad.js' ]
}

Node.js v20.11.1
""",
        "Error: Cannot find module 'left-pad'",
    ),
    "node, a cause": (
        """node:internal/deps/undici/undici:12618
    Error.captureStackTrace(err, this);
          ^

TypeError: fetch failed
    at node:internal/deps/undici/undici:12618:11 {
  [cause]: Error: getaddrinfo EAI_AGAIN api.example
      at GetAddrInfoReqWrap.onlookup [as oncomplete] (node:dns:107:26) {
    errno: -3001,
  }
}

Node.js v20.11.1
""",
        "TypeError: fetch failed",
    ),
    "python": (
        """starting
Traceback (most recent call last):
  File "/w/tool.py", line 7, in <module>
    main()
  File "/w/tool.py", line 4, in main
    raise ValueError("no such city: Ulm")
ValueError: no such city: Ulm
done with cleanup
""",
        "ValueError: no such city: Ulm",
    ),
    "python, a chain": (
        """Traceback (most recent call last):
  File "a.py", line 2, in f
    os.environ["X_TOKEN"]
KeyError: 'X_TOKEN'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 9, in <module>
    raise SystemError("X_TOKEN must be set") from None
SystemError: X_TOKEN must be set
""",
        "SystemError: X_TOKEN must be set",
    ),
    "python, a plain exception class": (
        'Traceback (most recent call last):\n  File "a.py", line 1\n    f()\nsubprocess.TimeoutExpired: late\n',
        "subprocess.TimeoutExpired: late",
    ),
    "python, argparse": ("usage: tool [-h] --city CITY\ntool: error: the following arguments are required: --city\n",
                         "tool: error: the following arguments are required: --city"),
    "ruby": (
        """/w/t.rb:4:in `fetch': key not found: "API_KEY" (KeyError)
\tfrom /w/t.rb:4:in `<main>'
""",
        """/w/t.rb:4:in `fetch': key not found: "API_KEY" (KeyError)""",
    ),
    "ruby, a missing gem": (
        """<internal:/usr/lib/ruby/kernel_require.rb>:86:in `require': cannot load such file -- httparty (LoadError)
\tfrom <internal:/usr/lib/ruby/kernel_require.rb>:86:in `require'
\tfrom t.rb:1:in `<main>'
""",
        "<internal:/usr/lib/ruby/kernel_require.rb>:86:in `require': cannot load such file -- httparty (LoadError)",
    ),
    "deno": (
        """Check file:///w/t.ts
error: Uncaught (in promise) NotFound: No such file or directory (os error 2): readfile 'x.json'
    at async Object.readTextFile (ext:deno_fs/30_fs.js:811:24)
    at async file:///w/t.ts:1:14
""",
        "error: Uncaught (in promise) NotFound: No such file or directory (os error 2): readfile 'x.json'",
    ),
    "bun": (
        """1 | import { z } from "zod";
                       ^
error: Cannot find package "zod" from "/w/tools/t.ts"

Bun v1.1.38 (Linux x64)
""",
        'error: Cannot find package "zod" from "/w/tools/t.ts"',
    ),
    "bun, a script": ('ReferenceError: foo is not defined\n      at t.ts:1:1\nerror: script "x" exited with code 1\n',
                      "ReferenceError: foo is not defined"),
    "go, a panic": (
        """panic: runtime error: index out of range [3] with length 2

goroutine 1 [running]:
main.main()
\t/w/main.go:8 +0x1d
exit status 2
""",
        "panic: runtime error: index out of range [3] with length 2",
    ),
    "go, a build": ("# example.com/x\n./main.go:6:2: undefined: frobnicate\n", "./main.go:6:2: undefined: frobnicate"),
    "bash": ("+ echo hello\n./tool: line 4: jq: command not found\n", "./tool: line 4: jq: command not found"),
    "bash, unset": ("/w/tool: line 3: SRC_TOKEN: unbound variable\n", "/w/tool: line 3: SRC_TOKEN: unbound variable"),
    "bash set -e, after talk": (
        "Fetching the list\ncat: /w/list.txt: No such file or directory\ncleaning up\n",
        "cat: /w/list.txt: No such file or directory",
    ),
    "sh": ("sh: 1: fzf: not found\n", "sh: 1: fzf: not found"),
    "cargo": (
        """   Compiling x v0.1.0 (/w)
error[E0425]: cannot find value `y` in this scope
 --> src/main.rs:2:20
  |
2 |     println!("{}", y);
  |                    ^ not found in this scope

For more information about this error, try `rustc --explain E0425`.
error: could not compile `x` (bin "x") due to 1 previous error
""",
        "error[E0425]: cannot find value `y` in this scope",
    ),
    "rust, a panic": (
        ("thread 'main' panicked at src/main.rs:2:5:\ncalled `Option::unwrap()` on a `None` value\n"
        "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n"),
        "thread 'main' panicked at src/main.rs:2:5: called `Option::unwrap()` on a `None` value",
    ),
    "gcc": ("x.c: In function 'main':\nx.c:3:5: error: 'y' undeclared\nmake: *** [Makefile:2: all] Error 1\n",
            "x.c:3:5: error: 'y' undeclared"),
    "tsc": ("src/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.\n\nFound 1 error.\n",
            "src/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'."),
    "npm": (
        """npm error code E404
npm error 404 Not Found - GET https://registry.example/nope - Not found
npm error 404
npm error A complete log of this run can be found in: /tmp/npm/_logs/x-debug-0.log
""",
        "npm error 404 Not Found - GET https://registry.example/nope - Not found",
    ),
    "uv, no Python": (
        "error: No interpreter found for Python 3.13 in managed installations or search path\n",
        "error: No interpreter found for Python 3.13 in managed installations or search path",
    ),
    "uv, no solution": (
        ("  × No solution found when resolving dependencies:\n  ╰─▶ Because nope was not found in the registry\n"
        "      and you require nope, your requirements are unsatisfiable.\n"),
        "× No solution found when resolving dependencies:",
    ),
    "curl": ("  % Total    % Received\n\r  0 --:--:-- --:--:--     0curl: (6) Could not resolve host: api.example\n",
             "curl: (6) Could not resolve host: api.example"),
    "git": ("fatal: not a git repository (or any of the parent directories): .git\n",
            "fatal: not a git repository (or any of the parent directories): .git"),
    "perl": (
        ("Can't locate JSON/XS.pm in @INC (you may need to install the JSON::XS module) at t.pl line 2.\n"
        "BEGIN failed--compilation aborted at t.pl line 2.\n"),
        "Can't locate JSON/XS.pm in @INC (you may need to install the JSON::XS module) at t.pl line 2.",
    ),
    "perl, die": ("No token at t.pl line 7.\n", "No token at t.pl line 7."),
    "php": (
        ("PHP Fatal error:  Uncaught Error: Call to undefined function foo() in /w/t.php:3\nStack trace:\n#0 {main}\n"
        "  thrown in /w/t.php on line 3\n"),
        "PHP Fatal error:  Uncaught Error: Call to undefined function foo() in /w/t.php:3",
    ),
    "java": ('Exception in thread "main" java.lang.IllegalStateException: no token\n\tat Main.main(Main.java:3)\n',
             'Exception in thread "main" java.lang.IllegalStateException: no token'),
    "a script's own words": ("Looking\nError: city is required. Give a city.\nusage: tool CITY\n",
                             "Error: city is required. Give a city."),
    "colours": ("\x1b[31mError: no such branch\x1b[0m\n\nbye\n", "Error: no such branch"),
}  # fmt: skip


@pytest.mark.parametrize("program", CASES)
def test_the_line_that_tells_is_found(program):
    output, line = CASES[program]
    assert error_or_last_line(output) == line
    assert error_line(output) == line


def test_where_no_line_tells_the_last_one_stands():
    assert error_or_last_line("one\ntwo\n\n") == "two" and error_line("one\ntwo\n") is None
    assert error_or_last_line("") == "" and error_or_last_line("  \n}\n") == "}"


def test_a_long_line_is_cut_and_a_flood_is_bounded():
    assert len(error_or_last_line("Error: " + "x" * 10_000)) == 301
    assert error_or_last_line("noise " * 100_000 + "\n" + "Traceback (most recent call last):\n" * 5_000) != ""
