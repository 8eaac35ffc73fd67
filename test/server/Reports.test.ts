/** A server to its readers: to its operator in the log, in its health and its spans, and to end users. */
import { NodeHttpServer } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, Logger, References, Redacted, Tracer } from "effect"
import { ProviderError } from "effect-agent"
import { JsonlRunLogStore, RunLogStore, Runs, Server } from "effect-agent/server"
import { MemorySessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { HttpServer } from "effect/http"
import { TestClock } from "effect/testing"
import { createServer } from "node:http"
import { eventsOf, layer, services, stores } from "./host.ts"
import { send, serve, token } from "./http.ts"
import { gated, session } from "./runsContract.ts"

const done = ScriptedProvider.text("done")

const failing = ScriptedProvider.fail(
  new ProviderError.ProviderError({
    provider: "openai",
    reason: new ProviderError.Unauthenticated({
      detail: "Check the API key sk-1234 of https://x.test",
      status: 401
    })
  })
)

describe("a run that fails", () => {
  it.effect("is one warning with its session, its reason and the status of the vendor", () =>
    Effect.gen(function* () {
      const lines: Array<readonly [string, string, Readonly<Record<string, unknown>>]> = []
      const logger = Logger.make(({ fiber, logLevel, message }) => {
        const annotations = fiber.getRef(References.CurrentLogAnnotations)
        lines.push([logLevel, String(message), annotations])
      })
      const runId = yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const { runId } = yield* runs.start({ sessionId, prompt: "hi" })
        yield* eventsOf(runId)
        const next = yield* runs.start({ sessionId, prompt: "hi" })
        yield* eventsOf(next.runId)
        return runId
      }).pipe(Effect.provide(layer([failing, done])), Effect.provide(Logger.layer([logger])))
      const warnings = lines.filter(([level]) => level === "Warn")
      assert.lengthOf(warnings, 1)
      const [, message, annotations] = warnings[0] ?? ["", "", {}]
      assert.include(message, "Check the API key")
      assert.deepInclude(annotations, { runId, sessionId: "s", reason: "Unauthenticated", vendorStatus: 401 })
    })
  )

  for (const [path, body] of [
    [
      "/ui/chat",
      {
        id: "c",
        trigger: "submit-message",
        messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "hi" }] }]
      }
    ],
    [
      "/ag-ui",
      {
        threadId: "c",
        runId: "r1",
        messages: [{ id: "m1", role: "user", content: "hi" }],
        tools: [],
        context: [],
        state: {},
        forwardedProps: {}
      }
    ]
  ] as const)
    it.live(`shows end users neither addresses nor advice for the operator: ${path}`, () =>
      Effect.gen(function* () {
        const node = NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 })
        const shown = yield* Effect.forEach([{}, { ui: { failureWords: () => "Sorry." } }], (options) =>
          Effect.gen(function* () {
            const app = Server.layer({ tokens: [Redacted.make(token)], grace: 0, ...options }).pipe(
              Layer.provideMerge(layer([failing])),
              Layer.provideMerge(node)
            )
            const { address } = Context.get(yield* Layer.build(app), HttpServer.HttpServer)
            const { text } = yield* send("port" in address ? address.port : 0, { path, body })
            assert.notMatch(text, /sk-1234|x\.test|API key/)
            return text
          })
        )
        assert.include(shown[0], "Something went wrong at the server.")
        assert.include(shown[1], "Sorry.")
      }).pipe(Effect.scoped)
    )
})

describe("the health of a server", () => {
  it.effect("fails while its store takes no writes, or does not answer for 2 seconds", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      const store: { addKey: Effect.Effect<void, RunLogStore.RunLogError> } = { addKey: Effect.void }
      const faulty = Layer.succeed(RunLogStore.RunLogStore, {
        ...logs,
        addKey: (...of) =>
          Effect.andThen(
            Effect.suspend(() => store.addKey),
            logs.addKey(...of)
          )
      })
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        yield* runs.health
        store.addKey = Effect.fail(new RunLogStore.RunLogError({ detail: "the disk is full" }))
        const full = yield* Effect.flip(runs.health)
        assert.include(full._tag === "StorageUnavailable" ? full.detail : "", "the disk is full")
        store.addKey = Effect.never
        for (let asked = 0; asked < 2; asked++) {
          const hung = yield* Effect.forkChild(Effect.flip(runs.health), { startImmediately: true })
          yield* TestClock.adjust("2 seconds")
          assert.isDefined(hung.pollUnsafe())
        }
      }).pipe(Effect.provide(layer([], {}, Layer.merge(places, faulty))))
    })
  )

  it.live("names a full and a read-only disk, in the problem of a request too", () =>
    Effect.gen(function* () {
      const directory = yield* FileSystem.FileSystem.use((files) => files.makeTempDirectoryScoped())
      const files = yield* FileSystem.FileSystem
      const readOnly = Layer.succeed(FileSystem.FileSystem, {
        ...files,
        makeDirectory: () => files.writeFileString("/proc/version", "x")
      })
      const logs = JsonlRunLogStore.layer({ directory }).pipe(
        Layer.provide(readOnly),
        Layer.provide(services)
      )
      const { port } = yield* serve(
        [done],
        {},
        {},
        Layer.orDie(Layer.merge(logs, MemorySessionStore.layer()))
      )
      const health = yield* send(port, { path: "/health" })
      assert.strictEqual(health.status, 503)
      assert.match(health.json.detail, /EACCES|EPERM|EROFS|EIO|EINVAL/)
      yield* send(port, { path: "/sessions", body: { sessionId: "s" } })
      const refused = yield* send(port, { path: "/sessions/s/runs", body: { prompt: "hi" } })
      assert.strictEqual(refused.status, 503)
      assert.strictEqual(refused.json.detail, health.json.detail)
    }).pipe(Effect.scoped, Effect.provide(services))
  )
})

describe("the spans of a run", () => {
  const traceId = "0af7651916cd43dd8448eb211c80319c"
  const traceparent = `00-${traceId}-b7ad6b7169203331-01`

  it.live("join the trace of the request, also where the run begins later or in another process", () =>
    Effect.gen(function* () {
      const spans: Array<Tracer.Span> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          spans.push(span)
          return span
        }
      })
      const places = yield* stores
      const { script, setup } = yield* gated
      yield* Effect.gen(function* () {
        const first = serve(script, setup, {}, places)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const { port } = yield* first
            yield* send(port, { path: "/sessions", body: { sessionId: "s" } })
            const start = (body: object, headers = {}) =>
              send(port, { path: "/sessions/s/runs", body, headers })
            yield* start({ prompt: "one" })
            yield* start({ prompt: "two", when: "queue" }, { traceparent })
          })
        )
        spans.length = 0
        const { port } = yield* serve([done, done], {}, {}, places)
        const { items } = (yield* send(port, { path: "/sessions/s/runs" })).json
        for (const { runId } of items) yield* send(port, { path: `/runs/${runId}/events` })
      }).pipe(Effect.provideService(Tracer.Tracer, tracer))
      const [one, two] = spans.filter(({ name }) => name.startsWith("invoke_agent"))
      assert.strictEqual(one?.attributes.get("gen_ai.conversation.id"), "s")
      assert.notStrictEqual(one?.traceId, traceId)
      assert.strictEqual(two?.traceId, traceId)
      assert.strictEqual(two?.parent._tag === "Some" ? two.parent.value.spanId : "", "b7ad6b7169203331")
    })
  )
})
