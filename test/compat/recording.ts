/**
 * Runs against a script, recorded: what the projections are tried on.
 */
import { Effect, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { RunOptions } from "effect-agent"
import { AgentEvent, Hook, HookManager, Loop, ProviderError, Tool, ToolRegistry } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"

type Recording = ReadonlyArray<AgentEvent.AgentEvent>

const add = Tool.make({
  name: "add",
  description: "Adds.",
  params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  execute: ({ a, b }) =>
    Effect.gen(function* () {
      const { progress } = yield* Tool.ToolContext
      yield* progress(Tool.output("adding"))
      return a + b
    })
})

const moody = Tool.make({ name: "moody", description: "Fails.", execute: () => Effect.fail("not today") })

const slow = Tool.make({
  name: "slow",
  description: "Takes too long.",
  timeout: "1 second",
  execute: () => Effect.andThen(TestClock.adjust("1 second"), Effect.never)
})

/** The events of one run, to its end, however it ends. */
export const record = Effect.fnUntraced(function* (
  script: ScriptedProvider.Script,
  options?: Partial<RunOptions.RunOptions> & { readonly hooks?: ReadonlyArray<Hook.Runnable> }
) {
  const { hooks = [], ...rest } = options ?? {}
  const events: Array<AgentEvent.AgentEvent> = []
  yield* Loop.stream("2 + 3?", { messages: [] }, { model: "m", ...rest }).pipe(
    Stream.runForEach((event) => Effect.sync(() => events.push(event))),
    Effect.provide([
      ScriptedProvider.layer(script),
      ToolRegistry.layer(add, moody, slow),
      HookManager.layer(...hooks)
    ]),
    Effect.ignoreCause
  )
  return events satisfies Recording
})

const usage = { input: 10, output: 4, cacheRead: 3, cacheWrite: 2 }

/** A thinking answer with one call of each fate, then a last word. */
export const twoTurns = record(
  [
    ScriptedProvider.turn(
      Step.start,
      Step.thinking(["Let ", "me see"], { opaque: "signed" }),
      Step.text(["I ", "add"]),
      Step.rawToolCall("add", ['{"a":2,', '"b":3}'], { id: "good" }),
      Step.toolCall("nope", {}, { id: "unknown" }),
      Step.toolCall("add", { a: "x", b: 1 }, { id: "invalid" }),
      Step.toolCall("moody", {}, { id: "failing" }),
      Step.toolCall("add", { a: 1, b: 1 }, { id: "blocked" }),
      Step.finish("toolUse", usage)
    ),
    ScriptedProvider.text(["5"], { usage: { input: 20, output: 1 } })
  ],
  {
    toolExecution: "sequential",
    hooks: [Hook.beforeTool(({ call }) => Effect.succeed(call.id === "blocked" ? { block: true } : {}))]
  }
)

/** One tool that does not end in time. */
export const timedOut = record([
  ScriptedProvider.toolCall("slow", {}, { id: "late" }),
  ScriptedProvider.text("ok")
])

/** The provider breaks off in the middle of an answer. */
export const failed = record([
  ScriptedProvider.turn(Step.text("Hel"), Step.fail(new ProviderError.Overloaded({ detail: "busy" })))
])

/** The first try is taken back in the middle of it, and another one follows. */
export const takenBack = record([
  ScriptedProvider.turn(
    Step.text("Go"),
    Step.event({ _tag: "Retracted" }),
    Step.start,
    Step.event({ _tag: "TextStart", contentIndex: 0 }),
    Step.event({ _tag: "TextDelta", contentIndex: 0, delta: "Hi" }),
    Step.event({ _tag: "TextEnd", contentIndex: 0 }),
    Step.finish()
  )
])

/** Runs a pure step over recorded events. */
export const play = <State, Event>(
  initial: State,
  step: (state: State, event: AgentEvent.AgentEvent) => readonly [State, ReadonlyArray<Event>],
  events: Recording
): ReadonlyArray<Event> => {
  let state = initial
  return events.flatMap((event) => {
    const [next, out] = step(state, event)
    state = next
    return out
  })
}
