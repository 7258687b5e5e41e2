// Written by `haft connect opencode --hooks`, and removed by `haft connect opencode --remove`.
// opencode loads this plugin at its start. Before and after each tool, the plugin starts haft's hook and obeys its
// answer. If the hook fails, hangs or is missing, the call is denied.
import { spawn } from "node:child_process"

const command = "COMMAND"
const environment = "ENVIRONMENT"
const seconds = "SECONDS"

function ask(given) {
  return new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`haft denied this call, because its hook could not decide: ${why}`))
    let out = "", err = ""
    const hook = spawn(command[0], command.slice(1), {
      cwd: given.directory, env: { ...process.env, ...environment }, stdio: ["pipe", "pipe", "pipe"],
    })
    const timer = setTimeout(() => { hook.kill("SIGKILL"); fail(`it did not end within ${seconds} seconds`) }, seconds * 1000)
    hook.on("error", (error) => { clearTimeout(timer); fail(error.message) })
    hook.stdin.on("error", () => {})
    hook.stdout.on("data", (data) => { out += data })
    hook.stderr.on("data", (data) => { err += data })
    hook.on("close", (code) => {
      clearTimeout(timer)
      if (code !== 0) return err.trim() ? reject(new Error(err.trim())) : fail(`it ended with code ${code}`)
      try {
        const answer = out.trim() ? JSON.parse(out) : {}
        return answer.deny ? reject(new Error(answer.deny)) : resolve(answer)
      } catch {
        return fail("its answer is not JSON")
      }
    })
    hook.stdin.end(JSON.stringify(given))
  })
}

export const Haft = async ({ directory, worktree }) => ({
  "tool.execute.before": async (input, output) => {
    const answer = await ask({ hook_event_name: "tool.execute.before", ...input, args: output.args, directory, worktree })
    // opencode ignores a new `args` object: the values must be put into the old one.
    Object.assign(output.args, answer.args ?? {})
  },
  "tool.execute.after": async (input, output) => {
    await ask({ hook_event_name: "tool.execute.after", ...input, output, directory, worktree }).catch(() => {})
  },
})
