// A plugin of opencode that hands each event to a program, as its hooks of other agents are called.
// The program's answer: {"deny": reason} or {"args": {...}}, {"crash": true} ends with an exception, nothing is no decision.
import { spawnSync } from "node:child_process"

const ask = (line, given) => {
  const done = spawnSync("/bin/sh", ["-c", line], { input: JSON.stringify(given), encoding: "utf8" })
  return done.stdout ? JSON.parse(done.stdout) : {}
}

export const Recorder = async (context) => ({
  "tool.execute.before": async (input, output) => {
    const answer = ask(`BEFORE`, { ...input, args: output.args, directory: context.directory, worktree: context.worktree })
    if (answer.deny) throw new Error(answer.deny)
    Object.assign(output.args, answer.args ?? {})
  },
  "tool.execute.after": async (input, output) => {
    ask(`AFTER`, { ...input, output, directory: context.directory })
  },
  "permission.ask": async (input, output) => {
    ask(`AFTER`, { permission: input, output })
  },
})
