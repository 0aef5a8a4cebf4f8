// Made by `gitcp install pi`; `gitcp uninstall pi` takes it out again.
//
// Calls gitcp as a session begins and ends, before each prompt, before each command, after each tool and when
// a turn has ended. It never fails, and Pi waits no longer than LIMIT; GITCP_DISABLE=1 turns
// it off. What went wrong is in .git/gitcp/hooks.log of the project.
import { spawn } from "node:child_process"
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const COMMANDS = {}
const LIMIT = 15000

// The input is a private file: a pipe would break where Pi ends first.
const input = (text) => {
  const folder = mkdtempSync(join(tmpdir(), "gitcp-"))
  try {
    const path = join(folder, "event.json")
    writeFileSync(path, text, { mode: 0o600 })
    return openSync(path, "r")
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

// One after the other: a session may end before the hook for its last turn does.
let last = Promise.resolve()
const call = (hook, ctx, payload) => {
  last = last.then(() => run(hook, ctx, payload))
  return last
}

const run = (hook, ctx, payload) =>
  new Promise((done) => {
    let file
    try {
      if ((process.env.GITCP_DISABLE ?? "0") !== "0") return done("")
      const transcript = ctx.sessionManager.getSessionFile()
      // A session that Pi does not keep cannot be kept here.
      if (!transcript) return done("")
      const common = {
        session_id: ctx.sessionManager.getSessionId(),
        transcript_path: transcript,
        cwd: ctx.cwd,
      }
      file = input(JSON.stringify({ ...common, ...payload }))
      const child = spawn("/bin/sh", ["-c", COMMANDS[hook]], {
        cwd: ctx.cwd,
        detached: true,
        stdio: [file, "pipe", "ignore"],
      })
      let said = ""
      child.stdout.on("data", (part) => {
        if (said.length < 65536) said += part
      })
      const timer = setTimeout(() => done(""), LIMIT)
      const end = () => {
        clearTimeout(timer)
        done(said)
      }
      child.on("close", end)
      child.on("error", end)
      child.unref()
    } catch {
      done("")
    } finally {
      if (file !== undefined) closeSync(file)
    }
  })

const texts = (content) =>
  typeof content === "string"
    ? content
    : (content ?? []).filter((part) => part.type === "text").map((part) => part.text).join("")

export default function (pi) {
  // What the model is told as the session begins waits for its first prompt.
  let waiting = ""
  const on = (event, work) =>
    pi.on(event, async (given, ctx) => {
      try {
        return await work(given, ctx)
      } catch {}
    })

  on("session_start", async (given, ctx) => {
    waiting = await call("session_start", ctx, { source: given.reason })
  })
  on("before_agent_start", async (given, ctx) => {
    const said = await call("before_agent_start", ctx, { prompt: given.prompt })
    const content = [waiting, said].filter(Boolean).join("\n\n")
    waiting = ""
    if (content) return { message: { customType: "gitcp", content, display: true } }
  })
  on("tool_call", async (given, ctx) => {
    const command = given.input?.command
    if (typeof command !== "string") return
    await call("tool_call", ctx, { tool_name: given.toolName, tool_input: { command } })
  })
  on("tool_result", async (given, ctx) => {
    await call("tool_result", ctx, { tool_name: given.toolName })
  })
  on("agent_end", async (given, ctx) => {
    const answer = (given.messages ?? []).filter((one) => one.role === "assistant").pop()
    await call("agent_end", ctx, { last_assistant_message: texts(answer?.content) })
  })
  on("session_before_compact", async (given, ctx) => {
    await call("session_before_compact", ctx, {})
  })
  on("session_shutdown", async (given, ctx) => {
    await call("session_shutdown", ctx, { reason: given.reason })
  })
}
