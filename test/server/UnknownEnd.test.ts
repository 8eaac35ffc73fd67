import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Latch, Layer, Schema, Scope, Stream } from "effect"
import { Agent, type AgentEvent, Approval, Message, Tool } from "effect-agent"
import { AgUi } from "effect-agent/ag-ui"
import { AiSdkUi } from "effect-agent/ai-sdk-ui"
import { Agents, LiveRuns, Runs } from "effect-agent/server"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { type Disk, disk, Life, storesOf } from "./killing.ts"

interface Setup {
  readonly unknown?: Approval.Unknown
  readonly asked?: Approval.Asked
  /** Whether `charge` returns. Default: it runs until its process ends. */
  readonly returns?: boolean
  /** Whether an agent inside of a tool calls. */
  readonly isInner?: boolean
  readonly isSequential?: boolean
}

/** What the processes of a test have in common. */
class World {
  readonly disk: Disk
  /** The idempotency keys of the calls of `charge`. */
  readonly charges: Array<string> = []
  looks = 0

  constructor(disk: Disk) {
    this.disk = disk
  }
}

const script =
  (isInner: boolean): ScriptedProvider.Script[number] =>
  ({ messages, system }) => {
    if (messages.some(({ role }) => role === "toolResult")) return ScriptedProvider.text("Over.")
    return isInner && system !== "inner"
      ? ScriptedProvider.toolCall("helper", { prompt: "Charge" })
      : ScriptedProvider.turn(
          Step.toolCall("look", {}, { id: "call_1" }),
          Step.toolCall("charge", { amount: 10 }, { id: "call_2" }),
          Step.finish("toolUse")
        )
  }

/** A process, until `use` has ended: then nothing of it is written any more. */
const process = Effect.fnUntraced(function* <A, E>(
  world: World,
  { asked = "wait", isInner = false, isSequential = false, returns = false, unknown = "ask" }: Setup,
  use: (runs: Runs.Service, begun: Effect.Effect<void>) => Effect.Effect<A, E>
) {
  const begun = yield* Latch.make()
  const look = Tool.make({
    name: "look",
    description: "Looks.",
    execute: () => Effect.sync(() => `looked ${++world.looks}`)
  })
  const charge = Tool.make({
    name: "charge",
    description: "Charges.",
    params: Schema.Struct({ amount: Schema.Number }),
    execute: ({ amount }) =>
      Effect.gen(function* () {
        world.charges.push((yield* Tool.ToolContext).idempotencyKey)
        yield* begun.open
        return returns ? `charged ${amount}` : yield* Effect.never
      })
  })
  const inner = { model: "any", system: "inner", tools: [look, charge] }
  const helper = Agent.asTool({ name: "helper", description: "Helps.", agent: inner })
  const tools = isInner ? [helper] : [look, charge]
  const toolExecution = isSequential ? "sequential" : "parallel"
  const policy = Approval.layer({ otherwise: "allow", asked, unknown })
  const turn = script(isInner)
  const agents = Agents.layer(({ session }) =>
    Agent.make({ model: "any", tools, toolExecution, session })
  ).pipe(Layer.provide([ScriptedProvider.layer(Array.from({ length: 9 }, () => turn)), policy]))
  const life = new Life(Infinity)
  const layer = LiveRuns.layer({ flush: 0 }).pipe(Layer.provide([agents, storesOf(world.disk, life)]))
  const context = yield* Layer.buildWithScope(layer, yield* Scope.make())
  const value = yield* use(Context.get(context, Runs.Runs), begun.await)
  yield* life.end
  for (let index = 0; index < 50; index++) yield* Effect.yieldNow
  yield* life.bury
  return value
})

const eventsUntil = Effect.fnUntraced(function* (
  runs: Runs.Service,
  runId: string,
  ...tags: ReadonlyArray<AgentEvent.AgentEvent["_tag"]>
) {
  const events = yield* runs.events(runId, 0)
  const found = yield* Stream.runCollect(
    Stream.takeUntil(events, ({ event }) => event.path === undefined && tags.includes(event._tag))
  )
  return found.map(({ event }) => event)
})

