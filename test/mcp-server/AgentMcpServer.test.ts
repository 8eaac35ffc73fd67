import { assert, describe, it } from "@effect/vitest"
import type { Client } from "@modelcontextprotocol/client"
import { Deferred, Effect, Layer, Schema, type Scope } from "effect"
import { HttpRouter } from "effect/http"
import { TestClock } from "effect/testing"
import { Agent, Approval, Message, Tool, ToolRegistry } from "effect-agent"
import { AgentMcpServer } from "effect-agent/mcp"
import { ScriptedProvider } from "effect-agent/testing"
import { connected, type Mode } from "./serving.ts"

const modes: ReadonlyArray<Mode> = ["legacy", "auto"]

const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const add = Tool.make({
  name: "add",
  label: "Sum",
  description: "Adds.",
  effect: "pure",
  params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  success: Schema.Struct({ sum: Schema.Finite }),
  execute: ({ a, b }) =>
    Effect.gen(function* () {
      const { progress } = yield* Tool.ToolContext
      yield* progress(Tool.output("adding"))
      yield* progress(Tool.output("still adding"))
      return { sum: a + b }
    })
})

const draw = Tool.make({
  name: "draw",
  description: "Draws.",
  effect: "idempotent",
  execute: () =>
    Effect.succeed(
      Tool.output([Message.text("a pixel"), Message.image(pixel, "image/png")], { details: { width: 1 } })
    )
})

const fails = Tool.make({
  name: "fails",
  description: "Fails.",
  execute: () => Effect.fail("the disk is full")
})
const dies = Tool.make({ name: "dies", description: "Dies.", execute: () => Effect.die(new Error("a bug")) })

const call = (client: Client, name: string, params: Record<string, unknown> = {}) =>
  Effect.promise(() => client.callTool({ name, arguments: params }))

const shown = ({ content, isError }: Awaited<ReturnType<Client["callTool"]>>) => [
  isError === true,
  content.map((block) => (block.type === "text" ? block.text : block.type)).join()
]

const namesOf = (client: Client) =>
  Effect.promise(async () => (await client.listTools()).tools.map(({ name }) => name))

