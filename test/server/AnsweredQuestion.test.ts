import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Scope, Context, Stream } from "effect"
import { Agent, Approval, Message } from "effect-agent"
import { Agents, LiveRuns, Runs } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import { type Disk, disk, Life, storesOf } from "./killing.ts"

/** The runs of a process with a model that asks the user one question. */
const start = Effect.fnUntraced(function* (stores: Disk, life: Life) {
  const script: ScriptedProvider.Script[number] = ({ messages }) =>
    messages.some(({ role }) => role === "toolResult")
      ? ScriptedProvider.text("Over.")
      : ScriptedProvider.toolCall("ask_user", { question: "Where are you?" })
  const agents = Agents.layer(({ session }) =>
    Agent.make({ model: "any", tools: [Approval.askUser()], session })
  ).pipe(
    Layer.provide([
      ScriptedProvider.layer(Array.from({ length: 9 }, () => script)),
      Approval.layer({ otherwise: "allow", asked: "wait" })
    ])
  )
  const layer = LiveRuns.layer({ flush: 0 }).pipe(Layer.provide([agents, storesOf(stores, life)]))
  return Context.get(yield* Layer.buildWithScope(layer, yield* Scope.make()), Runs.Runs)
})

/** Answers the questions of the run until it has ended, and returns the results of its calls. */
const attend = Effect.fnUntraced(function* (
  runs: Runs.Service,
  runId: string,
  onAnswer: Effect.Effect<void>
) {
  const results: Array<readonly [string, string]> = []
  const events = yield* runs.events(runId, 0)
  yield* Stream.runForEach(events, ({ event }) => {
    if (event._tag === "MessageEnd" && event.message.role === "toolResult")
      results.push([event.message.outcome, Message.textOf(event.message)])
    if (event._tag !== "QuestionAsked") return Effect.void
    const answered = runs.answer(runId, event.questionId, { answer: "In Oslo" })
    return Effect.andThen(Effect.ignore(answered), onAnswer)
  })
  return results
})

/** The results of a run whose process is killed at a write after it has acknowledged the answer. */
const killedAfter = Effect.fnUntraced(function* (writes: number) {
  const stores = yield* disk
  const life = new Life(Infinity)
  const runs = yield* start(stores, life)
  const sessionId = yield* runs.sessions.create({ sessionId: "s" })
  const { runId } = yield* runs.start({ sessionId, prompt: "Go" })
  const first = yield* Effect.forkDetach(
    attend(
      runs,
      runId,
      Effect.sync(() => life.endAfter(writes))
    )
  )
  yield* Effect.raceFirst(Deferred.await(life.over), Fiber.join(first))
  yield* life.bury
  return yield* attend(yield* start(stores, new Life(Infinity)), runId, Effect.void)
})

describe("a question that was answered before its process was killed", () => {
  it.effect("gives the model the answer, whenever the process was killed", () =>
    Effect.gen(function* () {
      for (let writes = 0; writes < 12; writes++)
        assert.deepStrictEqual(yield* killedAfter(writes), [["success", "In Oslo"]], `${writes} writes`)
    })
  )
})
