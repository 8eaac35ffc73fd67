import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Queue, Scope, Stream } from "effect"
import { AgentEvent, Message } from "effect-agent"
import type { AgentClient, RemoteAgent } from "effect-agent/client"
import type { Runs } from "effect-agent/server"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { eventsOf, stores } from "../server/host.ts"
import * as Scripted from "../ui/scripted.ts"
import { clientOf, host, opened, randomOf, relay, until } from "./client.ts"

type Watched = AgentClient.Positioned

/** Compares what a watcher received with the log: nothing twice, nothing left out but deltas of messages that were whole. */
const assertWhole = (seen: ReadonlyArray<Watched>, log: ReadonlyArray<Runs.Positioned>) => {
  const lasting = ({ event }: Watched) => event._tag !== "MessageDelta"
  assert.deepStrictEqual(seen.filter(lasting), log.filter(lasting))
  for (const [at, { position }] of seen.entries()) assert.isAbove(position, seen[at - 1]?.position ?? 0)
}

/** Answers for the person, and steers after the first turn. */
const assisted = (
  agent: RemoteAgent.RemoteAgent,
  event: AgentEvent.AgentEvent
): Effect.Effect<void, unknown> => {
  switch (event._tag) {
    case "ApprovalRequested":
      return Effect.asVoid(
        agent.answer(event.approvalId, { decision: "approve", argumentsHash: event.argumentsHash })
      )
    case "QuestionAsked":
      return Effect.asVoid(agent.answer(event.questionId, { answer: "Yes" }))
    case "ToolsDetected":
      return event.turn === 1 && event.path === undefined ? agent.steer("Be careful") : Effect.void
    default:
      return Effect.void
  }
}

const scripted = () => ({
  provider: Scripted.provider(),
  policy: Scripted.policy("wait"),
  tools: Scripted.tools
})

/** An answer of many deltas, each of which takes a permit. */
const paced = Effect.map(Queue.unbounded<void>(), (permits) => ({
  permit: (count: number) => Queue.offerAll(permits, Array.from({ length: count })),
  provider: ScriptedProvider.layer([
    ScriptedProvider.turn(
      Step.start,
      ...Array.from({ length: deltas }, (_, at) => [
        Step.run(Queue.take(permits)),
        Step.text(`${at} `)
      ]).flat(),
      Step.finish("stop")
    )
  ])
}))
const deltas = 1000

describe("resuming", () => {
  it.live("rebuilds the messages of the session in the client", () =>
    Effect.gen(function* () {
      const { context, url } = yield* host(scripted())
      const { agent } = yield* opened(url)
      const events = yield* agent.stream("clean up").pipe(
        Stream.tap((event) => assisted(agent, event)),
        Stream.runCollect
      )
      const end = events.at(-1)
      assert.deepInclude(end, { _tag: "RunEnd", status: "completed" })
      const log = yield* Effect.provideContext(eventsOf(end?.runId ?? ""), context)
      assert.deepStrictEqual(Scripted.folded(events), Scripted.folded(log.map(({ event }) => event)))
      yield* agent.waitForIdle
      assert.deepStrictEqual((yield* agent.state.get).messages, Scripted.folded(events))
    })
  )

  it.live("leaves and resumes a run at 100 random points", () =>
    Effect.gen(function* () {
      const random = randomOf(19)
      const { permit, provider } = yield* paced
      const { context, url } = yield* host({ provider, flush: 0 })
      const { agent, client } = yield* opened(url)
      const { runId } = yield* agent.start("hi")
      const seen: Array<Watched> = []
      const watched = (count: number) =>
        client.runs.events(runId, seen.at(-1)?.position ?? 0).pipe(
          Stream.take(count),
          Stream.runForEach((one) => Effect.sync(() => seen.push(one)))
        )
      for (let point = 0; point < 100; point++) {
        const count = 1 + Math.floor(random() * 8)
        yield* permit(count)
        yield* watched(count)
      }
      assert.strictEqual(seen.at(-1)?.event._tag, "MessageDelta")
      assert.deepStrictEqual(
        seen.map(({ position }) => position),
        seen.map((_, at) => at + 1)
      )
      yield* permit(deltas)
      yield* watched(Infinity)
      assertWhole(seen, yield* Effect.provideContext(eventsOf(runId), context))
      const view = seen.map(({ event }) => event).reduce(AgentEvent.fold, AgentEvent.initial())
      assert.strictEqual(
        view.messages.map(Message.textOf)[1],
        Array.from({ length: deltas }, (_, at) => `${at} `).join("")
      )
    })
  )

  it.live("reads a run over connections that break at random bytes", () =>
    Effect.gen(function* () {
      const random = randomOf(7)
      const { context, port, url } = yield* host(scripted())
      const { agent } = yield* opened(url)
      const { cuts, url: cutting } = yield* relay(
        () => port,
        () => 600 + Math.floor(random() * 4000)
      )
      const client = yield* clientOf(cutting)
      const { runId } = yield* agent.start("clean up")
      const seen = yield* client.runs.events(runId).pipe(
        Stream.tap(({ event }) => assisted(agent, event)),
        Stream.runCollect
      )
      assert.isAbove(cuts(), 5)
      assertWhole(seen, yield* Effect.provideContext(eventsOf(runId), context))
      const again: Array<Watched> = []
      for (let round = 0; cuts() < 100; round++) {
        again.length = 0
        again.push(...(yield* Stream.runCollect(client.runs.events(runId))))
        assertWhole(again, yield* Effect.provideContext(eventsOf(runId), context))
      }
    })
  )

  it.live("continues with the next server, on the logs of the one before", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const { permit, provider } = yield* paced
      const scope = yield* Scope.make()
      const first = yield* Scope.provide(host({ provider, places, flush: 0 }), scope)
      let port = first.port
      const { url } = yield* relay(
        () => port,
        () => Infinity
      )
      const { agent, client } = yield* opened(url)
      const prompt = yield* Effect.forkChild(agent.prompt("hi"))
      yield* permit(20)
      yield* until(agent, ({ open }) => open !== undefined)
      const { runId = "" } = yield* agent.state.get
      const seen: Array<Watched> = []
      const watching = yield* client.runs.events(runId).pipe(
        Stream.tap((one) => Effect.sync(() => seen.push(one))),
        Stream.filter(() => seen.length === 10),
        Stream.tap(() =>
          Effect.gen(function* () {
            yield* Scope.close(scope, Exit.void)
            port = (yield* host({ provider, places, flush: 0 })).port
            yield* permit(1000)
          })
        ),
        Stream.runDrain,
        Effect.forkChild
      )
      const result = yield* Fiber.join(prompt)
      yield* Fiber.join(watching)
      assert.strictEqual(result.status, "completed")
      assert.strictEqual(seen.at(-1)?.event._tag, "RunEnd")
      const log = yield* Stream.runCollect((yield* clientOf(`http://127.0.0.1:${port}`)).runs.events(runId))
      assertWhole(seen, log)
      assert.strictEqual((yield* client.runs.get(runId)).status, "completed")
    })
  )
})
