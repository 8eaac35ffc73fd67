/**
 * In which order the engine, the hooks and the services of a run come at each step. Applications rely on it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schedule, Stream } from "effect"
import {
  Agent,
  Approval,
  ContextManager,
  Hook,
  Provider,
  ProviderError,
  Tool,
  ToolRegistry
} from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"

/** The names of hooks and services in the order in which the run called them, and of its events, each with `!`. */
const order = (script: ReadonlyArray<ReturnType<typeof ScriptedProvider.text>>) =>
  Effect.gen(function* () {
    const seen: Array<string> = []
    const note = (name: string): void => void seen.push(name)
    const sees = <A>(name: string, value: A): Effect.Effect<A> => Effect.sync(() => (note(name), value))
    const tool = Tool.make({ name: "look", description: "", execute: () => sees("tool", "found") })
    const hooks = [
      Hook.beforeExecution(() => sees("beforeExecution", undefined)),
      Hook.pauseCheck(() => sees("pauseCheck", undefined)),
      Hook.transformMessages(({ messages }) => sees("transformMessages", messages)),
      Hook.toModelMessages(() => sees("toModelMessages", undefined)),
      Hook.beforeModel(() => sees("beforeModel", undefined)),
      Hook.afterModel(() => sees("afterModel", undefined)),
      Hook.beforeTool(() => sees("beforeTool", undefined)),
      Hook.approveTool(() => sees("approveTool", { approved: true })),
      Hook.afterTool(() => sees("afterTool", undefined)),
      Hook.prepareNextTurn(() => sees("prepareNextTurn", undefined)),
      Hook.shouldStopAfterTurn(() => sees("shouldStopAfterTurn", false)),
      Hook.steering(() => sees("steering", [])),
      Hook.followUp(() => sees("followUp", [])),
      Hook.onError(() => sees("onError", undefined)),
      Hook.afterExecution(() => sees("afterExecution", undefined))
    ]
    const services = Layer.mergeAll(
      Layer.succeed(ContextManager.ContextManager, {
        view: (messages) => sees("ContextManager.view", { messages, dropped: 0, reason: "window" })
      }),
      Layer.succeed(ToolRegistry.Selection, () => void note("ToolSelection")),
      Layer.succeed(Provider.Guard, {
        input: () => sees("ModelGuard.input", undefined),
        output: (answer) => Stream.onStart(answer, sees("ModelGuard.output", undefined))
      }),
      Layer.succeed(Approval.Approval, {
        decide: () => sees("Approval.decide", { decision: "allow" }),
        asked: "deny"
      }),
      Layer.succeed(ToolRegistry.ResultLimit, () => void note("ResultLimit"))
    )
    const scripted = Provider.decorate((inner) =>
      Effect.succeed({
        ...inner,
        stream: (request) => Stream.onStart(inner.stream(request), sees("provider", undefined))
      })
    )(ScriptedProvider.layer(script))
    const provider = Retry.layer({ schedule: Schedule.recurs(1), retryTurn: true })(scripted)
    yield* Effect.gen(function* () {
      const agent = yield* Agent.make({ model: "any", tools: [tool], hooks })
      yield* agent.subscribe(({ _tag }) => Effect.sync(() => _tag !== "MessageDelta" && note(`${_tag}!`)))
      yield* agent.prompt("Look.")
    }).pipe(Effect.scoped, Effect.provide([services, provider]))
    return seen
  })

/** Steps, separated by white space. */
const steps = (...texts: ReadonlyArray<string>): ReadonlyArray<string> => texts.join(" ").split(/\s+/)

const start = `RunStart! beforeExecution pauseCheck TurnStart! MessageStart! MessageEnd! steering`
const request = `ToolSelection transformMessages ContextManager.view toModelMessages beforeModel
  ModelGuard.input ModelCallStart! ModelGuard.output provider`
const answer = `MessageStart! MessageEnd! ModelCallEnd! afterModel`
const turnEnd = `TurnEnd! prepareNextTurn shouldStopAfterTurn steering`
const end = `followUp afterExecution RunEnd!`

describe("the order of hooks, services and events", () => {
  it.effect("of a prompt with a tool", () =>
    Effect.gen(function* () {
      const seen = yield* order([ScriptedProvider.toolCall("look", {}), ScriptedProvider.text("Done.")])
      const call = `ToolsDetected! ToolExecutionStart! beforeTool approveTool Approval.decide
        ToolInvoked! tool afterTool ResultLimit ToolExecutionEnd! MessageStart! MessageEnd!`
      const next = `pauseCheck TurnStart!`
      assert.deepStrictEqual(
        seen,
        steps(start, request, answer, call, turnEnd, next, request, answer, turnEnd, end)
      )
    })
  )

  it.effect("of two calls side by side: the guard hooks of both come before the first tool", () =>
    Effect.gen(function* () {
      const calls = ScriptedProvider.toolCalls({ name: "look", params: {} }, { name: "look", params: {} })
      const seen = yield* order([calls, ScriptedProvider.text("Done.")])
      const guards = seen.flatMap((name, index) => (name === "approveTool" ? [index] : []))
      assert.lengthOf(guards, 2)
      assert.isAbove(seen.indexOf("tool"), Math.max(...guards))
    })
  )

  it.effect("of half an answer that the provider sends anew: no hook runs twice", () =>
    Effect.gen(function* () {
      const lost = new ProviderError.Transport({ kind: "reset", detail: "the connection was lost" })
      const half = ScriptedProvider.turn(Step.text("half "), Step.fail(lost))
      const again = `MessageStart! ModelCallError! ModelCallRetry! MessageRetracted! provider`
      const seen = yield* order([half, ScriptedProvider.text("Done.")])
      assert.deepStrictEqual(seen, steps(start, request, again, answer, turnEnd, end))
    })
  )

  it.effect("of a call of an unknown tool: no guard, but the limit on results and onError", () =>
    Effect.gen(function* () {
      const seen = yield* order([ScriptedProvider.toolCall("unknown", {}), ScriptedProvider.text("Done.")])
      const call = `ToolsDetected! ToolExecutionStart! ResultLimit onError ToolExecutionEnd! MessageStart! MessageEnd!`
      const next = `pauseCheck TurnStart!`
      assert.deepStrictEqual(
        seen,
        steps(start, request, answer, call, turnEnd, next, request, answer, turnEnd, end)
      )
    })
  )
})
