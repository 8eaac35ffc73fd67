/** A message that joins a run, whose process ends at each of its writes. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Scope, Stream } from "effect"
import { Agent, Approval, Message, Session, Tool } from "effect-agent"
import { Agents, Runs } from "effect-agent/server"
import type { SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { disk as makeDisk, type Disk, Life, processOf, World } from "./killing.ts"

const turn: ScriptedProvider.Script[number] = ({ messages }) =>
  messages.some(({ role }) => role === "toolResult")
    ? ScriptedProvider.text("Over.")
    : ScriptedProvider.toolCall("wait", {})

/** Agents whose tool ends once the gate is open. */
const agents = (gate: Deferred.Deferred<void>) => () => {
  const execute = () => Effect.as(Deferred.await(gate), "waited")
  const wait = Tool.make({ name: "wait", description: "Waits.", effect: "idempotent", execute })
  return Agents.layer(({ session }) => Agent.make({ model: "any", tools: [wait], session })).pipe(
    Layer.provide([
      ScriptedProvider.layer(Array.from({ length: 9 }, () => turn)),
      Approval.layer({ rules: [], otherwise: "allow" })
    ])
  )
}

/** A process with a run whose tool waits. It sends the message, and is killed at a write since then. */
const process = Effect.fnUntraced(function* (
  disk: Disk,
  send: (runs: Runs.Service) => Effect.Effect<unknown, unknown>,
  { last, opens }: { readonly last: number; readonly opens: boolean }
) {
  const life = new Life(Infinity)
  const gate = yield* Deferred.make<void>()
  const scope = yield* Scope.make()
  const work = Effect.gen(function* () {
    const context = yield* Layer.buildWithScope(processOf(new World(agents(gate)), disk, life), scope)
    const runs = yield* Effect.provide(Runs.Runs, context)
    if ((yield* Effect.result(runs.list("s")))._tag === "Failure")
      yield* runs.sessions.create({ sessionId: "s" })
    const idempotency = { key: "run", body: null }
    const { runId } = yield* runs.start({ sessionId: "s", prompt: "Go", idempotency })
    const invoked = Stream.takeUntil(
      yield* runs.events(runId, 0),
      ({ event }) => event._tag === "ToolExecutionStart"
    )
    yield* Stream.runDrain(invoked)
    for (let index = 0; index < 50; index++) yield* Effect.yieldNow
    const before = life.writes
    if (last !== Infinity) life.endAfter(last)
    yield* send(runs)
    const writes = life.writes - before
    if (!opens) return writes
    yield* Deferred.succeed(gate, undefined)
    yield* Stream.runDrain(yield* runs.events(runId, 0))
    return writes
  })
  // A write that is not done cannot be interrupted.
  const fiber = yield* Effect.forkDetach(work)
  const writes = yield* Effect.raceFirst(Fiber.join(fiber), Effect.as(Deferred.await(life.over), undefined))
  yield* life.end
  for (let index = 0; index < 50; index++) yield* Effect.yieldNow
  yield* life.bury
  return writes
})

const sent = (when: "steer" | "followUp") => (runs: Runs.Service) =>
  runs.start({ sessionId: "s", prompt: "By the way.", when, idempotency: { key: "k", body: "By the way." } })

describe("a message with a key that joins a run", () => {
  for (const when of ["steer", "followUp"] as const) {
    it.effect(`is delivered once, at whatever write the process ends: ${when}`, () =>
      Effect.gen(function* () {
        const writes = yield* process(yield* makeDisk, sent(when), { last: Infinity, opens: false })
        assert.strictEqual(writes, 2)
        for (const last of [0, 1, 2]) {
          const disk = yield* makeDisk
          yield* process(disk, sent(when), { last, opens: false })
          yield* process(disk, sent(when), { last: Infinity, opens: true })
          const { view } = yield* disk.sessions.read("s")
          const texts = view.messages.flatMap((message) =>
            message.role === "user" ? [Message.textOf(message)] : []
          )
          assert.deepStrictEqual(texts, ["Go", "By the way."], `killed after ${last} writes`)
        }
      })
    )
  }

  it.effect("is refused where the session no longer takes it, and delivered when it comes again", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const gate = yield* Deferred.make<void>()
      const faulty = { isOn: false }
      const refusing = (session: SessionStore.OpenSession): SessionStore.OpenSession => ({
        ...session,
        get restored() {
          return session.restored
        },
        record: (records) => {
          const reason = new Session.StorageFailed({ operation: "write", detail: "the disk is full" })
          return faulty.isOn
            ? Effect.fail(new Session.SessionError({ sessionId: "s", reason }))
            : session.record(records)
        }
      })
      const sessions: SessionStore.Service = {
        ...disk.sessions,
        open: (sessionId) => Effect.map(disk.sessions.open(sessionId), refusing)
      }
      const life = new Life(Infinity)
      const context = yield* Layer.build(processOf(new World(agents(gate)), { ...disk, sessions }, life))
      const runs = yield* Effect.provide(Runs.Runs, context)
      yield* runs.sessions.create({ sessionId: "s" })
      const { runId } = yield* runs.start({ sessionId: "s", prompt: "Go" })
      const invoked = ({ event }: Runs.Positioned) => event._tag === "ToolExecutionStart"
      yield* Stream.runDrain(Stream.takeUntil(yield* runs.events(runId, 0), invoked))
      faulty.isOn = true
      const refused = yield* Effect.flip(sent("steer")(runs))
      assert.strictEqual(refused._tag, "StorageUnavailable")
      faulty.isOn = false
      // The run fails first.
      const answer = yield* Effect.retry(
        Effect.tapError(sent("steer")(runs), () => Effect.yieldNow),
        { times: 99 }
      )
      assert.strictEqual(answer.status, "started")
      assert.strictEqual((yield* runs.get(runId)).status, "failed")
      yield* Deferred.succeed(gate, undefined)
      yield* Stream.runDrain(yield* runs.events(answer.runId, 0))
      const { view } = yield* disk.sessions.read("s")
      const users = view.messages.filter(({ role }) => role === "user")
      assert.deepStrictEqual(users.map(Message.textOf), ["Go", "By the way."])
    }).pipe(Effect.scoped)
  )
})
