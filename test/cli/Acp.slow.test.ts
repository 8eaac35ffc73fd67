import { assert, describe, it } from "@effect/vitest"
import { type ClientContext, methods, ndJsonStream } from "@agentclientprotocol/sdk"
import { Effect } from "effect"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Writable } from "node:stream"
import * as Editor from "../acp/editor.ts"
import { program as mcpServer } from "../mcp/servers.ts"
import * as Program from "./program.ts"

Program.bundled()

const ignore = () => {}

/** An editor that starts the program, as long as `work` takes. */
const edit = <A>(
  {
    answers = {},
    args = [],
    cwd,
    env = {}
  }: {
    answers?: Editor.Answers
    args?: ReadonlyArray<string>
    cwd?: string
    env?: Readonly<Record<string, string>>
  },
  work: (agent: ClientContext, seen: Editor.Seen, running: Program.Running) => Promise<A>
) =>
  Effect.acquireUseRelease(
    Effect.sync(() =>
      Program.start(["acp", ...(args.includes("--model") ? [] : ["--model", "local/rules"]), ...args], {
        stdin: "open",
        env: { OPENAI_API_KEY: "sk-test", ...env },
        ...(cwd === undefined ? {} : { cwd })
      })
    ),
    (running) =>
      Effect.promise(async () => {
        const { stdin, stdout } = running.child
        if (stdin === null || stdout === null) throw new Error("no pipes")
        const { app, seen } = Editor.editor(answers)
        const { readable, writable } = new TransformStream<Uint8Array>()
        const writer = writable.getWriter()
        // `program.ts` decodes the pipe.
        stdout.on("data", (text: string) => void writer.write(new TextEncoder().encode(text)).catch(ignore))
        stdout.once("end", () => void writer.close().catch(ignore))
        const stream = ndJsonStream(Writable.toWeb(stdin), readable)
        const result = await app.connectWith(stream, async (agent) => {
          await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} })
          return work(agent, seen, running)
        })
        stdin.end()
        return { result, seen, ended: await running.ended }
      }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

const begin = async (agent: ClientContext, cwd: string) =>
  (await agent.request(methods.agent.session.new, { cwd, mcpServers: [] })).sessionId

const results = (seen: Editor.Seen) =>
  [...Editor.shown(seen.updates).calls.values()].map(({ status, title }) => `${status}: ${title}`)

