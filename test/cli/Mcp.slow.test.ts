import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"
import { program as mcpServer } from "../mcp/servers.ts"
import { bundled, calls, folder, run, says, server } from "./program.ts"

bundled()

/** A model that calls one tool, and then says its result. */
const caller = (name: string, params: object) =>
  Effect.map(
    server((_, body, response) => {
      const { messages, tools = [] } = JSON.parse(body)
      const result = messages.at(-1)
      if (result.role === "tool") return says(response, [JSON.stringify([result.content, tools.length])])
      return calls(response, name, params)
    }),
    (url) => ["--model", "openai-chat/m", "--base-url", `${url}/v1`, "--no-session"]
  )

const configured = (mcpServers: object, more: Readonly<Record<string, string>> = {}) => {
  const cwd = folder({ "mcp.json": JSON.stringify({ mcpServers }), ...more })
  return { cwd, flags: ["--mcp-config", join(cwd, "mcp.json")] }
}

const ask = (model: ReadonlyArray<string>, flags: ReadonlyArray<string>, cwd: string) =>
  run([...model, ...flags, "go"], { cwd, env: { OPENAI_API_KEY: "sk-test" } })

describe("--mcp-config", () => {
  it.live(
    "lets the model call the tools of a server with --allow, and those that change nothing without it where their hints count",
    () =>
      Effect.gen(function* () {
        const files = mcpServer("filesystem", ".")
        const claimed = configured({ files }, { "note.txt": "a note" })
        const { cwd, flags } = configured({ files: { ...files, trustHints: true } }, { "note.txt": "a note" })
        const reader = yield* caller("mcp__files__read_text_file", { path: "note.txt" })
        const read = yield* ask(reader, flags, cwd)
        assert.include(read.stdout, "a note")
        const unasked = yield* ask(reader, claimed.flags, claimed.cwd)
        assert.include(unasked.stderr, "it needs approval, as no option allows it")
        const without = yield* ask(reader, [...flags, "--no-mcp"], cwd)
        assert.notInclude(without.stdout, "a note")
        const writer = yield* caller("mcp__files__write_file", { path: "new.txt", content: "new" })
        const refused = yield* ask(writer, flags, cwd)
        assert.include(refused.stderr, "it needs approval, as no option allows it")
        const allowed = yield* ask(writer, [...flags, "--allow", "mcp__files__write_file"], cwd)
        assert.include(allowed.stdout, "Successfully wrote")
        const denied = yield* ask(reader, [...flags, "--yes", "--deny", "mcp__files__read_text_file"], cwd)
        assert.notInclude(denied.stdout, "a note")
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "names what is wrong with a file, and goes on without a server that does not start",
    () =>
      Effect.gen(function* () {
        const model = yield* caller("mcp__gone__x", {})
        const cwd = folder({
          "bad.json": "{",
          "none.json": JSON.stringify({ mcpServers: { empty: {} } }),
          "wrong.json": JSON.stringify({ mcpServers: { bad: { command: 1 } } }),
          "unset.json": JSON.stringify({
            mcpServers: { web: { url: "http://127.0.0.1:9", headers: { a: "Bearer ${NO_SUCH_TOKEN}" } } }
          })
        })
        for (const [file, fault] of [
          ["bad.json", "not JSON"],
          ["none.json", 'the server "empty" needs a command or a url'],
          ["wrong.json", "command"],
          ["unset.json", 'the server "web" needs NO_SUCH_TOKEN, which the environment does not have'],
          ["missing.json", "missing.json"]
        ] as const) {
          const { code, stderr } = yield* ask(model, ["--mcp-config", file], cwd)
          assert.deepStrictEqual([code, stderr.includes(fault)], [2, true], stderr)
        }
        const gone = configured({ gone: { command: "/no/such/program" } })
        const { code, stderr } = yield* ask(model, gone.flags, gone.cwd)
        assert.include(stderr, "The MCP server gone is not connected: spawn /no/such/program ENOENT")
        assert.strictEqual(code, 0)
        const needed = configured({ gone: { command: "/no/such/program", required: true } })
        assert.strictEqual((yield* ask(model, needed.flags, needed.cwd)).code, 2)
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "does not count in the configuration of a project that the user does not trust",
    () =>
      Effect.gen(function* () {
        const model = yield* caller("mcp__files__read_text_file", { path: "note.txt" })
        const cwd = folder({
          ".git/HEAD": "",
          "note.txt": "a note",
          "mcp.json": JSON.stringify({
            mcpServers: { files: { ...mcpServer("filesystem", "."), trustHints: true } }
          }),
          ".effect-agent/config.json": JSON.stringify({ mcpConfig: "mcp.json" })
        })
        const untrusted = yield* ask(model, [], cwd)
        assert.include(untrusted.stderr, "does not count for mcpConfig until you trust it")
        assert.notInclude(untrusted.stdout, "a note")
        yield* run(["config", "--trust"], { cwd })
        assert.include((yield* ask(model, [], cwd)).stdout, "a note")
      }).pipe(Effect.scoped),
    120_000
  )
})
