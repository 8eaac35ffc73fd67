import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { Effect, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { program as mcpServer } from "../mcp/servers.ts"
import * as Program from "./program.ts"

Program.bundled()

/** The official client of the program, which it starts in the folder. */
const connected = (
  cwd: string,
  args: ReadonlyArray<string> = [],
  mode: "legacy" | "auto" = "legacy"
): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } })
      const [command = "", ...own] = Program.command([
        "mcp",
        ...(args.includes("--model") ? [] : ["--model", "local/rules"]),
        ...args
      ])
      await client.connect(
        new StdioClientTransport({
          command,
          args: own,
          cwd,
          env: { ...Program.environment, OPENAI_API_KEY: "sk-test" },
          stderr: "ignore"
        })
      )
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

const call = (client: Client, name: string, params: Record<string, unknown>) =>
  Effect.map(
    Effect.promise(() => client.callTool({ name, arguments: params })),
    ({ content, isError }) => ({
      isError: isError === true,
      text: content.map((block) => (block.type === "text" ? block.text : block.type)).join("\n")
    })
  )

const asked = (client: Client, prompt: string) => call(client, "agent", { prompt })

const line = (id: number | undefined, method: string, params: object) =>
  `${JSON.stringify({ jsonrpc: "2.0", ...(id === undefined ? {} : { id }), method, params })}\n`

const hello =
  line(1, "initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "test", version: "1.0.0" }
  }) + line(undefined, "notifications/initialized", {})

