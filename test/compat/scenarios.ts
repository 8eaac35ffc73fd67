/**
 * Runs whose events in other systems stand in `golden/`.
 */
import { Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import { type AgentEvent, Hook, HookManager, Loop, ProviderError, Tool, ToolRegistry } from "effect-agent"
import type { RunOptions } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"

const object = { type: "object", properties: {} } as const

const slowly = Effect.andThen(TestClock.adjust("2 seconds"), Effect.never)

const tools = [
  Tool.fromJsonSchema({
    name: "add",
    description: "Adds.",
    parameters: object,
    execute: () => Effect.as(TestClock.adjust("1 second"), "5")
  }),
  Tool.fromJsonSchema({
    name: "moody",
    description: "Fails.",
    parameters: object,
    execute: () => Effect.fail("not today")
  }),
  Tool.fromJsonSchema({
    name: "slow",
    description: "Takes too long.",
    parameters: object,
    timeout: "1500 millis",
    execute: () => slowly
  })
]

const system = "Be brief."

/** What oneringai knows about an agent beside its events. */
export const context = { system, tools, messages: [] }

const record = (
  script: ScriptedProvider.Script,
  given: Partial<RunOptions.RunOptions> = {},
  ...hooks: ReadonlyArray<Hook.Runnable>
) =>
  Effect.gen(function* () {
    const events: Array<AgentEvent.AgentEvent> = []
    const options = { model: "m", system, toolExecution: "sequential", ...given } as const
    yield* Loop.stream("2 + 3?", { messages: [] }, options).pipe(
      Stream.runForEach((event) => Effect.sync(() => events.push(event))),
      Effect.provide([
        ScriptedProvider.layer(script),
        ToolRegistry.layer(...tools),
        HookManager.layer(...hooks)
      ]),
      Effect.ignoreCause
    )
    return events
  })

const calling = (...calls: ReadonlyArray<readonly [name: string, rawArguments: string, id: string]>) =>
  ScriptedProvider.turn(
    Step.start,
    Step.text(["I ", "add"]),
    ...calls.map(([name, rawArguments, id]) => Step.rawToolCall(name, [rawArguments], { id })),
    Step.finish("toolUse", { input: 10, output: 4 })
  )

const last = ScriptedProvider.text(["5"], { usage: { input: 20, output: 1 } })

export const scenarios = {
  "an answer with reasoning": record([
    ScriptedProvider.turn(
      Step.start,
      Step.thinking(["Let ", "me see"]),
      Step.text(["Hel", "lo"]),
      Step.finish("stop", { input: 10, output: 4 })
    )
  ]),
  "tool calls": record([
    calling(["add", '{"a":2}', "good"], ["nope", "{}", "unknown"], ["moody", "{}", "failing"]),
    last
  ]),
  "a tool out of time": record([calling(["slow", "{}", "late"]), last]),
  "a model call that fails": record([
    ScriptedProvider.turn(
      Step.start,
      Step.thinking(["Let me"]),
      Step.text("Hel"),
      Step.fail(new ProviderError.Overloaded({ detail: "busy" }))
    )
  ]),
  "a run out of time": record([calling(["slow", "{}", "late"]), last], {
    limits: { executionTime: "1 second" }
  }),
  "a hook that fails": record(
    [last],
    {},
    Hook.beforeModel(() => Effect.fail("no hook"))
  )
}
