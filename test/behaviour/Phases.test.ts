import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Layer, Schedule } from "effect"
import { AgentEvent, ContextManager, Hook, Message, ProviderError, Tool, Usage } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { record } from "../telemetry/recorder.ts"
import { agent, gated, play, say, settle } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})
const busy = ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "at capacity" }))
const refused = ScriptedProvider.fail(new ProviderError.Unauthenticated({ detail: "no" }))

const distinct = (phases: ReadonlyArray<string>) =>
  phases.filter((phase, index) => phase !== phases[index - 1])

/** The phases that events tell of, one after another. */
const phasesOf = (events: ReadonlyArray<AgentEvent.AgentEvent>) => {
  let view = AgentEvent.initial()
  return distinct(events.map((event) => (view = AgentEvent.fold(view, event)).phase))
}

/** Keeps the phases that an agent shows. */
const watched = (...args: Parameters<typeof agent>) =>
  Effect.gen(function* () {
    const one = yield* agent(...args)
    const phases: Array<string> = []
    const phase = () => one.agent.state.getUnsafe().phase
    yield* one.agent.subscribe(() => Effect.sync(() => phases.push(phase())))
    return { ...one, phase, phases: () => distinct(phases) }
  })

describe("the phase of a run", () => {
  it.effect("is that of the model, of tools, and of the last hooks (row 93)", () =>
    Effect.gen(function* () {
      const atEnd: Array<string> = []
      const last = Hook.afterExecution(() => Effect.sync(() => void atEnd.push(one.phase())))
      const one: Effect.Success<ReturnType<typeof watched>> = yield* watched([call("a"), done], {
        tools: [say("a")],
        hooks: [last]
      })
      yield* one.agent.prompt("hi")
      assert.deepStrictEqual(one.phases(), ["model", "tools", "model", "finalizing"])
      assert.deepStrictEqual(phasesOf(one.events), ["model", "tools", "model", "finalizing", "idle"])
      assert.deepStrictEqual(atEnd, ["finalizing"])
      assert.strictEqual(one.phase(), "idle")
    })
  )

  it.effect("is recovering from a failed model call until the next answer begins (row 93)", () =>
    Effect.gen(function* () {
      const running = yield* Effect.forkChild(play([busy, done], { around: (inner) => Retry.layer()(inner) }))
      yield* TestClock.adjust("1 minute")
      const { events } = yield* Fiber.join(running)
      assert.deepStrictEqual(phasesOf(events), ["model", "recovering", "model", "finalizing", "idle"])
    })
  )

  it.effect("is recovering between a turn that failed and the next one (row 93)", () =>
    Effect.gen(function* () {
      const one = yield* watched([busy, done])
      const running = yield* Effect.forkChild(
        one.agent.prompt("hi", { retry: Schedule.spaced("10 seconds") }),
        { startImmediately: true }
      )
      yield* settle()
      assert.strictEqual(one.phase(), "recovering")
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(running)
      assert.deepStrictEqual(phasesOf(one.events).slice(-4), ["recovering", "model", "finalizing", "idle"])
    })
  )

  it.effect("is compacting while a summary is made (row 93)", () =>
    Effect.gen(function* () {
      const messages = ["1", "2", "3"].map((text) => Message.user(text))
      const firstKept = messages[2]?.id ?? ""
      const summary = { summary: "They count.", firstKept, tokensAfter: 7, usage: Usage.zero }
      const { events } = yield* play([done], {
        messages,
        layer: Layer.succeed(ContextManager.ContextManager, {
          view: (messages) => Effect.succeed({ messages, dropped: 0, reason: "window" }),
          compact: (_, { reason }) =>
            Effect.succeed(
              reason === "threshold" ? { tokensBefore: 9, summarize: Effect.succeed(summary) } : undefined
            )
        })
      })
      assert.deepStrictEqual(phasesOf(events), ["model", "compacting", "model", "finalizing", "idle"])
    })
  )

  it.effect("is finalizing from a failure or a cancel on (row 93)", () =>
    Effect.gen(function* () {
      const failed = yield* play([refused])
      assert.deepStrictEqual(phasesOf(failed.events), ["model", "finalizing", "idle"])
      const { began, tool } = yield* gated
      const one = yield* watched([ScriptedProvider.toolCalls({ name: "gated", params: {} })], {
        tools: [tool]
      })
      const running = yield* Effect.forkChild(one.agent.prompt("hi"))
      yield* began.await
      yield* one.agent.cancel("enough")
      yield* Fiber.join(running)
      assert.deepStrictEqual(one.phases(), ["model", "tools", "finalizing"])
    })
  )

  it.effect("is that of tools while the run waits for calls in the background (row 93)", () =>
    Effect.gen(function* () {
      const end = yield* Latch.make(false)
      const work = Tool.make({
        name: "work",
        description: "Works.",
        blocking: false,
        execute: () => Effect.as(end.await, "worked")
      })
      const one = yield* watched([call("work"), done, done], { tools: [work] })
      const running = yield* Effect.forkChild(one.agent.prompt("hi"), { startImmediately: true })
      yield* settle()
      assert.strictEqual(one.phase(), "tools")
      yield* end.open
      yield* Fiber.join(running)
      assert.deepStrictEqual(one.phases(), ["model", "tools", "model", "tools", "model", "finalizing"])
    })
  )

  it.effect("stands on the span of the run, with the turn (row 93)", () =>
    Effect.gen(function* () {
      const { spans } = yield* record(play([call("a"), done], { tools: [say("a")] }))
      const run = spans.find(({ name }) => name === "invoke_agent")
      assert.deepStrictEqual(run?.events, [
        ["effect_agent.phase", { "effect_agent.run.phase": "model", "effect_agent.turn": 1 }],
        ["effect_agent.phase", { "effect_agent.run.phase": "tools", "effect_agent.turn": 1 }],
        ["effect_agent.phase", { "effect_agent.run.phase": "model", "effect_agent.turn": 2 }],
        ["effect_agent.phase", { "effect_agent.run.phase": "finalizing", "effect_agent.turn": 2 }]
      ])
    })
  )
})
