"""A hook that writes down what an agent gave it, and answers as a test says.

    hook_recorder.py LOG before|after [ANSWERS]

LOG gets one JSON line for each call: the words on stdin, the folder, and the agent's own variables. ANSWERS is a
JSON file: for a word in the input of a before-event, an object with `stdout`, `stderr`, `status`, `seconds` to wait
before it answers, `hold` to wait after it, `kill`.
"""

import json
import os
import signal
import sys
import time

raw = sys.stdin.read()
try:
    given = json.loads(raw)
except ValueError:
    given = {"unreadable": raw}
own = ("CLAUDE", "GEMINI", "CODEX", "OPENCODE", "AI_AGENT")
seen = {
    "event": sys.argv[2],
    "stdin": given,
    "cwd": os.getcwd(),
    "variables": sorted(name for name in os.environ if name.startswith(own)),
}
with open(sys.argv[1], "a") as log:
    log.write(json.dumps(seen) + "\n")
answers = {}
if len(sys.argv) > 3 and os.path.exists(sys.argv[3]):
    with open(sys.argv[3]) as file:
        answers = json.load(file)
found = [answers[word] for word in answers if word in raw and sys.argv[2] == "before"]
answer = found[0] if found else {}
time.sleep(answer.get("seconds", 0))
if answer.get("kill"):
    os.kill(os.getpid(), signal.SIGKILL)
print(answer.get("stderr", ""), end="", file=sys.stderr)
print(answer.get("stdout", ""), end="")
sys.stdout.flush()
time.sleep(answer.get("hold", 0))
sys.exit(answer.get("status", 0))
