import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Duration, Effect, Exit, Fiber, Queue } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { AgentEvent } from "effect-agent"
import type { ServerResponse } from "node:http"
import { settle } from "../behaviour/play.ts"
import { serve, stream } from "../providers/server.ts"
import { agentOn, block, bytes, ended, play, prompt, type Setup, soon, told, until } from "./session.ts"
import type { Piece, Vendor } from "./vendors.ts"
import { openAi, vendors } from "./vendors.ts"

const hello = { text: ["Hel", "lo", "!"] }

/** A server that takes a request, and tells. */
const taking = Effect.gen(function* () {
  const taken = yield* Deferred.make<ServerResponse>()
  const server = yield* serve((response) => Deferred.doneUnsafe(taken, Exit.succeed(response)))
  return { server, taken: Deferred.await(taken) }
})

/** Prompts an agent on a server that says this much and then nothing. `heard`: all of it has been. */
const stalled = Effect.fnUntraced(function* (vendor: Vendor, pieces: ReadonlyArray<Piece>, setup?: Setup) {
  const { server, taken } = yield* taking
  const agent = yield* agentOn(vendor, server, setup)
  const deltas = pieces.filter(({ kind }) => kind === "text").length
  const heard = yield* Queue.unbounded<AgentEvent.AgentEvent>()
  yield* agent.subscribe((event) => (AgentEvent.isTextDelta(event) ? Queue.offer(heard, event) : Effect.void))
  const run = yield* Effect.forkChild(prompt(agent))
  const response = yield* taken
  stream(response).write(bytes(pieces))
  if (pieces.length === 0) response.flushHeaders()
  for (let count = 0; count < deltas; count++) yield* soon(Queue.take(heard))
  return { run, server }
})

/** Lets what a socket brings in be read. */
const readIn = Effect.promise(() => new Promise((wake) => setTimeout(wake, 30)))

/** A clock whose time of day somebody sets. */
const withDay = <A, E, R>(effect: (set: (hours: number) => void) => Effect.Effect<A, E, R>) =>
  Effect.clockWith((real) => {
    // Never what has passed since some start.
    let offset = 60 * 60 * 1000
    const millis = () => real.currentTimeMillisUnsafe() + offset
    const clock: Clock.Clock = Object.assign(Object.create(real), {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis)
    })
    const set = (hours: number) => {
      offset = hours * 60 * 60 * 1000
    }
    return Effect.provideService(effect(set), Clock.Clock, clock)
  })

/** By the clock of the test, whatever the time of day is. */
const adjust = (real: Clock.Clock, duration: Duration.Input) =>
  Effect.provideService(TestClock.adjust(duration), Clock.Clock, real)

describe.each([-1000, 1000])("with a time of day that is set by %s hours", (hours) => {
  const vendor = openAi

  it.effect(
    "F047: a request that is never answered is given up after a minute, not before and not after",
    () =>
      Effect.clockWith((real) =>
        withDay(
          Effect.fnUntraced(function* (set) {
            const { server, taken } = yield* taking
            const run = yield* Effect.forkChild(play(vendor, server))
            yield* taken
            yield* adjust(real, "20 seconds")
            set(hours)
            yield* adjust(real, "39 seconds")
            assert.isUndefined(run.pollUnsafe())
            yield* adjust(real, "1 second")
            const { reason } = yield* Fiber.join(run)
            assert.strictEqual(told(reason), "StreamStalled firstByte")
          })
        )
      ).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F048: silence is as long as it is, and so is the whole answer", () =>
    Effect.clockWith((real) =>
      withDay(
        Effect.fnUntraced(function* (set) {
          for (const kind of ["idle", "total"] as const) {
            set(1)
            const setup = { timeouts: { [kind]: "100 seconds" } }
            const { run } = yield* stalled(vendor, until(vendor.answer(hello), "text", 2), setup)
            yield* readIn
            set(hours)
            yield* adjust(real, "99 seconds")
            assert.isUndefined(run.pollUnsafe())
            yield* adjust(real, "1 second")
            const { reason } = yield* ended(run)
            assert.strictEqual(told(reason), `StreamStalled ${kind}`)
          }
        })
      )
    ).pipe(Effect.provide(FetchHttpClient.layer))
  )
})

