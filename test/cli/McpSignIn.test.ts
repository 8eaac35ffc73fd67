import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Deferred, Effect, Fiber, Layer, Option, Queue } from "effect"
import { TestClock } from "effect/testing"
import { Agent, ToolRegistry } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { existsSync, mkdtempSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as McpServers from "../../src/cli/agent/McpServers.ts"
import * as McpSignIn from "../../src/cli/agent/McpSignIn.ts"
import * as McpTokens from "../../src/cli/agent/McpTokens.ts"
import * as OAuth from "../mcp/oauth.ts"

const home = mkdtempSync(join(tmpdir(), "sign-in-"))

const services = Layer.merge(
  NodeServices.layer,
  ConfigProvider.layer(ConfigProvider.fromEnv({ env: { EFFECT_AGENT_HOME: home } }))
)

/** The settings with one server. */
const settings = (web: object) => {
  const path = join(mkdtempSync(join(home, "file-")), "mcp.json")
  writeFileSync(path, JSON.stringify({ mcpServers: { web } }))
  return { mcpConfig: Option.some(path), noMcp: false }
}

const browser = (address: string) => Effect.sync(() => void fetch(address).catch(() => undefined))

const face = { show: browser, browser: false }

const reasonOf = (web: object, how: McpSignIn.Face = face) =>
  Effect.map(Effect.flip(McpSignIn.login(settings(web), "web", how)), ({ message }) => message)

describe("a sign-in", () => {
  it.live.each([
    [
      "of another state",
      { answer: (answer: URLSearchParams) => answer.set("state", "other") },
      /^No sign-in to web: the state of the answer is not that of the request\.$/
    ],
    [
      "of another issuer",
      { answer: (answer: URLSearchParams) => answer.set("iss", "https://evil.example") },
      /^No sign-in to web: the answer is not of the issuer http:\/\/127\.0\.0\.1:\d+\.$/
    ],
    [
      "without an issuer, which the server says that it names",
      { answer: (answer: URLSearchParams) => answer.delete("iss") },
      /the answer is not of the issuer/
    ],
    [
      "that is declined",
      {
        answer: (answer: URLSearchParams) => {
          answer.delete("code")
          answer.set("error", "access_denied")
          answer.set("error_description", "not now")
        }
      },
      /^No sign-in to web: it was declined: access_denied, not now\.$/
    ],
    [
      "that is declined in the name of another issuer",
      {
        answer: (answer: URLSearchParams) => {
          answer.set("error", "access_denied")
          answer.set("iss", "https://evil.example")
        }
      },
      /the answer is not of the issuer/
    ],
    ["whose metadata has another issuer", { issuer: "https://evil.example" }, /[Ii]ssuer/],
    [
      "for another resource",
      { resource: "https://evil.example/mcp" },
      /^No sign-in to web: the server says that it is https:\/\/evil\.example\/mcp\.$/
    ],
    ["without a registration", { registers: false }, /registers no programs by itself: .*"clientId"/],
    [
      "whose code is refused",
      { token: { status: 400, body: '{"error":"invalid_grant","error_description":"no"}' } },
      /^No sign-in to web: no\.$/
    ]
  ] as const)("%s fails, and keeps nothing", ([, faults, reason]) =>
    Effect.gen(function* () {
      const oauth = yield* OAuth.serve
      oauth.faults = faults
      const message = yield* reasonOf({ url: oauth.url })
      assert.match(message, reason)
      assert.isUndefined(yield* McpTokens.find({ name: "web", url: oauth.url }))
      for (const secret of oauth.secrets) assert.notInclude(message, secret)
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.live("does not show secrets of the request that a server repeats", () =>
    Effect.gen(function* () {
      const oauth = yield* OAuth.serve
      const repeated = (address: string) =>
        Effect.sync(() => {
          void fetch(address, { redirect: "manual" }).then(({ headers }) => {
            const to = new URL(headers.get("location") ?? "")
            const body = JSON.stringify({
              error: "invalid_grant",
              error_description: to.searchParams.get("code")
            })
            oauth.faults = { token: { status: 400, body } }
            return fetch(to)
          })
        })
      const first = yield* reasonOf({ url: oauth.url }, { show: repeated, browser: false })
      assert.strictEqual(first, "No sign-in to web: ….")
      oauth.faults = { token: { status: 500, body: "the secret of a page" } }
      assert.notInclude(yield* reasonOf({ url: oauth.url }), "page")
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.effect("ends after 5 minutes, with its port", () =>
    Effect.gen(function* () {
      const oauth = yield* OAuth.serve
      const shown = yield* Deferred.make<string>()
      const show = (address: string) => Deferred.succeed(shown, address)
      const late = yield* Effect.forkChild(reasonOf({ url: oauth.url }, { show, browser: false }))
      const address = new URL(yield* Deferred.await(shown))
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual(yield* Fiber.join(late), "No sign-in to web: no answer came within 5 minutes.")
      const back = address.searchParams.get("redirect_uri") ?? ""
      const refused = yield* Effect.flip(Effect.tryPromise(() => fetch(back)))
      assert.match(String(refused.cause), /fetch failed/)
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.live("is not for a program, for credentials in the file, nor for a server that wants none", () =>
    Effect.gen(function* () {
      assert.match(yield* reasonOf({ command: "x" }), /is a program of this machine/)
      const headers = { authorization: "Bearer x" }
      assert.match(yield* reasonOf({ url: "http://127.0.0.1:1/mcp", headers }), /in the headers of the file/)
      const unknown = yield* Effect.flip(McpSignIn.login(settings({ command: "x" }), "wed", face))
      assert.match(unknown.message, /^There is no MCP server "wed"\. Did you mean web\?$/)
      const gone = yield* reasonOf({ url: `http://127.0.0.1:${yield* freePort}/mcp` })
      assert.match(gone, /^No sign-in to web: fetch failed: connect ECONNREFUSED 127\.0\.0\.1:\d+\.$/)
      const oauth = yield* OAuth.serve
      assert.match(yield* reasonOf({ url: `${oauth.origin}/other` }), /the server has none\.$/)
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.live("uses the client of the file, and its port", () =>
    Effect.gen(function* () {
      const oauth = yield* OAuth.serve
      oauth.faults = { registers: false }
      const port = yield* freePort
      oauth.clients.set("own", [`http://127.0.0.1:${port}/callback`])
      const web = { url: oauth.url, oauth: { clientId: "own", port } }
      yield* McpSignIn.login(settings(web), "web", face)
      const found = yield* McpTokens.find({ name: "web", url: oauth.url })
      assert.strictEqual(found?.client.client_id, "own")
      assert.isUndefined(yield* McpTokens.find({ name: "web", url: "https://evil.example/mcp" }))
      assert.isTrue(existsSync(join(home, "mcp-tokens.json")))
    }).pipe(Effect.scoped, Effect.provide(services))
  )
})

const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

describe("the servers of a process", () => {
  it.live(
    "bring the tools of a server to all registries when it is connected again, and take them when it is not",
    () =>
      Effect.gen(function* () {
        const oauth = yield* OAuth.serve
        const given = settings({ url: oauth.url })
        const lines: Array<string> = []
        const servers = yield* McpServers.open(given, "m", (line) => Effect.sync(() => void lines.push(line)))
        const tools = yield* ToolRegistry.make()
        yield* servers.join(tools)
        const other = yield* Effect.scoped(Effect.tap(ToolRegistry.make(), servers.join))
        const names = (registry: typeof tools) =>
          Effect.map(registry.definitions, (definitions) => definitions.map(({ name }) => name))
        assert.deepStrictEqual(yield* servers.list, [{ name: "web", state: "needs sign-in" }])
        assert.deepStrictEqual(lines, ["web needs sign-in: effect-agent mcp login web"])
        yield* McpSignIn.login(given, "web", face)
        assert.deepStrictEqual(yield* servers.reconnect("web"), { name: "web", state: "connected", tools: 1 })
        assert.deepStrictEqual(yield* names(tools), ["mcp__web__now"])
        assert.deepStrictEqual(yield* names(other), [])
        const later = yield* ToolRegistry.make()
        yield* servers.join(later)
        assert.deepStrictEqual(yield* names(later), ["mcp__web__now"])
        assert.isTrue(yield* McpSignIn.logout(given, "web"))
        assert.deepStrictEqual(yield* servers.reconnect("web"), { name: "web", state: "needs sign-in" })
        assert.deepStrictEqual([yield* names(tools), yield* names(later)], [[], []])
        const unknown = yield* Effect.flip(servers.reconnect("wed"))
        assert.match(unknown.message, /Did you mean web\?$/)
      }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.live("say that a server no longer takes its tokens, and come back by themselves after a sign-in", () =>
    Effect.gen(function* () {
      const oauth = yield* OAuth.serve
      const given = settings({ url: oauth.url })
      yield* McpSignIn.login(given, "web", face)
      const said = yield* Queue.unbounded<string>()
      const servers = yield* McpServers.open(given, "m", (line) => Queue.offer(said, line))
      const agent = yield* Agent.make({ model: "m" }).pipe(
        Effect.provide(
          ScriptedProvider.layer([
            ScriptedProvider.toolCall("mcp__web__now", {}),
            ScriptedProvider.text("no")
          ])
        )
      )
      yield* servers.join(agent.tools)
      oauth.valid.clear()
      oauth.faults = { token: { status: 503, body: '{"error":"temporarily_unavailable"}' } }
      yield* agent.prompt("Which time is it?")
      assert.notInclude(JSON.stringify(yield* servers.list), "sign-in")
      oauth.faults = { token: { status: 400, body: '{"error":"invalid_grant"}' } }
      assert.strictEqual(yield* Queue.take(said), "web needs sign-in: effect-agent mcp login web")
      assert.deepStrictEqual(yield* servers.list, [{ name: "web", state: "needs sign-in" }])
      oauth.faults = {}
      yield* McpSignIn.login(given, "web", face)
      const isBack = Effect.map(servers.list, ([status]) => status?.state === "connected")
      yield* Effect.repeat(Effect.delay(isBack, "20 millis"), { until: (isBack) => isBack, times: 500 })
      assert.deepStrictEqual(yield* servers.list, [{ name: "web", state: "connected", tools: 1 }])
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.live("are off with --no-mcp", () =>
    Effect.gen(function* () {
      const servers = yield* McpServers.open(
        { ...settings({ command: "x" }), noMcp: true },
        "m",
        () => Effect.void
      )
      yield* servers.settled
      assert.deepStrictEqual(
        (yield* servers.list).map((status) => McpServers.lineOf(status, "/mcp login")),
        ["web · off"]
      )
    }).pipe(Effect.scoped, Effect.provide(services))
  )
})