describe.for(modes)("a client in mode %s", (mode) => {
  it.effect("lists the tools and calls one, with progress and structured content", () =>
    Effect.gen(function* () {
      const { client } = yield* connected(
        mode,
        yield* ToolRegistry.make(add, draw, fails, Approval.askUser())
      )
      const { tools } = yield* Effect.promise(() => client.listTools())
      assert.deepStrictEqual(
        tools.map(({ annotations, name }) => [name, annotations?.readOnlyHint, annotations?.idempotentHint]),
        [
          ["add", true, true],
          ["draw", false, true],
          ["fails", false, false]
        ]
      )
      const [first] = tools
      assert.deepInclude(first, { title: "Sum", description: "Adds." })
      assert.deepInclude(first?.inputSchema, { type: "object", required: ["a", "b"] })
      const seen: Array<unknown> = []
      const result = yield* Effect.promise(() =>
        client.callTool({ name: "add", arguments: { a: 1, b: 2 } }, { onprogress: (some) => seen.push(some) })
      )
      assert.deepStrictEqual(result.structuredContent, { sum: 3 })
      assert.deepStrictEqual(result.content, [{ type: "text", text: '{"sum":3}' }])
      assert.deepStrictEqual(seen, [
        { progress: 1, message: "adding" },
        { progress: 2, message: "still adding" }
      ])
      assert.deepStrictEqual((yield* call(client, "add", { a: 1, b: 3 })).structuredContent, { sum: 4 })
    }).pipe(Effect.scoped)
  )

  it.effect("gets images, and details that are no structured content as metadata", () =>
    Effect.gen(function* () {
      const { client } = yield* connected(mode, yield* ToolRegistry.make(draw))
      const { _meta, content, structuredContent } = yield* call(client, "draw")
      assert.deepStrictEqual(content, [
        { type: "text", text: "a pixel" },
        { type: "image", data: pixel, mimeType: "image/png" }
      ])
      assert.isUndefined(structuredContent)
      assert.deepStrictEqual(_meta?.["effect-agent/details"], { width: 1 })
    }).pipe(Effect.scoped)
  )

  it.effect("reads why a call failed", () =>
    Effect.gen(function* () {
      const { client } = yield* connected(mode, yield* ToolRegistry.make(add, fails, dies))
      assert.deepStrictEqual(shown(yield* call(client, "fails")), [true, "the disk is full"])
      assert.deepStrictEqual(shown(yield* call(client, "dies")), [
        true,
        "Tool dies failed unexpectedly: a bug"
      ])
      const [isError, text] = shown(yield* call(client, "add", { a: 1 }))
      assert.isTrue(isError)
      assert.match(String(text), /add.*b/s)
      const unknown = yield* Effect.exit(Effect.tryPromise(() => client.callTool({ name: "nope" })))
      assert.strictEqual(unknown._tag, "Failure")
    }).pipe(Effect.scoped)
  )

  it.effect("cancels a call, which interrupts the tool", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      const waits = Tool.make({
        name: "waits",
        description: "Waits.",
        execute: () =>
          Effect.andThen(Deferred.succeed(begun, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
          )
      })
      const { client } = yield* connected(mode, yield* ToolRegistry.make(waits))
      const controller = new AbortController()
      const calling = client.callTool({ name: "waits" }, { signal: controller.signal }).catch(() => "aborted")
      yield* Deferred.await(begun)
      controller.abort()
      yield* Deferred.await(interrupted)
      assert.strictEqual(yield* Effect.promise(() => calling), "aborted")
    }).pipe(Effect.scoped)
  )

  it.effect("asks the agent, whose text streams as progress", () =>
    Effect.gen(function* () {
      const make = Agent.make({ model: "m", tools: [add] }).pipe(
        Effect.provide(
          ScriptedProvider.layer([
            ScriptedProvider.toolCall("add", { a: 1, b: 2 }),
            ScriptedProvider.text(["It ", "is 3."])
          ])
        )
      )
      const { client } = yield* connected(mode, yield* ToolRegistry.make(), { agent: { make } })
      const { tools } = yield* Effect.promise(() => client.listTools())
      assert.deepStrictEqual(
        tools.map(({ inputSchema, name }) => [name, inputSchema.required]),
        [["agent", ["prompt"]]]
      )
      // Each call has an agent of its own.
      for (const _ of [1, 2]) {
        const said: Array<string | undefined> = []
        const result = yield* Effect.promise(() =>
          client.callTool(
            { name: "agent", arguments: { prompt: "1 + 2" } },
            { onprogress: ({ message }) => said.push(message) }
          )
        )
        assert.deepStrictEqual(shown(result), [false, "It is 3."])
        assert.strictEqual(said.join(""), "\n→ Sum\nIt is 3.")
      }
      const [isError] = shown(yield* call(client, "agent", {}))
      assert.isTrue(isError)
    }).pipe(Effect.scoped)
  )
})

describe("the agent of a server", () => {
  const asking = <E>(make: Effect.Effect<Agent.Agent, E, Scope.Scope>) =>
    Effect.gen(function* () {
      const { client } = yield* connected("auto", yield* ToolRegistry.make(), {
        agent: { make, name: "ask" }
      })
      return yield* call(client, "ask", { prompt: "Hi" })
    })

  it.effect("gives its reason where a run failed, or its agent", () =>
    Effect.gen(function* () {
      const limited = Agent.make({ model: "m", tools: [draw], limits: { maxTurns: 1 } }).pipe(
        Effect.provide(ScriptedProvider.layer([ScriptedProvider.toolCall("draw", {})]))
      )
      const [isError, text] = shown(yield* asking(limited))
      assert.isTrue(isError)
      assert.match(String(text), /^The agent failed: Limit maxTurns/)
      assert.deepStrictEqual(shown(yield* asking(Effect.fail("no key"))), [true, "The agent failed: no key"])
      assert.deepStrictEqual(shown(yield* asking(Effect.die(new Error("a bug")))), [
        true,
        "The agent failed unexpectedly: a bug"
      ])
    }).pipe(Effect.scoped)
  )

  it.effect("gives a typed output as structured content, and says that it reached its limit", () =>
    Effect.gen(function* () {
      const typed = Agent.make({ model: "m", output: Schema.Struct({ grade: Schema.Int }) }).pipe(
        Effect.provide(ScriptedProvider.layer([ScriptedProvider.text('{"grade":2}')]))
      )
      assert.deepStrictEqual((yield* asking(typed)).structuredContent, { grade: 2 })
      const limited = Agent.make({
        model: "m",
        tools: [draw],
        limits: { maxTurns: 1, onMaxTurns: "stop" }
      }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.toolCall("draw", {})])))
      const [isError, text] = shown(yield* asking(limited))
      assert.isFalse(isError)
      assert.include(String(text), "its work is not complete")
    }).pipe(Effect.scoped)
  )

  it.effect("is cancelled with the call, and its scope closes", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const closed = yield* Deferred.make<void>()
      const waits = Tool.make({
        name: "waits",
        description: "Waits.",
        execute: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
      })
      const make = Effect.andThen(
        Effect.addFinalizer(() => Deferred.succeed(closed, undefined)),
        Agent.make({ model: "m", tools: [waits] })
      ).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.toolCall("waits", {})])))
      const { client } = yield* connected("auto", yield* ToolRegistry.make(), { agent: { make } })
      const controller = new AbortController()
      const calling = client
        .callTool({ name: "agent", arguments: { prompt: "Hi" } }, { signal: controller.signal })
        .catch(() => "aborted")
      yield* Deferred.await(begun)
      controller.abort()
      yield* Deferred.await(closed)
      assert.strictEqual(yield* Effect.promise(() => calling), "aborted")
    }).pipe(Effect.scoped)
  )
})