/** Begins a run whose process ends while `charge` runs, and after `look` has ended. */
const cut = Effect.fnUntraced(function* (setup: Setup) {
  const world = new World(yield* disk)
  const runId = yield* process(world, setup, (runs, begun) =>
    Effect.gen(function* () {
      const sessionId = yield* runs.sessions.create({ sessionId: "s" })
      const { runId } = yield* runs.start({ sessionId, prompt: "Go" })
      const events = yield* runs.events(runId, 0)
      yield* Stream.runDrain(
        Stream.takeUntil(
          events,
          ({ event }) => event._tag === "ToolExecutionEnd" && event.toolName === "look"
        )
      )
      yield* begun
      return runId
    })
  )
  return { world, runId }
})

/** The question about the call, once all of the run waits for the answer. */
const questionOf = Effect.fnUntraced(function* (runs: Runs.Service, runId: string) {
  const events = yield* runs.events(runId, 0)
  yield* Stream.runDrain(Stream.takeUntil(events, ({ event }) => event._tag === "QuestionAsked"))
  const { pending } = yield* runs.get(runId)
  assert.lengthOf(pending.questions, 1)
  const [question] = pending.questions
  return question ?? assert.fail("no question")
})

const resultsOf = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  events.flatMap((event) =>
    event._tag === "MessageEnd" && event.message.role === "toolResult" && event.message.toolName !== "helper"
      ? [[event.message.outcome, Message.textOf(event.message)]]
      : []
  )

const lost =
  "The process ended while tool charge ran, and its end is not known. It may have had effects: check before you call it again."

/** The run after an answer, by a process that it continues in. */
const answered = Effect.fnUntraced(function* (setup: Setup, answer: Schema.Json) {
  const { runId, world } = yield* cut(setup)
  const events = yield* process(world, { ...setup, returns: true }, (runs) =>
    Effect.gen(function* () {
      const { about, question, questionId } = yield* questionOf(runs, runId)
      assert.deepStrictEqual(
        [about, question],
        [
          "unknownEnd",
          'The process ended while tool charge ran with {"amount":10}, and its end is not known. Did the call happen?'
        ]
      )
      yield* runs.answer(runId, questionId, { answer })
      return yield* eventsUntil(runs, runId, "RunEnd")
    })
  )
  return { events, world }
})