describe("effect-agent mcp", () => {
  for (const mode of ["legacy", "auto"] as const) {
    it.effect(`reads without a flag, and names the flag for what changes something (${mode})`, () =>
      Effect.gen(function* () {
        const cwd = Program.folder({ "notes.txt": "hello" })
        const client = yield* connected(cwd, [], mode)
        const { tools } = yield* Effect.promise(() => client.listTools())
        assert.includeMembers(
          tools.map(({ name }) => name),
          ["read", "write", "edit", "list", "find", "grep", "shell", "agent"]
        )
        assert.notInclude(
          tools.map(({ name }) => name),
          "ask_user"
        )
        const read = yield* call(client, "read", { path: "notes.txt" })
        assert.isFalse(read.isError)
        assert.include(read.text, "hello")
        const refused = yield* call(client, "write", { path: "made.txt", content: "x" })
        assert.isTrue(refused.isError)
        assert.include(refused.text, "To let it run give --allow write, or --yes for every tool.")
        assert.isFalse(existsSync(join(cwd, "made.txt")))
        const answer = yield* asked(client, "read notes.txt")
        assert.isFalse(answer.isError)
        assert.include(answer.text, "hello")
        yield* asked(client, "run touch made.txt")
        assert.isFalse(existsSync(join(cwd, "made.txt")))
      }).pipe(Effect.scoped)
    )
  }

  it.effect("obeys --allow, --yes, --deny and --tools, in tools and in the agent", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({ "notes.txt": "hello" })
      const allowing = yield* connected(cwd, ["--allow", "write", "--tools", "read,write"])
      assert.isFalse((yield* call(allowing, "write", { path: "made.txt", content: "x" })).isError)
      assert.isTrue(existsSync(join(cwd, "made.txt")))
      const { tools } = yield* Effect.promise(() => allowing.listTools())
      assert.sameMembers(
        tools.map(({ name }) => name),
        ["read", "write", "agent"]
      )
      const denying = yield* connected(cwd, ["--yes", "--deny", "read,shell(rm)"])
      const read = yield* call(denying, "read", { path: "notes.txt" })
      assert.deepStrictEqual(read, {
        isError: true,
        text: "Tool execution was rejected: --deny forbids it"
      })
      assert.isTrue((yield* call(denying, "shell", { command: "rm made.txt" })).isError)
      assert.isTrue(existsSync(join(cwd, "made.txt")))
      assert.isFalse((yield* call(denying, "shell", { command: "touch more.txt" })).isError)
      yield* asked(denying, "run touch again.txt")
      assert.isTrue(existsSync(join(cwd, "again.txt")))
    }).pipe(Effect.scoped)
  )

  it.effect("has the tools of other servers, keeps sessions of prompts, and says why a run failed", () =>
    Effect.gen(function* () {
      const model = yield* Program.server((_, body, response) => {
        const { messages } = JSON.parse(body)
        const last = messages.at(-1)
        if (last.role === "tool") return Program.says(response, [String(last.content)])
        if (String(last.content).includes("fail")) {
          response.writeHead(401, { "content-type": "application/json" })
          return response.end(JSON.stringify({ error: { message: "The key is not valid" } }))
        }
        return Program.calls(response, "mcp__all__echo", { message: "hi" })
      })
      const cwd = Program.folder({
        "mcp.json": JSON.stringify({ mcpServers: { all: mcpServer("everything", "stdio") } })
      })
      const place = ["--session-dir", join(cwd, "sessions")]
      const client = yield* connected(cwd, [
        ...place,
        "--mcp-config=mcp.json",
        "--allow=mcp__all__echo",
        "--model",
        "openai-chat/m",
        `--base-url=${model}/v1`
      ])
      const echo = yield* call(client, "mcp__all__echo", { message: "there" })
      assert.deepStrictEqual(echo, { isError: false, text: "Echo: there" })
      assert.include((yield* asked(client, "go")).text, "Echo: hi")
      const failed = yield* asked(client, "fail")
      assert.isTrue(failed.isError)
      assert.match(failed.text, /^The agent failed: .*key is not valid/s)
      const listed = yield* Program.run(["sessions", "--json", ...place], { cwd })
      assert.lengthOf(JSON.parse(listed.stdout).items, 2)
    }).pipe(Effect.scoped)
  )

  it.effect("writes only the protocol to stdout, answers what is piped in, and exits with 0 at its end", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({ "notes.txt": "hello" })
      const { code, stderr, stdout } = yield* Program.run(["mcp", "--model", "local/rules", "--verbose"], {
        cwd,
        stdin:
          hello +
          line(2, "tools/list", {}) +
          line(3, "tools/call", { name: "read", arguments: { path: "notes.txt" } }) +
          line(4, "tools/call", { name: "agent", arguments: { prompt: "read notes.txt" } })
      })
      const answers = stdout
        .trim()
        .split("\n")
        .map((text): { id: number; jsonrpc: string; result?: object } => JSON.parse(text))
      assert.deepStrictEqual(answers.map(({ id }) => id).sort(), [1, 2, 3, 4])
      for (const { jsonrpc, result } of answers)
        assert.deepStrictEqual([jsonrpc, typeof result], ["2.0", "object"])
      assert.strictEqual(code, 0)
      assert.include(stderr, "Model: local/rules")
      const nothing = yield* Program.run(["mcp", "--model", "local/rules"], { cwd, stdin: "" })
      assert.deepStrictEqual([nothing.code, nothing.stdout], [0, ""])
    })
  )

  it.effect("interrupts the command of a call that the client cancels", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const client = yield* connected(cwd, ["--yes", "--sandbox", "off"])
      const controller = new AbortController()
      const command = "touch begun; sleep 61; touch made"
      const calling = client
        .callTool({ name: "shell", arguments: { command } }, { signal: controller.signal })
        .catch(() => "aborted")
      const begun = Effect.sync(() => existsSync(join(cwd, "begun")))
      yield* Effect.repeat(TestClock.withLive(Effect.delay(begun, "20 millis")), { until: (is) => is })
      controller.abort()
      assert.strictEqual(yield* Effect.promise(() => calling), "aborted")
      const { text } = yield* call(client, "shell", {
        command: "pgrep -f 'sleep 61; touch ma[d]e' || echo none"
      })
      assert.include(text, "none")
    }).pipe(Effect.scoped)
  )

  it.effect("ends with 0 when the client leaves in the middle of a call", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const { code } = yield* Program.run(["mcp", "--model", "local/rules", "--yes"], {
        cwd,
        stdin:
          hello + line(2, "tools/call", { name: "shell", arguments: { command: "sleep 60; touch made" } })
      })
      assert.strictEqual(code, 0)
      assert.isFalse(existsSync(join(cwd, "made")))
    })
  )

  it.effect("ends with 143 at SIGTERM, and with 2 for flags that choose a session", () =>
    Effect.gen(function* () {
      const ended = yield* Effect.acquireUseRelease(
        Effect.sync(() => Program.start(["mcp", "--model", "local/rules"], { stdin: "open" })),
        ({ child, ended }) =>
          Effect.promise(async () => {
            child.stdin?.write(hello)
            if (child.stdout !== null) await once(child.stdout, "data")
            child.kill("SIGTERM")
            return ended
          }),
        ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
      )
      assert.strictEqual(ended.code, 143)
      for (const flags of [["--continue"], ["--resume", "x"], ["--fork", "x"], ["--name", "x"]]) {
        const { code, stderr, stdout } = yield* Program.run(["mcp", ...flags])
        assert.deepStrictEqual([code, stdout], [2, ""])
        assert.include(stderr, `Unrecognized flag: ${flags[0]}`)
      }
    })
  )
})
