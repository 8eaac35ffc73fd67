import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { Agent, Message, Tool, Transcript } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider } from "effect-agent/testing"
import { createServer } from "node:net"
import * as Invariants from "../behaviour/invariants.ts"
import { agent as scripted, ofTag, range, resultTexts, say, settle, texts } from "../behaviour/play.ts"
import { refuse, serve, stream } from "../providers/server.ts"
import { agentAt, looking } from "./talking.ts"
import { faults, wires } from "./wires.ts"

/** Milliseconds that an abort may take, and after it the socket; where the machine is busy with other things, at most. */
const soon = 250
const late = 1000

/** Most are as they should be, and none is long. */
const areSoon = (times: ReadonlyArray<number>) => {
  const sorted = times.toSorted((left, right) => left - right)
  assert.isBelow(sorted[Math.floor(sorted.length / 2)] ?? late, soon)
  assert.isBelow(sorted.at(-1) ?? late, late)
}

/** How long something takes, in milliseconds. */
const timed = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const began = performance.now()
    return Effect.map(work, (value) => ({ value, took: performance.now() - began }))
  })

/** A server that writes these bytes, and no more: not even a whole header. */
const halfway = (bytes: string, asked: Deferred.Deferred<void>) =>
  Effect.acquireRelease(
    Effect.callback<{
      readonly baseUrl: string
      readonly idle: Effect.Effect<void>
      readonly close: () => void
    }>((resume) => {
      const closed = Deferred.makeUnsafe<void>()
      const server = createServer((socket) => {
        socket.on("error", () => {})
        socket.on("close", () => Deferred.doneUnsafe(closed, Exit.void))
        socket.once("data", () => socket.write(bytes, () => Deferred.doneUnsafe(asked, Exit.void)))
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" ? address?.port : undefined
        const baseUrl = `http://127.0.0.1:${port}/v1`
        resume(Effect.succeed({ baseUrl, idle: Deferred.await(closed), close: () => server.close() }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

const half = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-half"

describe.each(wires)("an abort on $name", (wire) => {
  for (const [moment, bytes] of [
    ["before the header", ""],
    ["in the header", half]
  ] as const) {
    it.live(`F099: ${moment} ends the run and its socket at once, by a cancel and by interruption`, () =>
      Effect.gen(function* () {
        const times: Array<number> = []
        for (const way of ["cancel", "interrupt", "cancel"] as const) {
          const asked = yield* Deferred.make<void>()
          const server = yield* halfway(bytes, asked)
          const agent = yield* agentAt(wire, server.baseUrl)
          const run = yield* Effect.forkChild(agent.prompt("hi"))
          yield* Deferred.await(asked)
          const stop = way === "cancel" ? agent.cancel("enough") : Fiber.interrupt(run)
          const ended = yield* timed(Effect.andThen(stop, Fiber.await(run)))
          const closed = yield* timed(Effect.timeoutOption(server.idle, late))
          times.push(ended.took, closed.took)
          const last = agent.state.getUnsafe().messages.at(-1)
          assert.deepInclude(last, { role: "assistant", stopReason: "aborted", content: [] })
          if (way === "cancel") assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
        }
        areSoon(times)
      })
    )
  }

  it.live("F101: in the text ends the run and its socket at once, and keeps what was said", () =>
    Effect.gen(function* () {
      const [begun = "", first = "", second = ""] = wire.answer({ text: ["Hel", "lo"] })
      const parts = [begun, first, second].slice(0, wire.name === "google-generative" ? 1 : 3)
      const server = yield* serve((response) => stream(response).write(parts.join("")))
      const times: Array<number> = []
      for (const _ of range(3)) {
        const agent = yield* agentAt(wire, server.baseUrl)
        const heard = yield* Deferred.make<void>()
        yield* agent.subscribe((event) =>
          event._tag === "MessageDelta" && event.delta._tag === "TextDelta"
            ? Deferred.succeed(heard, undefined)
            : Effect.void
        )
        const run = yield* Effect.forkChild(agent.prompt("hi"))
        yield* Deferred.await(heard)
        const { took, value } = yield* timed(Effect.andThen(agent.cancel("enough"), Fiber.join(run)))
        const closed = yield* timed(Effect.timeoutOption(server.idle, late))
        times.push(took, closed.took)
        assert.strictEqual(value.status, "cancelled")
        assert.deepInclude(value.message, { stopReason: "aborted", errorMessage: "enough" })
        assert.match(texts(value.newMessages).at(-1) ?? "", /^Hel/)
      }
      areSoon(times)
    })
  )

  it.effect("F103: in the wait for a retry ends the run at once, and nothing is asked any more", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => refuse(response, 429, {}, { "retry-after": "8" }))
      const provider = Retry.layer()(wire.layer(server.baseUrl)).pipe(Layer.provide(FetchHttpClient.layer))
      const times: Array<number> = []
      for (const _ of range(3)) {
        const agent = yield* Agent.make({ model: "m" }).pipe(Effect.provide(provider))
        const waiting = yield* Deferred.make<void>()
        yield* agent.subscribe(({ _tag }) =>
          _tag === "ModelCallRetry" ? Deferred.succeed(waiting, undefined) : Effect.void
        )
        const run = yield* Effect.forkChild(agent.prompt("hi"))
        yield* Deferred.await(waiting)
        // In the middle of it. After that no time passes but what is really taken.
        yield* TestClock.adjust("1 second")
        const { took } = yield* timed(Effect.andThen(agent.cancel(), settle()))
        const isOver = run.pollUnsafe() !== undefined
        yield* TestClock.adjust("1 hour")
        assert.isTrue(isOver)
        times.push(took)
        assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
      }
      areSoon(times)
      assert.strictEqual(server.requests.length, 3)
    })
  )

  const calls = [
    { id: "call_1", name: "look", args: '{"n":1}' },
    { id: "call_2", name: "look", args: '{"n":2}' }
  ]
  /** Two calls with words before them, then words; to whoever goes on, that it is done. */
  const conversing = serve((response, { body }) => {
    const turns = wire.turns(JSON.parse(body))
    const said = turns.some(({ texts }) => texts.includes("go on"))
      ? { text: ["done"] }
      : turns.some(({ by }) => by === "tools")
        ? { text: ["That", " is", " it."] }
        : { text: ["Let", " me", " look."], calls }
    stream(response).end(wire.answer(said).join(""))
  })

  for (const way of ["prompted", "resumed", "restarted"] as const) {
    it.live(`F106: at any event, then ${way}: the next request is one that a vendor takes`, () =>
      Effect.gen(function* () {
        const server = yield* conversing
        let stops = 0
        for (let status = "cancelled"; status === "cancelled"; stops++) {
          const first = yield* agentAt(wire, server.baseUrl, { tools: [looking] })
          let heard = 0
          yield* first.subscribe(() => (heard++ === stops ? first.cancel("enough") : Effect.void))
          status = (yield* first.prompt("hi")).status
          const { messages } = first.state.getUnsafe()
          assert.deepStrictEqual(Transcript.violations(messages), [])
          if (way === "resumed") yield* Effect.ignore(first.continue)
          const kept = JSON.parse(JSON.stringify(messages))
          const next =
            way === "restarted"
              ? yield* agentAt(wire, server.baseUrl, { tools: [looking], messages: kept })
              : first
          assert.strictEqual((yield* next.prompt("go on")).status, "completed")
        }
        assert.isAbove(stops, 40)
        assert.deepStrictEqual(
          server.requests.flatMap(({ body }) => faults(wire, body)),
          []
        )
      })
    )
  }
})

describe("a tool that does not listen", () => {
  it.live("F087: is left behind by an abort within a second, reported, and never heard of again", () =>
    Effect.gen(function* () {
      const logged: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void logged.push(String(message)))
      const began = yield* Deferred.make<void>()
      const late = yield* Deferred.make<string>()
      let speak: (text: string) => void = () => {}
      const spoken = new Promise<string>((resolve) => {
        speak = resolve
      })
      const tools = [
        Tool.fromPromise({
          name: "promise",
          description: "Is busy, whatever its signal says.",
          execute: async (_, { progress }) => {
            const told = await spoken
            progress(told)
            return told
          }
        }),
        Tool.make({
          name: "effect",
          description: "Cannot be interrupted.",
          execute: () =>
            Effect.uninterruptible(Effect.andThen(Deferred.succeed(began, undefined), Deferred.await(late)))
        }),
        say("quick")
      ]
      const names = ["promise", "effect", "quick"].map((name) => ({ name, params: {} }))
      const script = yield* scripted([ScriptedProvider.toolCalls(...names), ScriptedProvider.text("done")], {
        tools
      })
      const run = yield* Effect.forkChild(Effect.provide(script.agent.prompt("hi"), Logger.layer([logger])))
      yield* Deferred.await(began)
      const { took, value } = yield* timed(Effect.andThen(script.agent.cancel(), Fiber.join(run)))
      assert.isBelow(took, 1000)
      assert.strictEqual(value.status, "cancelled")
      assert.strictEqual(
        resultTexts(value.newMessages).filter((text) => text.includes("left behind")).length,
        1
      )
      yield* Effect.sleep("150 millis")
      assert.strictEqual(logged.filter((line) => line.includes("ignored its interruption")).length, 2)

      const next = yield* Effect.forkChild(script.agent.prompt("and now?"))
      speak("late")
      yield* Deferred.succeed(late, "late")
      assert.strictEqual((yield* Fiber.join(next)).status, "completed")
      const heard = script.events.length
      yield* Effect.sleep(20)
      assert.strictEqual(script.events.length, heard)
      assert.notInclude(JSON.stringify(script.events), '"late"')
      const { messages } = script.agent.state.getUnsafe()
      assert.deepStrictEqual(Transcript.violations(messages), [])
      assert.strictEqual(messages.filter(({ role }) => role === "toolResult").length, 3)
      const first = script.events.filter(({ runId }) => runId === value.runId)
      assert.deepStrictEqual(Invariants.broken(first), [])
    })
  )
})

it.live("F095: a stream that is left stops the tools, and its history goes on", () =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const slow = Tool.make({
      name: "slow",
      description: "Never ends.",
      execute: () =>
        Effect.flatMap(Tool.ToolContext, ({ progress }) => progress(Tool.output("begun"))).pipe(
          Effect.andThen(Effect.never),
          Effect.onInterrupt(() => Effect.sync(() => log.push("interrupted")))
        )
    })
    const call = ScriptedProvider.toolCall("slow", {})
    const script = yield* scripted([call, ScriptedProvider.text("done")], { tools: [slow] })
    const leaving = script.agent.stream("hi").pipe(
      Stream.takeUntil(({ _tag }) => _tag === "ToolExecutionProgress"),
      Stream.runDrain
    )
    areSoon([(yield* timed(leaving)).took])
    assert.deepStrictEqual(log, ["interrupted"])
    assert.strictEqual(ofTag(script.events, "RunEnd")[0]?.status, "cancelled")
    const { newMessages } = yield* script.agent.prompt([Message.user("go on")])
    assert.deepStrictEqual(texts(newMessages), ["go on", "done"])
    assert.deepStrictEqual(Transcript.violations(script.agent.state.getUnsafe().messages), [])
  })
)