describe("a call whose end is not known", () => {
  for (const [name, setup] of [
    ["side by side", {}],
    ["one after another", { isSequential: true }],
    ["of an agent inside", { isInner: true }]
  ] as const) {
    it.effect(`runs again with its key if a person says so: ${name}`, () =>
      Effect.gen(function* () {
        const { events, world } = yield* answered(setup, { decision: "again" })
        assert.deepStrictEqual(resultsOf(events), [
          ["success", "looked 1"],
          ["success", "charged 10"]
        ])
        assert.lengthOf(world.charges, 2)
        assert.lengthOf(new Set(world.charges), 1)
        assert.deepInclude(events.at(-1), { _tag: "RunEnd", status: "completed" })
      })
    )

    it.effect(`has the result that a person gives: ${name}`, () =>
      Effect.gen(function* () {
        const { events, world } = yield* answered(setup, { decision: "done", result: "receipt 7" })
        assert.deepStrictEqual(resultsOf(events), [
          ["success", "looked 1"],
          ["success", "receipt 7"]
        ])
        assert.lengthOf(world.charges, 1)
      })
    )
  }

  it.effect("stays unknown if a person says so", () =>
    Effect.gen(function* () {
      const { events, world } = yield* answered({}, { decision: "unknown" })
      assert.deepStrictEqual(resultsOf(events), [
        ["success", "looked 1"],
        ["unknown", lost]
      ])
      assert.lengthOf(world.charges, 1)
    })
  )

  it.effect("stays unknown if a person declines to answer", () =>
    Effect.gen(function* () {
      const { runId, world } = yield* cut({})
      yield* process(world, {}, (runs) =>
        Effect.gen(function* () {
          const { questionId } = yield* questionOf(runs, runId)
          yield* runs.answer(runId, questionId, { declined: true })
          assert.deepStrictEqual(resultsOf(yield* eventsUntil(runs, runId, "RunEnd")).at(-1), [
            "unknown",
            lost
          ])
        })
      )
    })
  )

  for (const setup of [{ unknown: "model" }, { asked: "deny" }] as const) {
    it.effect(`goes to the model without a question: ${JSON.stringify(setup)}`, () =>
      Effect.gen(function* () {
        const { runId, world } = yield* cut(setup)
        const events = yield* process(world, setup, (runs) => eventsUntil(runs, runId, "RunEnd"))
        assert.deepStrictEqual(resultsOf(events).at(-1), ["unknown", lost])
        assert.notInclude(
          events.map(({ _tag }) => _tag),
          "QuestionAsked"
        )
      })
    )
  }

  it.effect(
    "is a request that clients of AG-UI and of the AI SDK answer, and their responses end with it",
    () =>
      Effect.gen(function* () {
        const { runId, world } = yield* cut({})
        yield* process(world, {}, (runs) =>
          Effect.gen(function* () {
            const { questionId, schema } = yield* questionOf(runs, runId)
            const events = yield* eventsUntil(runs, runId, "QuestionAsked")
            const chat = events.reduce((state, event) => AiSdkUi.step(state, event)[0], AiSdkUi.initial())
            assert.isTrue(AiSdkUi.isWaiting(chat))
            assert.deepStrictEqual(
              AiSdkUi.requests(chat).map(({ request, toolCallId }) => [
                request._tag === "QuestionAsked" ? request.questionId : "",
                toolCallId
              ]),
              [[questionId, "call_2"]]
            )
            const input = { threadId: "s", runId: "r" }
            const thread = events.reduce((state, event) => AgUi.step(state, event)[0], AgUi.initial(input))
            assert.isTrue(AgUi.isWaiting(thread))
            const last = AgUi.pause(thread).at(-1)
            assert.deepNestedInclude(last, {
              type: "RUN_FINISHED",
              "outcome.interrupts[0].id": questionId,
              "outcome.interrupts[0].toolCallId": "call_2",
              "outcome.interrupts[0].responseSchema": schema
            })
          })
        )
      })
  )

  it.effect("refuses an answer that is none of the three, and keeps the question", () =>
    Effect.gen(function* () {
      const { runId, world } = yield* cut({})
      yield* process(world, {}, (runs) =>
        Effect.gen(function* () {
          const { questionId } = yield* questionOf(runs, runId)
          const refused = yield* Effect.flip(runs.answer(runId, questionId, { answer: { decision: "yes" } }))
          assert.strictEqual(refused._tag, "InvalidAnswer")
          assert.strictEqual((yield* questionOf(runs, runId)).questionId, questionId)
        })
      )
    })
  )

  it.effect("keeps its question over restarts, and its answer if the process ends before the call", () =>
    Effect.gen(function* () {
      const { runId, world } = yield* cut({})
      const first = yield* process(world, {}, (runs) => questionOf(runs, runId))
      const second = yield* process(world, {}, (runs) => questionOf(runs, runId))
      assert.deepStrictEqual(second, first)
      yield* process(world, { returns: true }, (runs) =>
        Effect.gen(function* () {
          yield* questionOf(runs, runId)
          yield* runs.answer(runId, first.questionId, { answer: { decision: "done", result: "r" } })
        })
      )
      const events = yield* process(world, {}, (runs) => eventsUntil(runs, runId, "RunEnd"))
      assert.deepStrictEqual(resultsOf(events), [
        ["success", "looked 1"],
        ["success", "r"]
      ])
      const asked = events.filter(({ _tag }) => _tag === "QuestionAsked")
      assert.lengthOf(asked, 1)
      assert.strictEqual(world.looks, 1)
      assert.lengthOf(world.charges, 1)
    })
  )

  it.effect("is asked about again if the process ends while the call runs again", () =>
    Effect.gen(function* () {
      const { runId, world } = yield* cut({})
      const first = yield* process(world, {}, (runs, begun) =>
        Effect.gen(function* () {
          const { questionId } = yield* questionOf(runs, runId)
          yield* runs.answer(runId, questionId, { answer: { decision: "again" } })
          yield* begun
          return questionId
        })
      )
      assert.lengthOf(world.charges, 2)
      const events = yield* process(world, { returns: true }, (runs) =>
        Effect.gen(function* () {
          const events = yield* runs.events(runId, 0)
          yield* Stream.runDrain(
            Stream.takeUntil(
              events,
              ({ event }) => event._tag === "QuestionAsked" && event.questionId !== first
            )
          )
          const second = yield* questionOf(runs, runId)
          assert.lengthOf(world.charges, 2)
          yield* runs.answer(runId, second.questionId, { answer: { decision: "again" } })
          return yield* eventsUntil(runs, runId, "RunEnd")
        })
      )
      assert.deepStrictEqual(resultsOf(events).at(-1), ["success", "charged 10"])
      assert.lengthOf(world.charges, 3)
      assert.lengthOf(new Set(world.charges), 1)
    })
  )

  it.effect("suspends the run where the policy defers, and an answer begins the run that continues", () =>
    Effect.gen(function* () {
      const setup = { asked: "defer" } as const
      const { runId, world } = yield* cut(setup)
      const question = yield* process(world, setup, (runs) =>
        Effect.gen(function* () {
          const events = yield* eventsUntil(runs, runId, "RunEnd")
          assert.deepInclude(events.at(-1), { _tag: "RunEnd", status: "suspended" })
          return yield* questionOf(runs, runId)
        })
      )
      const events = yield* process(world, { ...setup, returns: true }, (runs) =>
        Effect.gen(function* () {
          const next = yield* runs.answer(runId, question.questionId, { answer: { decision: "again" } })
          assert.notStrictEqual(next.runId, runId)
          return yield* eventsUntil(runs, next.runId, "RunEnd")
        })
      )
      assert.deepStrictEqual(resultsOf(events), [
        ["success", "looked 1"],
        ["success", "charged 10"]
      ])
      assert.lengthOf(new Set(world.charges), 1)
      assert.strictEqual(world.looks, 1)
    })
  )

  it.effect("stays unknown if the next prompt comes before the answer", () =>
    Effect.gen(function* () {
      const setup = { asked: "defer" } as const
      const { runId, world } = yield* cut(setup)
      yield* process(world, setup, (runs) =>
        Effect.gen(function* () {
          yield* eventsUntil(runs, runId, "RunEnd")
          const next = yield* runs.start({ sessionId: "s", prompt: "Never mind", when: "queue" })
          yield* eventsUntil(runs, next.runId, "RunEnd")
        })
      )
      const { view } = yield* world.disk.sessions.read("s")
      const results = view.messages.flatMap((message) =>
        message.role === "toolResult" ? [message.outcome] : []
      )
      assert.deepStrictEqual(results, ["success", "unknown"])
    })
  )

  it.effect("stays unknown if the run is cancelled before the answer", () =>
    Effect.gen(function* () {
      const { runId, world } = yield* cut({})
      const events = yield* process(world, {}, (runs) =>
        Effect.gen(function* () {
          yield* questionOf(runs, runId)
          yield* runs.cancel(runId)
          return yield* eventsUntil(runs, runId, "RunEnd")
        })
      )
      assert.deepStrictEqual(resultsOf(events).at(-1), ["unknown", lost])
      assert.deepInclude(events.at(-1), { _tag: "RunEnd", status: "cancelled" })
    })
  )
})