describe("the policy of a server", () => {
  const calling = (policy: Approval.Policy, name: string, params: Record<string, unknown> = {}) =>
    Effect.gen(function* () {
      const { client } = yield* connected("auto", yield* ToolRegistry.make(add, draw))
      return shown(yield* call(client, name, params))
    }).pipe(Effect.provideService(Approval.Approval, policy), Effect.scoped)

  it.effect("refuses calls that it denies, and those that no person can approve", () =>
    Effect.gen(function* () {
      const policy = Approval.make({
        rules: [Approval.allow("add"), Approval.ask("draw", () => true, "it draws")]
      })
      assert.deepStrictEqual(yield* calling(policy, "add", { a: 1, b: 2 }), [false, '{"sum":3}'])
      assert.deepStrictEqual(yield* calling(policy, "draw"), [
        true,
        "Tool execution was rejected: it needs approval, as it draws, and no person can give it here"
      ])
      const denies = Approval.make({ rules: [Approval.deny("draw", () => true, "not today")] })
      assert.deepStrictEqual(yield* calling(denies, "draw"), [true, "Tool execution was rejected: not today"])
      const broken: Approval.Policy = { decide: () => Effect.die(new Error("a bug")), asked: "deny" }
      assert.deepStrictEqual(yield* calling(broken, "draw"), [
        true,
        "Tool execution was rejected: the approval failed: a bug"
      ])
    })
  )

  it.effect("cannot change the params of a call", () =>
    Effect.gen(function* () {
      const changing: Approval.Policy = {
        decide: ({ input, params }) =>
          Effect.sync(() => {
            Object.assign(Object(params), { a: 100 })
            Object.assign(Object(input), { a: 100 })
            return { decision: "allow" }
          }),
        asked: "deny"
      }
      assert.deepStrictEqual(yield* calling(changing, "add", { a: 1, b: 2 }), [false, '{"sum":3}'])
    })
  )

  it.effect("asks its person", () =>
    Effect.gen(function* () {
      const asked: Array<Approval.Request> = []
      const person = (answer: Approval.Answer): Approval.Policy =>
        Approval.make({
          otherwise: "ask",
          asked: {
            approve: (request) =>
              Effect.as(
                Effect.sync(() => asked.push(request)),
                answer
              ),
            answer: () => Effect.never
          }
        })
      const params = { a: 1, b: 2 }
      const approves = person({ decision: "approve" })
      assert.deepStrictEqual(yield* calling(approves, "add", params), [false, '{"sum":3}'])
      const changes = person({ decision: "approve", params: { a: 5, b: 5 } })
      assert.deepStrictEqual(yield* calling(changes, "add", params), [false, '{"sum":10}'])
      const rejects = person({ decision: "reject", reason: "no sums" })
      assert.deepStrictEqual(yield* calling(rejects, "add", params), [
        true,
        "Tool execution was rejected: no sums"
      ])
      assert.deepInclude(asked[0], { toolName: "add", params })
    })
  )
})