describe("effect-agent acp", () => {
  it.effect("works in the folder of the session, asks, and writes only the protocol to stdout", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({ "notes.txt": "hello" })
      const { ended, result, seen } = yield* edit({}, async (agent) => {
        const sessionId = await begin(agent, cwd)
        return Editor.ask(agent, sessionId, "run touch made.txt")
      })
      assert.strictEqual(result.stopReason, "end_turn")
      assert.deepStrictEqual(results(seen), ["completed: shell touch made.txt"])
      assert.deepStrictEqual(
        seen.permissions.map(({ options, toolCall }) => [toolCall.kind, options.map(({ name }) => name)]),
        [["execute", ["Allow", "Always allow this command", "Reject"]]]
      )
      assert.isTrue(existsSync(join(cwd, "made.txt")))
      assert.strictEqual(ended.code, 0)
      assert.include(ended.stderr, "Model: local/rules")
      for (const line of ended.stdout.trim().split("\n")) assert.strictEqual(JSON.parse(line).jsonrpc, "2.0")
    })
  )

  it.effect("runs the command hooks of the folder of each session (P-70)", () =>
    Effect.gen(function* () {
      const hooks = (command: string) =>
        JSON.stringify({
          hooks: { PreToolUse: [{ matcher: "shell", hooks: [{ type: "command", command }] }] }
        })
      const cwd = Program.folder({
        ".effect-agent/config.json": hooks("pwd > where; echo not here >&2; exit 2")
      })
      const other = Program.folder({})
      const config = Program.folder({
        "effect-agent/config.json": hooks('cat > "$HOME/seen"')
      })
      const env = { XDG_CONFIG_HOME: config, HOME: config }
      assert.strictEqual((yield* Program.run(["config", "--trust"], { cwd, env })).code, 0)
      const { result, seen } = yield* edit({ args: ["--yes"], env }, async (agent) => {
        const first = await begin(agent, cwd)
        await Editor.ask(agent, first, "run touch made.txt")
        const second = await begin(agent, other)
        await Editor.ask(agent, second, "run touch made.txt")
        return first
      })
      assert.deepStrictEqual(
        [existsSync(join(cwd, "made.txt")), existsSync(join(other, "made.txt"))],
        [false, true]
      )
      assert.strictEqual(readFileSync(join(cwd, "where"), "utf8"), `${cwd}\n`)
      assert.include(JSON.stringify(seen.updates), "refused by hook: not here")
      const input = JSON.parse(readFileSync(join(config, "seen"), "utf8"))
      assert.notStrictEqual(input.session_id, result)
      assert.deepStrictEqual([input.cwd, input.permission_mode], [other, "bypassPermissions"])
    })
  )

  it.effect("keeps sessions, which another start loads, and obeys --deny and --yes", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({ "notes.txt": "hello" })
      const args = ["--session-dir", join(cwd, "sessions")]
      const first = yield* edit({ args: [...args, "--yes"] }, async (agent) => {
        const sessionId = await begin(agent, cwd)
        await Editor.ask(agent, sessionId, "read notes.txt")
        await Editor.ask(agent, sessionId, "run touch made.txt")
        return sessionId
      })
      assert.lengthOf(first.seen.permissions, 0)
      const second = yield* edit({ args: [...args, "--deny", "shell"] }, async (agent, seen) => {
        const { sessions } = await agent.request(methods.agent.session.list, { cwd })
        await agent.request(methods.agent.session.load, { sessionId: first.result, cwd, mcpServers: [] })
        const loaded = results(seen)
        seen.updates.length = 0
        await Editor.ask(agent, first.result, "run touch more.txt")
        return { ids: sessions.map(({ sessionId }) => sessionId), loaded }
      })
      assert.deepStrictEqual(second.result.ids, [first.result])
      assert.deepStrictEqual(second.result.loaded, results(first.seen))
      assert.deepStrictEqual(results(second.seen), ["failed: shell touch more.txt"])
      assert.isFalse(existsSync(join(cwd, "more.txt")))
    })
  )

  it.effect("has the tools of the MCP servers of the editor", () =>
    Effect.gen(function* () {
      const model = yield* Program.server((_, body, response) => {
        const { messages } = JSON.parse(body)
        const result = messages.at(-1)
        if (result.role === "tool") return Program.says(response, [String(result.content)])
        return Program.calls(response, "mcp__all__echo", { message: "hi" })
      })
      const cwd = Program.folder({})
      const { seen } = yield* edit(
        { args: ["--model", "openai-chat/m", "--base-url", `${model}/v1`, "--no-session"] },
        async (agent) => {
          const { args, command } = mcpServer("everything", "stdio")
          const { sessionId } = await agent.request(methods.agent.session.new, {
            cwd,
            mcpServers: [{ name: "all", command, args: [...args], env: [] }]
          })
          await Editor.ask(agent, sessionId, "go")
        }
      )
      assert.include([...Editor.shown(seen.updates).messages.values()].join(), "Echo: hi")
    }).pipe(Effect.scoped)
  )

  it.effect("ends when the editor leaves in the middle of a request", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const { ended } = yield* edit(
        { answers: { permission: () => new Promise(() => {}) } },
        async (agent, seen) => {
          const sessionId = await begin(agent, cwd)
          void Editor.ask(agent, sessionId, "run touch made.txt").catch(() => undefined)
          await Editor.until(() => seen.permissions.length > 0)
        }
      )
      assert.strictEqual(ended.code, 0)
      assert.isFalse(existsSync(join(cwd, "made.txt")))
    })
  )

  it.effect("ends with 143 at SIGTERM, and with 2 for flags that choose a session", () =>
    Effect.gen(function* () {
      const ended = yield* Effect.acquireUseRelease(
        Effect.sync(() => Program.start(["acp", "--model", "local/rules"], { stdin: "open" })),
        ({ child, ended }) =>
          Effect.promise(async () => {
            const params = { protocolVersion: 1, clientCapabilities: {} }
            child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`)
            if (child.stdout !== null) await once(child.stdout, "data")
            child.kill("SIGTERM")
            return ended
          }),
        ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
      )
      assert.strictEqual(ended.code, 143)
      const { code, stderr, stdout } = yield* Program.run(["acp", "--continue"])
      assert.deepStrictEqual([code, stdout], [2, ""])
      assert.include(stderr, "--continue")
    })
  )
})
