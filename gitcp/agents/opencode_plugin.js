// Made by `gitcp install opencode`; `gitcp uninstall opencode` takes it out again.
//
// Calls gitcp before each prompt, before each command, after each tool and when a turn has ended. It never
// fails, and OpenCode waits no longer than LIMIT; GITCP_DISABLE=1 turns it off. What went
// wrong is in .git/gitcp/hooks.log of the project.
import { spawn } from "node:child_process"
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const COMMANDS = {}
const LIMIT = 15000

// The input is a private file: a pipe would break where OpenCode ends first.
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

const call = (hook, payload, directory) =>
  new Promise((done) => {
    let file
    try {
      if ((process.env.GITCP_DISABLE ?? "0") !== "0") return done()
      file = input(JSON.stringify({ ...payload, cwd: directory }))
      const child = spawn("/bin/sh", ["-c", COMMANDS[hook]], {
        cwd: directory,
        detached: true,
        stdio: [file, "pipe", "ignore"],
      })
      let said = ""
      child.stdout.on("data", (part) => {
        if (said.length < 4096) said += part
      })
      const timer = setTimeout(done, LIMIT)
      const end = () => {
        clearTimeout(timer)
        done(said)
      }
      child.on("close", end)
      child.on("error", end)
      child.stdout.unref?.()
      child.unref()
    } catch {
      done()
    } finally {
      if (file !== undefined) closeSync(file)
    }
  })

// Each message as the text it is, so that nothing on the way parses it again.
const conversation = async (client, id) => {
  const [session, messages] = await Promise.all([
    client.session.get({ path: { id } }),
    client.session.messages({ path: { id } }),
  ])
  return {
    session: JSON.stringify(session.data),
    messages: (messages.data ?? []).map((one) => JSON.stringify(one)),
  }
}

const quietly = (work) => async (...given) => {
  try {
    await work(...given)
  } catch {}
}

export const Gitcp = async ({ client, directory }) => ({
  "chat.message": quietly(async (given, made) => {
    const id = given.sessionID
    const words = (made.parts ?? []).filter((part) => part.type === "text")
    const said = await call(
      "chat.message",
      {
        session_id: id,
        prompt_id: made.message?.id,
        prompt: words.map((part) => part.text).join("\n"),
        ...(await conversation(client, id)),
      },
      directory,
    )
    // gitcp says something only if nothing is being saved.
    if (said)
      await client.tui.showToast({
        body: { title: "gitcp", message: said, variant: "warning", duration: 15000 },
      })
  }),
  "tool.execute.before": quietly(async (given, made) => {
    const command = made?.args?.command
    if (typeof command !== "string") return
    const id = given.sessionID
    const session = await client.session.get({ path: { id } })
    await call(
      "tool.execute.before",
      { session_id: id, tool: given.tool, command, session: JSON.stringify(session.data) },
      directory,
    )
  }),
  // What the agent records in its shell belongs to this conversation.
  "shell.env": quietly(async (given, made) => {
    const id = given.sessionID
    if (typeof id !== "string" || !made?.env) return
    made.env.GITCP_OPENCODE_SESSION = id
    const session = await client.session.get({ path: { id } })
    made.env.GITCP_OPENCODE_SESSION = session.data?.parentID ?? id
  }),
  "tool.execute.after": quietly(async (given) => {
    const id = given.sessionID
    // It says whether it is a subagent's.
    const session = await client.session.get({ path: { id } })
    await call(
      "tool.execute.after",
      { session_id: id, tool: given.tool, session: JSON.stringify(session.data) },
      directory,
    )
  }),
  event: quietly(async ({ event }) => {
    if (event.type !== "session.idle") return
    const id = event.properties.sessionID
    await call(
      "session.idle",
      { session_id: id, ...(await conversation(client, id)) },
      directory,
    )
  }),
})