describe.each(vendors)("$name", (vendor) => {
  it.effect("F047: a request that is never answered is given up after a minute, and the socket closed", () =>
    Effect.gen(function* () {
      const { server, taken } = yield* taking
      const run = yield* Effect.forkChild(play(vendor, server))
      yield* taken
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(run.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const { reason } = yield* ended(run)
      assert.strictEqual(told(reason), "StreamStalled firstByte")
      assert.isTrue(reason?.isRetryable)
      yield* server.idle
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F047: how long that may take can be said", () =>
    Effect.gen(function* () {
      const { server, taken } = yield* taking
      const run = yield* Effect.forkChild(play(vendor, server, { timeouts: { firstByte: "5 seconds" } }))
      yield* taken
      yield* TestClock.adjust("5 seconds")
      const { reason } = yield* ended(run)
      assert.deepStrictEqual(
        reason?._tag === "StreamStalled" ? Duration.toMillis(reason.after) : undefined,
        5000
      )
      yield* server.idle
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F048: silence after the head, or after two deltas, is a failure that keeps what was said", () =>
    Effect.gen(function* () {
      for (const [pieces, said] of [
        [[], ""],
        [until(vendor.answer(hello), "text", 2), "Hello"]
      ] as const) {
        const { run, server } = yield* stalled(vendor, pieces)
        yield* readIn
        yield* TestClock.adjust("119 seconds")
        assert.isUndefined(run.pollUnsafe())
        yield* TestClock.adjust("1 second")
        const { exit, last, reason, text } = yield* ended(run)
        assert.strictEqual(told(reason), "StreamStalled idle")
        assert.isTrue(reason?.isRetryable)
        assert.deepStrictEqual([text, last?.stopReason], [said, "error"])
        assert.include(JSON.stringify(exit), `"${said}"`)
        yield* server.idle
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F048: the clock starts anew with each piece, and its time can be said", () =>
    Effect.gen(function* () {
      const pieces = until(vendor.answer(hello), "text", 2)
      const { run } = yield* stalled(vendor, pieces, { timeouts: { idle: "7 seconds" } })
      yield* TestClock.adjust("6 seconds")
      assert.isUndefined(run.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.strictEqual(told((yield* ended(run)).reason), "StreamStalled idle")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F051: an answer is over with its last event, though the socket stays open; we close it", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).write(bytes(vendor.answer(hello))))
      // No time passes here: nothing that would have to be waited for can end it.
      const run = yield* Effect.forkChild(play(vendor, server))
      const { events, last, reason, text } = yield* ended(run)
      assert.deepStrictEqual([text, last?.stopReason, reason], ["Hello!", "stop", undefined])
      assert.strictEqual(events.at(-1)?.timestamp, events[0]?.timestamp)
      yield* TestClock.adjust("100 millis")
      yield* server.idle
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F052: slow is not silent: a delta each two minutes, less a second, thinking included", () =>
    Effect.gen(function* () {
      const thinking = Array.from({ length: 10 }, (_, index) => `thought ${index} `)
      const text = Array.from({ length: 10 }, (_, index) => `word ${index} `)
      const { server, taken } = yield* taking
      const agent = yield* agentOn(vendor, server)
      const heard = yield* Queue.unbounded<AgentEvent.AgentEvent>()
      yield* agent.subscribe((event) =>
        event._tag === "MessageDelta" && /^(Text|Thinking)Delta$/.test(event.delta._tag)
          ? Queue.offer(heard, event)
          : Effect.void
      )
      const run = yield* Effect.forkChild(prompt(agent))
      const response = stream(yield* taken)
      for (const piece of vendor.answer({ thinking, text })) {
        response.write(block(piece))
        if (piece.kind !== "text" && piece.kind !== "thinking") continue
        yield* soon(Queue.take(heard))
        yield* settle()
        yield* TestClock.adjust("119 seconds")
      }
      response.end()
      const played = yield* ended(run)
      assert.isUndefined(played.reason)
      assert.strictEqual(played.text, text.join(""))
      assert.isEmpty(played.retries)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
