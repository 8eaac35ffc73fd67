import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Latch, Logger, Schema, Scope, Stream } from "effect"
import { AgentEvent, Provider, ProviderError } from "effect-agent"
import { createAgent, type PromiseAgent } from "effect-agent/promise"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { createServer } from "node:http"
import { eventsOnly } from "../../src/internal/eventsOnly.ts"
import * as Invariants from "./invariants.ts"
import { agent, ofTag, status, tags } from "./play.ts"

const done = ScriptedProvider.text("done")
const overloaded = ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "busy" }))

/** What is logged, by level. */
const logging = () => {
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(
    ({ cause, logLevel, message }) => void lines.push(`${logLevel} ${String(message)} ${String(cause)}`)
  )
  return { lines, layer: Logger.layer([logger], { mergeWithExisting: false }) }
}

const last = (events: ReadonlyArray<AgentEvent.AgentEvent>) => ofTag(events, "RunEnd").at(-1)

describe("streamEvents", () => {
  it.effect("is the stream, as long as nothing fails", () =>
    Effect.gen(function* () {
      const script = yield* agent([done])
      const events = yield* Stream.runCollect(script.agent.streamEvents("hi"))
      assert.deepStrictEqual(events, script.events)
      assert.strictEqual(status(events), "completed")
    })
  )

  it.effect("ends the run whose events break off, under its id, also behind the end of a run inside", () =>
    Effect.gen(function* () {
      const { agent: played, events } = yield* agent([done])
      yield* played.prompt("hi")
      const cut = events.findIndex(({ _tag }) => _tag === "MessageDelta")
      const before = events.slice(0, cut)
      const [start] = events
      const [whole] = ofTag(events, "RunEnd")
      if (whole === undefined) return assert.fail("no end")
      const inner: AgentEvent.AgentEvent = {
        ...whole,
        runId: "inner",
        path: [{ runId: whole.runId, toolCallId: "c" }]
      }
      const broken = Stream.concat(Stream.fromIterable([...before, inner]), Stream.fail(new Error("lost")))
      const seen = yield* Stream.runCollect(eventsOnly(broken)).pipe(Effect.provide(logging().layer))
      assert.deepStrictEqual(tags(seen.slice(cut)), ["RunEnd", "RunError", "RunEnd"])
      const [error, end] = seen.slice(-2)
      assert.deepStrictEqual([error?.runId, end?.runId], [start?.runId, start?.runId])
      assert.deepStrictEqual(
        [error?.seq, end?.seq],
        [(before.at(-1)?.seq ?? 0) + 1, (before.at(-1)?.seq ?? 0) + 2]
      )
      assert.deepInclude(end, { status: "failed", turns: 1 })
    })
  )

  it.effect("ends after the events of a run that failed, and adds none", () =>
    Effect.gen(function* () {
      const { layer, lines } = logging()
      const script = yield* agent([overloaded])
      const events = yield* Effect.provide(Stream.runCollect(script.agent.streamEvents("hi")), layer)
      assert.deepStrictEqual(events, script.events)
      assert.deepStrictEqual(tags(events).slice(-2), ["RunError", "RunEnd"])
      assert.strictEqual(last(events)?.error?._tag, "ProviderError")
      assert.deepStrictEqual(lines, [])
    })
  )

  it.effect("says of a run that died what it died of, and logs that", () =>
    Effect.gen(function* () {
      const { layer, lines } = logging()
      const script = yield* agent([ScriptedProvider.turn(Step.text("Hel"), Step.die(new Error("boom")))])
      const events = yield* Effect.provide(Stream.runCollect(script.agent.streamEvents("hi")), layer)
      assert.deepStrictEqual(events, script.events)
      assert.deepInclude(last(events)?.error, { _tag: "Defect" })
      assert.strictEqual(lines.length, 1)
      assert.match(lines[0] ?? "", /^Error A run died .*boom/)
    })
  )

  it.effect("says that the agent is busy, or closed, as the end of a run that did not begin", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const script = yield* agent([ScriptedProvider.never, done]).pipe(Scope.provide(scope))
      yield* script.agent.start("first")
      const codec = Schema.toCodecJson(AgentEvent.AgentEvent)
      for (const tag of ["AgentBusy", "AgentClosed"] as const) {
        const events = yield* Stream.runCollect(script.agent.streamEvents("hi"))
        assert.deepStrictEqual(tags(events), ["RunError", "RunEnd"])
        assert.deepStrictEqual(
          events.map(({ seq }) => seq),
          [1, 2]
        )
        assert.strictEqual(events[0]?.runId, events[1]?.runId)
        const [error] = ofTag(events, "RunError")
        assert.strictEqual(error?.error._tag, tag)
        assert.strictEqual(error?.retryable, tag === "AgentBusy")
        assert.deepInclude(last(events), { status: "failed", turns: 0, newMessageIds: [] })
        assert.deepStrictEqual(last(events)?.error, error?.error)
        const view = events.reduce(AgentEvent.fold, AgentEvent.initial())
        assert.strictEqual(view.lastError, error?.error.message)
        for (const event of events) {
          const encoded = JSON.parse(JSON.stringify(yield* Schema.encodeEffect(codec)(event)))
          assert.deepStrictEqual(yield* Schema.decodeUnknownEffect(codec)(encoded), event)
        }
        yield* Scope.close(scope, Exit.void)
      }
    })
  )

  it.effect("is interrupted, not ended, with the fiber that reads it, and cancels the run", () =>
    Effect.gen(function* () {
      const script = yield* agent([ScriptedProvider.never])
      const begun = yield* Latch.make(false)
      const reading = script.agent.streamEvents("hi").pipe(
        Stream.tap(({ _tag }) => (_tag === "ModelCallStart" ? begun.open : Effect.void)),
        Stream.runDrain
      )
      const reader = yield* Effect.forkChild(reading)
      yield* begun.await
      yield* Fiber.interrupt(reader)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(reader)))
      assert.strictEqual(status(script.events), "cancelled")
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )
})