describe("the list of a server", () => {
  it.effect("follows the registry, and tells its client", () =>
    Effect.gen(function* () {
      const registry = yield* ToolRegistry.make(add)
      const make = Agent.make({ model: "m" }).pipe(Effect.provide(ScriptedProvider.layer([])))
      const { client, lists } = yield* connected("auto", registry, { agent: { make, name: "draw" } })
      assert.sameMembers(yield* namesOf(client), ["draw", "add"])
      yield* registry.register(draw)
      yield* registry.register(fails)
      yield* told(lists, ["draw", "add", "fails"])
      yield* registry.unregister("add")
      yield* told(lists, ["draw", "fails"])
      const gone = yield* Effect.exit(Effect.tryPromise(() => client.callTool({ name: "add" })))
      assert.strictEqual(gone._tag, "Failure")
      yield* registry.register(
        Tool.make({ name: "add", description: "New.", execute: () => Effect.succeed("new") })
      )
      yield* told(lists, ["draw", "fails", "add"])
      assert.deepStrictEqual(shown(yield* call(client, "add")), [false, "new"])
      const asks = { ...Approval.askUser(), name: "fails" }
      yield* registry.unregister("fails")
      yield* registry.register(asks)
      yield* told(lists, ["draw", "add"])
      const asked = yield* Effect.exit(Effect.tryPromise(() => client.callTool({ name: "fails" })))
      assert.strictEqual(asked._tag, "Failure")
    }).pipe(Effect.scoped)
  )
})

/** Waits until the client has heard of this list. */
const told = (lists: ReadonlyArray<ReadonlyArray<string>>, names: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const isTold = () => [...(lists.at(-1) ?? [])].sort().join() === [...names].sort().join()
    while (!isTold()) await new Promise((resolve) => setImmediate(resolve))
  })

describe("the time of a call", () => {
  it.effect("ends after that of the tool", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const waits = Tool.make({
        name: "waits",
        description: "Waits.",
        execute: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
      })
      const { client } = yield* connected("auto", yield* ToolRegistry.make(waits))
      const calling = client.callTool({ name: "waits" })
      yield* Deferred.await(begun)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(shown(yield* Effect.promise(() => calling)), [
        true,
        "Tool waits timed out after 30s."
      ])
    }).pipe(Effect.scoped)
  )
})

describe("the route of a server", () => {
  it.effect("refuses origins that are not listed, and survives bodies that are no messages", () =>
    Effect.gen(function* () {
      const served = AgentMcpServer.layerHttp({
        name: "test",
        version: "1.0.0",
        path: "/tools",
        origins: ["https://example.com"]
      }).pipe(Layer.provide(ToolRegistry.layer(add)))
      const { handler } = yield* Effect.acquireRelease(
        Effect.sync(() => HttpRouter.toWebHandler(served, { disableLogger: true })),
        ({ dispose }) => Effect.promise(dispose)
      )
      const hello = {
        protocolVersion: "2025-11-25",
        capabilities: {},
        clientInfo: { name: "test", version: "1.0.0" }
      }
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: hello })
      const status = (init: RequestInit, headers: Record<string, string> = {}, path = "/tools") =>
        Effect.map(
          Effect.promise(() =>
            handler(
              new Request(`http://localhost${path}`, {
                ...init,
                headers: {
                  "content-type": "application/json",
                  accept: "application/json, text/event-stream",
                  ...headers
                }
              })
            )
          ),
          ({ status }) => status
        )
      assert.strictEqual(yield* status({ method: "POST", body }), 200)
      assert.strictEqual(yield* status({ method: "POST", body }, { origin: "https://example.com" }), 200)
      assert.strictEqual(yield* status({ method: "POST", body }, { origin: "https://evil.example" }), 403)
      assert.strictEqual(yield* status({ method: "POST", body }, {}, "/mcp"), 404)
      assert.strictEqual(yield* status({ method: "GET" }), 405)
      for (const body of ["", "no json", "1", "[]", "{}"]) {
        const code = yield* status({ method: "POST", body })
        assert.isBelow(code, 500, body)
      }
      assert.strictEqual(yield* status({ method: "POST", body }), 200)
    }).pipe(Effect.scoped)
  )
})
