import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import type { AgentEvent } from "effect-agent"
import { Agent, Hook } from "effect-agent"
import { OneRingEmitter } from "effect-agent/compat"
import { ScriptedProvider } from "effect-agent/testing"
import { failed, play, record, timedOut, twoTurns } from "./recording.ts"

const project = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  play(OneRingEmitter.initial, OneRingEmitter.step, events)

const ofType = <const T extends OneRingEmitter.Event["type"]>(
  events: ReadonlyArray<OneRingEmitter.Event>,
  type: T
) =>
  events.filter((event): event is Extract<OneRingEmitter.Event, { readonly type: T }> => event.type === type)

const types = (events: ReadonlyArray<OneRingEmitter.Event>) => events.map(({ type }) => type)

describe("OneRingEmitter", () => {
  it.effect("emits what oneringai emits, in its order (row 265)", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        types(project(yield* twoTurns)),
        [
          ["execution:start", "iteration:start", "llm:request", "llm:response", "tool:detected"],
          ["tool:start", "tool:complete", "tool:start", "tool:error", "tool:start", "tool:error"],
          ["tool:start", "tool:error"],
          ["iteration:complete", "iteration:start", "llm:request", "llm:response", "iteration:complete"],
          ["execution:complete"]
        ].flat()
      )
    })
  )

  it.effect("names the call, counts iterations from 1, and gives the answer as a response", () =>
    Effect.gen(function* () {
      const events = project(yield* twoTurns)
      const [complete] = ofType(events, "tool:complete")
      assert.deepStrictEqual(complete?.toolCall, {
        id: "good",
        type: "function",
        function: { name: "add", arguments: '{"a":2,"b":3}' },
        blocking: true,
        state: "completed",
        startTime: new Date(0),
        endTime: new Date(0)
      })
      assert.strictEqual(complete?.result.content, "5")
      assert.strictEqual(complete?.iteration, 1)
      const [end] = ofType(events, "execution:complete")
      assert.strictEqual(end?.response?.output_text, "5")
      assert.deepStrictEqual(end?.response?.usage, { input_tokens: 20, output_tokens: 1, total_tokens: 21 })
      assert.strictEqual(new Set(events.map(({ executionId }) => executionId)).size, 1)
    })
  )

  it.effect("tells a timeout from an error", () =>
    Effect.gen(function* () {
      const events = project(yield* timedOut)
      const [late] = ofType(events, "tool:timeout")
      assert.strictEqual(late?.toolCall.id, "late")
      assert.strictEqual(late?.toolCall.state, "timeout")
      assert.strictEqual(ofType(events, "tool:error").length, 0)
    })
  )

  it.effect("a failed run has an error, and is not complete", () =>
    Effect.gen(function* () {
      const events = project(yield* failed)
      assert.deepStrictEqual(types(events).slice(-3), ["llm:request", "llm:error", "execution:error"])
      assert.include(ofType(events, "execution:error")[0]?.error.message, "busy")
    })
  )

  it.effect("tells of a cancel, a pause and a hook that fails", () =>
    Effect.gen(function* () {
      const options = { model: "m", limits: { maxTurns: 3 }, maxConsecutiveHookErrors: 2 }
      const agent = yield* Agent.make(options).pipe(
        Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("a"), ScriptedProvider.text("b")]))
      )
      yield* agent.subscribe((event) =>
        event._tag === "RunStart"
          ? agent.pause("lunch")
          : event._tag === "RunPaused"
            ? agent.resume()
            : event._tag === "TurnStart"
              ? agent.cancel("enough")
              : Effect.void
      )
      const emitted = yield* OneRingEmitter.project(agent.stream("hi")).pipe(Stream.runCollect)
      assert.deepStrictEqual(types(emitted).slice(0, 4), [
        "execution:start",
        "execution:paused",
        "execution:resumed",
        "iteration:start"
      ])
      assert.strictEqual(ofType(emitted, "execution:cancelled")[0]?.reason, "enough")
      assert.deepStrictEqual(ofType(emitted, "execution:start")[0]?.config, {
        model: "m",
        input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "hi" }] }],
        tools: [],
        maxIterations: 3,
        errorHandling: { maxConsecutiveErrors: 2 }
      })
      assert.notInclude(types(emitted), "execution:complete")

      const recorded = yield* record([ScriptedProvider.text("ok")], {
        hooks: [Hook.beforeModel(() => Effect.fail("no hook"))]
      })
      const [failure] = ofType(project(recorded), "hook:error")
      assert.deepStrictEqual(
        [failure?.hookName, failure?.error.message, failure?.consecutiveErrors],
        ["before:llm", "no hook", 1]
      )
    })
  )
})