const encode = Schema.encodeSync(Schema.toCodecJson(AgentEvent.AgentEvent))

/** A server that answers each request with the events of a run. */
const serving = async (made: PromiseAgent) => {
  const server = createServer((_, response) => {
    const controller = new AbortController()
    response.on("close", () => controller.abort())
    response.writeHead(200, { "content-type": "text/event-stream" })
    void (async () => {
      for await (const event of made.streamEvents("hi", { signal: controller.signal })) {
        response.write(`data: ${JSON.stringify(encode(event))}\n\n`)
      }
      response.end()
    })().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/`
  const close = () =>
    new Promise<void>((resolve) => {
      server.closeAllConnections()
      server.close(() => resolve())
    })
  return { url, close }
}

/** Whole events of a body, as a browser reads them. */
const decode = Schema.decodeUnknownSync(Schema.toCodecJson(AgentEvent.AgentEvent))
const eventsOf = (body: string): ReadonlyArray<AgentEvent.AgentEvent> =>
  body
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: "))
    .map((frame) => decode(JSON.parse(frame.slice("data: ".length))))

describe("an endpoint of server-sent events", () => {
  it("tells how each run ends: well, failed, busy", async () => {
    const made = createAgent({
      provider: ScriptedProvider.layer([done, overloaded, ScriptedProvider.never]),
      model: "m"
    })
    const { close, url } = await serving(made)
    const get = async () => eventsOf(await (await fetch(url)).text())
    assert.strictEqual(last(await get())?.status, "completed")
    const failed = await get()
    assert.deepStrictEqual(tags(failed).slice(-2), ["RunError", "RunEnd"])
    assert.strictEqual(last(failed)?.error?._tag, "ProviderError")
    // The first who asks holds the agent, and never hears the end.
    const leaving = new AbortController()
    const holding = await fetch(url, { signal: leaving.signal })
    await holding.body?.getReader().read()
    const busy = await get()
    assert.deepStrictEqual(tags(busy), ["RunError", "RunEnd"])
    assert.strictEqual(last(busy)?.error?._tag, "AgentBusy")
    leaving.abort()
    await close()
    await made.close()
  })

  it("tells that the agent could not be built", async () => {
    const made = createAgent({
      provider: Layer.effect(Provider.Provider, Effect.fail(new Error("no key"))),
      model: "m"
    })
    const { close, url } = await serving(made)
    const events = eventsOf(await (await fetch(url)).text())
    assert.deepStrictEqual(tags(events), ["RunError", "RunEnd"])
    assert.deepInclude(last(events)?.error, { _tag: "Defect", message: "no key" })
    await close()
    await made.close()
  })
})
